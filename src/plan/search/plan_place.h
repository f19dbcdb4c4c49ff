/* Greedy placement of tables that are cut in a given way: dearest parts first, each on the rank that then
 * costs least. Several limits on a rank's columns are tried, and the cheapest placement is kept. */
#ifndef PH_PLAN_SEARCH_PLAN_PLACE_H
#define PH_PLAN_SEARCH_PLAN_PLACE_H

#include "plan/search/plan_price.h"

/* Tables that lie on one rank, whole; or of which no two lie on one rank. */
struct ph__table_group {
    const uint32_t *tables;
    size_t num_tables;
    bool is_apart;
};

/* Limits of a plan; zero-initialised: none but those of the machine. All is borrowed. */
struct ph__plan_limits {
    const uint64_t *rank_bytes; /* (world_size); NULL: the machine's, for each rank */
    uint64_t host_bytes;        /* of a host's ranks together; 0: no limit */
    const struct ph__table_group *groups;
    size_t num_groups;
};

/* A search's task; all is borrowed. */
struct ph__placing {
    const struct ph__pricing *pricing;
    struct ph__plan_limits limits;
    const struct ph__plan *from; /* plan to start from; NULL: none */
    double ms_per_moved_gb;      /* price on bytes that lie elsewhere than in `from` */
};

/* A table's cut: table_wise, column_wise or row_wise into num_parts, or data_parallel. */
struct ph__table_cut {
    enum ph__shard_kind kind;
    uint32_t num_parts;
};

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
/* Returns a table's milliseconds on a rank of its own, and the bytes of its largest part. */
double ph__placer_table_ms(const struct ph__placer *placer, size_t table);
uint64_t ph__cut_bytes(const struct ph__table_facts *table, const struct ph__table_cut *cut);

#endif
