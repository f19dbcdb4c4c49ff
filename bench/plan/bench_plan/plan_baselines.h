/* Planners that the search is measured against. Those that lay whole tables are repaired: a rank that has no
 * room is passed over, and where none has room, there is no plan. */
#ifndef PH_BENCH_PLAN_BASELINES_H
#define PH_BENCH_PLAN_BASELINES_H

#include "plan_task.h"

struct plan_method {
    const char *name;                                                /* without blanks */
    bool (*plan)(struct plan_task *task, struct ph__plan *plan_out); /* returns false: finds none */
};

enum { PLAN_GREEDY = 6, PLAN_SEARCH, PLAN_NUM_METHODS };
extern const struct plan_method
    plan_methods[PLAN_NUM_METHODS]; /* baselines, our greedy planner, the search */

#endif
