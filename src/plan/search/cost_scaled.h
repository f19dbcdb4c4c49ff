/* A cost model corrected by a run: multiplies another model's times by factors, which make it predict, in sum
 * over the ranks, what the run's ranks have measured under their plan. One thread at a time. */
#ifndef PH_PLAN_SEARCH_COST_SCALED_H
#define PH_PLAN_SEARCH_COST_SCALED_H

#include "plan/search/plan_price.h"

/* Milliseconds of a rank in a step, measured; 0: not measured. */
struct ph__measured_cost {
    double compute_ms;              /* lookups, their gradients, updates of rows */
    double backward_ms, forward_ms; /* exchanges of gradients and of vectors, waits included */
};

struct ph__cost_scale {
    double compute, backward, forward;
};

struct ph__scaled_cost {
    struct ph__cost_model model; /* the other model; borrows its context */
    struct ph__cost_scale scale;
};
/* Makes a cost model that borrows `cost`. */
struct ph__cost_model ph__scaled_model(struct ph__scaled_cost *cost);

/* Finds the factors of the pricing's model from what ranks (world_size) have measured under the plan: the sum
 * measured over the sum predicted. A factor is 1 where either sum is 0. Errors of ph__plan_price. */
ph_status ph__cost_scale_find(const struct ph__pricing *pricing, const struct ph__plan *plan,
    const struct ph__measured_cost *measured, struct ph__cost_scale *scale_out);

#endif
