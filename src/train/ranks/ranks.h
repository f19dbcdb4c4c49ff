/* The ranks that train one model together, as a training sees them: their numbers, their plan, the
 * distributions of its programs, and their agreements. Zero-initialised: the training is alone. */
#ifndef PH_TRAIN_RANKS_H
#define PH_TRAIN_RANKS_H

#include "graph/distribution.h"
#include "plan/plan.h"
#include "train/config/table_facts.h"
#include "train/ranks/collective_retry.h"

/* A plan, and the tables that it places, which the first rank that needs them makes for all ranks of a
 * process. Zero-initialised: not made yet. */
struct ph__shared_plan {
    struct ph__table_list tables;
    struct ph__plan plan;
};

struct ph__ranks_moment;
struct ph__ranks {
    struct ph_comm *comm; /* NULL: alone */
    size_t rank, world_size;
    struct ph__plan *plan, own_plan;            /* plan: the own one, or what the job's ranks share */
    struct ph_distribution *learning, *scoring; /* NULL: alone */
    struct ph__ranks_moment *moments;           /* (world_size) of all ranks, while they agree */
    double *numbers;                            /* (world_size) scratch: a number of each rank */
    struct ph__collective_settings collectives; /* in use */
    struct ph__collective_retry collective_retry;
};

/* Reads or makes the plan of the job's tables, after all ranks have agreed that they have the same job.
 * Alone, there is no plan, but parallel.memory_bytes must be enough for all tables. Call fini also after a
 * failure. PH_ERROR_CONFIG: the ranks' jobs differ, or as ph__plan_read; PH_ERROR_MEMORY: no plan fits,
 * naming the table; PH_ERROR_PEER. */
ph_status ph__ranks_init(struct ph__ranks *ranks, const struct ph__train_job *job);
void ph__ranks_fini(struct ph__ranks *ranks); /* after the programs' workspaces */

/* Does ph_workspace_bind for the training program. */
ph_status ph__ranks_bind(const struct ph__ranks *ranks, struct ph_workspace *workspace,
    const struct ph_batch *batch, uint64_t seed, uint64_t step);

/* Returns true on the rank that writes files and shows output. */
bool ph__ranks_is_first(const struct ph__ranks *ranks);

/* Ends the job of all ranks when one of them fails. Returns PH_OK when all give PH_OK. Else each failing rank
 * has recorded why and tells the others, and all return the failure that was told first. */
ph_status ph__ranks_all(struct ph__ranks *ranks, ph_status status);
/* Does the same, but lets the job go on: all return the failure of the lowest rank that fails. */
ph_status ph__ranks_share(struct ph__ranks *ranks, ph_status status);

/* Sums the numbers that all ranks give, in the order of ranks; alone, gives `own`. */
ph_status ph__ranks_sum(struct ph__ranks *ranks, double own, double *sum_out);

/* The next action, agreed on by all ranks: signals reach ranks at different times, and clocks differ. */
struct ph__ranks_moment {
    int stop_signal; /* received by any rank, the same on all; 0: none */
    bool is_due;     /* by the first rank's clock */
};
ph_status ph__ranks_agree(struct ph__ranks *ranks, struct ph__ranks_moment *moment);

#endif
