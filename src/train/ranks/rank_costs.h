/* Measures what a rank's tables cost in each step, for planners to learn from (train/config/kept_costs.h):
 * the time of operators that read ids, look rows up, make their gradients and update them; and of those that
 * send, await and unpack vectors and gradients between ranks. Two readings of the clock an operator are all
 * it takes. */
#ifndef PH_TRAIN_RANK_COSTS_H
#define PH_TRAIN_RANK_COSTS_H

#include "graph/executor.h"
#include "train/config/kept_costs.h"
#include "train/ranks/ranks.h"

/* Groups of operators: the times of struct ph__measured_cost. */
enum { PH_RANK_COMPUTE = 1, PH_RANK_BACKWARD, PH_RANK_FORWARD, PH_RANK_GROUPS };

struct ph__rank_costs { /* zero-initialised: nothing is measured */
    struct ph_executor *executor;
    uint64_t total_ns[PH_RANK_GROUPS]; /* of all steps so far */
    double *steps_ms[PH_RANK_GROUPS];  /* of the latest steps, rings; memory of group 0, which has none */
    bool has_begun; /* the first step, which finds memory untouched, has ended: later ones count */
    uint64_t num_steps;
};

/* Watches the executor's operators of tables. executor is borrowed. PH_ERROR_MEMORY. */
ph_status ph__rank_costs_init(struct ph__rank_costs *costs, struct ph_executor *executor);
void ph__rank_costs_fini(struct ph__rank_costs *costs);

/* Called at the end of a step. Allocates nothing. */
void ph__rank_costs_step(struct ph__rank_costs *costs);

/* Gathers the ranks' median steps; all ranks call it. On the first one writes costs.json. Does nothing
 * when no step was measured. */
ph_status ph__rank_costs_write(const struct ph__rank_costs *costs, const struct ph__ranks *ranks,
    const struct ph__train_job *job, const struct ph_program *program);

#endif
