/* Tasks for planners: tables with the locality of a production batch, ranks with little room, and prices of a
 * plan by a model, or by the clock and the simulator. */
#ifndef PH_BENCH_PLAN_TASK_H
#define PH_BENCH_PLAN_TASK_H

#include "plan/fabric/fabric.h"
#include "plan/search/plan_search.h"
#include "train/cost/cost_measure.h"
#include "train/cost/cost_nets.h"

enum { PLAN_BATCH = 2048, PLAN_POOL = 856, PLAN_MOST_RANKS = 128 };

/* Costs that plans are priced by; all may be absent. */
struct plan_costs {
    struct ph__cost_nets *compute, *exchange; /* NULL: the analytic model */
    const struct ph__fabric *fabric; /* of measured plans' simulated exchanges; NULL: analytic ones */
};

struct plan_task {
    struct plan_costs costs;
    size_t num_tables;
    struct ph__cost_table tables[PLAN_POOL];
    struct ph__table_facts facts[PLAN_POOL];
    char names[PLAN_POOL][24];
    struct ph__topology topology;
    struct ph__plan_step step;
    struct ph__plan_machine machine; /* nominal rates */
    struct ph__analytic_cost analytic;
    struct ph__cost_model computing, exchanging,
        model;                  /* model: compute of the first, exchanges of the second */
    struct ph__pricing pricing; /* by `model` */
    struct ph__rng_sequence rng;
};

/* Draws a task from the pool (PLAN_POOL), the same for the same seed. Its tables take num_gb of every 16 GB
 * that its ranks have. */
struct plan_draw {
    const struct ph__cost_table *pool;
    uint64_t seed;
    size_t least_tables, end_tables, least_dim, most_dim;
    double least_gb, most_gb;
    struct ph__topology topology;
};
void plan_task_draw(const struct plan_draw *draw, const struct plan_costs *costs, struct plan_task *task_out);

/* Completes facts, limits and prices after the tables were written. */
void plan_task_finish(struct plan_task *task, const struct plan_costs *costs, double num_gb);

/* Prices a plan by the model: milliseconds of the slowest rank. */
double plan_task_price(const struct plan_task *task, const struct ph__plan *plan);
/* Measures what each rank computes, one after the other, and simulates exchanges. Counts parts whose
 * width is none of ph__cost_dims; they are measured at the nearest one. */
double plan_task_measure(const struct plan_task *task, const struct ph__plan *plan,
    struct ph__cost_measure *measure, size_t *num_rounded_out);

#endif
