/* Placements improved part by part. Private to plan/search. */
#ifndef PH_PLAN_SEARCH_PLAN_REFINE_H
#define PH_PLAN_SEARCH_PLAN_REFINE_H

#include "plan/search/plan_layout.h"

/* Lays parts as `laid` has them (num_tables, world_size), within the limits; then moves parts of the
 * slowest rank to others, or swaps them with theirs, for as long as the slowest rank gains. Gives its
 * milliseconds. Errors of the model. */
ph_status ph__layout_refine(struct ph__layout *layout, const bool *laid, double *ms_out);

#endif
