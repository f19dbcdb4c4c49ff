/* The ranks that train one model together, as a training sees them: who they are, their plan, how its
 * programs are spread, and what all of them agree on. Zero-initialised, a training is alone. */
#ifndef PH_TRAIN_RANKS_H
#define PH_TRAIN_RANKS_H

#include "graph/distribution.h"
#include "phloem/train.h"
#include "plan/plan.h"

struct ph__ranks_moment;
struct ph__ranks {
    struct ph_comm *comm; /* NULL: alone */
    size_t rank, world_size;
    struct ph__plan plan;
    struct ph_distribution *learning, *scoring; /* NULL: alone */
    struct ph__ranks_moment *moments;           /* (world_size) of all ranks, while they agree */
    double *numbers; /* (world_size) scratch: one of each rank, while they are gathered */
};

/* Reads or makes the plan of the job's tables, after all ranks have agreed that their jobs are one; alone,
 * there is none, but parallel.memory_bytes must be enough for all of them. To be finished also after a
 * failure. PH_ERROR_CONFIG: the ranks' jobs differ, or what ph__plan_read says; PH_ERROR_MEMORY: no plan
 * fits, naming the table; PH_ERROR_PEER. */
ph_status ph__ranks_init(struct ph__ranks *ranks, const struct ph_train_job *job);
void ph__ranks_fini(struct ph__ranks *ranks); /* after the programs' workspaces */

/* As ph_workspace_bind, of the training program's. */
ph_status ph__ranks_bind(const struct ph__ranks *ranks, struct ph_workspace *workspace,
    const struct ph_batch *batch, uint64_t seed, uint64_t step);

/* The one that writes files and talks to people. */
bool ph__ranks_is_first(const struct ph__ranks *ranks);

/* What one rank fails with ends the job of all: PH_OK when all give PH_OK. Else each that does not has
 * recorded why and tells the others, and all return what was told first. */
ph_status ph__ranks_all(struct ph__ranks *ranks, ph_status status);
/* The same, but the job goes on: all return what the lowest of those that fail has failed with. */
ph_status ph__ranks_share(struct ph__ranks *ranks, ph_status status);

/* The sum of what all ranks give, in their order; alone, what is given. */
ph_status ph__ranks_sum(struct ph__ranks *ranks, double own, double *sum_out);

/* What happens next: signals reach ranks at different times, and clocks differ. */
struct ph__ranks_moment {
    int stop_signal; /* that any of them has got, the same on all; 0: none */
    bool is_due;     /* the first one's clock says so */
};
ph_status ph__ranks_agree(struct ph__ranks *ranks, struct ph__ranks_moment *moment);

#endif
