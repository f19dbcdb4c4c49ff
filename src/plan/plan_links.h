/* What goes over each link in a step, as a planner expects it: ids uniform over the rows (plan_cost.h). */
#ifndef PH_PLAN_PLAN_LINKS_H
#define PH_PLAN_PLAN_LINKS_H

#include "plan/plan.h"

/* Gradients of dense parameters, which all ranks sum. */
struct ph_plan_dense {
    size_t num_numbers, bucket_numbers;
    struct ph_plan_wire wire;
};

/* Between any two ranks, or, where the ranks are more than a table has room for, any two hosts. */
struct ph_plan_links {
    bool are_hosts;
    size_t count;
    double *bytes; /* (count, count), [from][to], in the arena */
};

/* most: ranks, or hosts, that a table has room for; count is 0 where there are more of both. PH_ERROR_MEMORY. */
ph_status ph__plan_links_find(const struct ph_plan *plan, const struct ph_plan_step *step,
    const struct ph_plan_dense *dense, const struct ph_table_facts *tables, size_t most,
    struct ph_arena *arena, struct ph_plan_links *links_out);
/* A table for people: a row for each sender. */
ph_status ph__plan_links_print(const struct ph_plan_links *links, struct ph_writer *writer);

#endif
