/* A search for the plan that is cheapest by a cost model: a beam over how tables are cut, and for each way of
 * cutting them a greedy placement of the parts (plan_place.h).
 *
 * The search begins with whole tables. A move cuts one table further: its columns, or its rows, into twice as
 * many parts, or it is copied to all ranks. Only tables that are large or dear are moved. Of all moves of all
 * states in the beam the best few stay; the search ends when a level has improved nothing. The same inputs
 * give the same plan, to the bit.
 *
 * Sources: Zha et al. 2023 (arXiv 2305.01868, section 3.3) for beam and thresholds. Cuts of rows, copies, a
 * plan to start from and unequal ranks are ours. */
#ifndef PH_PLAN_SEARCH_PLAN_SEARCH_H
#define PH_PLAN_SEARCH_PLAN_SEARCH_H

#include "plan/search/plan_place.h"

struct ph__search_progress {
    size_t level;         /* of the beam, from 1 */
    size_t num_tried;     /* ways of cutting the tables */
    double ms;            /* of the best plan so far; INFINITY: none fits yet */
    uint64_t short_bytes; /* bytes that the best one lacks; 0: it fits */
};

struct ph__search_options {
    struct ph__placing placing;
    /* Called after each way that was tried; returns true to end the search with the best so far. */
    bool (*progress)(void *context, const struct ph__search_progress *progress);
    void *context;
};

/* Searches, beginning with the greedy planner's plan where that finds one. PH_ERROR_MEMORY when nothing fits:
 * which limit, and how many bytes are missing; errors of the model. */
ph_status ph__plan_search(
    const struct ph__search_options *options, struct ph__plan *plan_out, double *slowest_ms_out);

/* Counts the bytes of tables and slots that ranks hold in `to` and other ranks hold in `from`. */
uint64_t ph__plan_moved_bytes(
    const struct ph__plan *from, const struct ph__plan *to, const struct ph__table_facts *tables);

#endif
