/* The costs that a training's ranks have measured, kept in its folder as costs.json beside plan.yaml, and
 * what a planner learns from them. The training writes the file at its end. */
#ifndef PH_TRAIN_KEPT_COSTS_H
#define PH_TRAIN_KEPT_COSTS_H

#include "plan/search/cost_scaled.h"
#include "train/cost/cost_folder.h"

struct ph__kept_costs {
    struct ph__cost_facts facts; /* machine, processor, isa, date, batch_size: of the first rank */
    struct ph__topology topology;
    uint64_t num_steps;              /* measured */
    struct ph__measured_cost *ranks; /* (world_size) median step of each */
};

/* Writes the file, atomically. plan: the one that was measured, for its tables. PH_ERROR_DISK. */
ph_status ph__kept_costs_write(
    const char *folder, const struct ph__kept_costs *costs, const struct ph__plan *plan);
/* Removes the file, if there is one: costs of a former plan. */
void ph__kept_costs_remove(const char *folder);

/* Costs that a planner takes from a run's folder. */
struct ph__learnt_costs { /* may not be moved: model borrows scaled */
    struct ph__arena arena;
    struct ph__kept_costs costs;
    struct ph__plan plan; /* that was measured; of one rank: all tables there */
    struct ph__scaled_cost scaled;
    struct ph__cost_model model;
};

/* Reads the run's costs and plan, and scales the model of `base` to them (plan/search/cost_scaled.h); its
 * topology and slowness do not matter. Call fini also after a failure.
 * PH_ERROR_CHECKPOINT: costs.json is missing or damaged. PH_ERROR_CONFIG: they were measured on another kind
 * of processor, unless may_be_foreign, with other tables or another batch size; plan.yaml is missing or
 * damaged. PH_ERROR_MEMORY; errors of ph__cost_scale_find. */
ph_status ph__kept_costs_learn(const char *folder, bool may_be_foreign, const struct ph__pricing *base,
    struct ph__learnt_costs *learnt_out);
void ph__learnt_costs_fini(struct ph__learnt_costs *learnt);

#endif
