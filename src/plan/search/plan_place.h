/* Greedy placement of tables that are cut in a given way: dearest parts first, each on the rank that then
 * costs least. Several limits on a rank's columns are tried, and the cheapest placement is kept. */
#ifndef PH_PLAN_SEARCH_PLAN_PLACE_H
#define PH_PLAN_SEARCH_PLAN_PLACE_H

#include "plan/search/plan_parts.h"

struct ph__placement {
    bool *is_there; /* (num_tables, world_size) the rank has a part of the table */
    double ms, moved_ms;
    size_t lane;          /* the limit on columns that it was found with */
    uint64_t short_bytes; /* beyond the limits, of all ranks and hosts together */
};

/* Tells whether one placement fits better than another, or costs less where both fit alike. */
bool ph__placement_is_better(const struct ph__placement *placement, const struct ph__placement *other);

struct ph__placer;

ph_status ph__placer_create(const struct ph__placing *placing, struct ph__placer **placer_out);
void ph__placer_destroy(struct ph__placer *placer);
/* Places tables cut so (num_tables), with limits on columns near that of a placement of similar cuts, or with
 * all of them: NULL. The placement's memory is the caller's. Errors of the model. */
ph_status ph__place(struct ph__placer *placer, const struct ph__table_cut *cuts,
    const struct ph__placement *similar, struct ph__placement *placement_out);
/* Improves a placement of these cuts part by part (plan_refine.h). Errors of the model. */
ph_status ph__placer_refine(
    struct ph__placer *placer, const struct ph__table_cut *cuts, struct ph__placement *placement);
/* Returns a table's milliseconds on a rank of its own. */
double ph__placer_table_ms(const struct ph__placer *placer, size_t table);

#endif
