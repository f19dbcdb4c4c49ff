/* Plans as text: what the file and the tables for people say in the same words. Private to the plan room. */
#ifndef PH_PLAN_PLAN_TEXT_H
#define PH_PLAN_PLAN_TEXT_H

#include "plan/plan.h"

/* The ranks that hold some of the table, in runs: "0-3, 6"; "all" where it is data_parallel. In the arena; NULL: out of
 * memory. */
const char *ph__plan_ranks_text(
    const struct ph_plan *plan, const struct ph_plan_table *table, struct ph_arena *arena);

#endif
