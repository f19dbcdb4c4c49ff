#include "train/ranks/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "comm/collective/comm.h"
#include "shard/plan_distribution.h"
#include "train/ranks/job_agreement.h"
#include "train/ranks/job_plan.h"

/* ---- making -------------------------------------------------------------------------------------------------------- */

static ph_status create_distributions(struct ph__ranks *ranks, const struct ph_train_job *job)
{
    const struct ph_parallel_settings *settings = job->parallel;
    const struct ph_distribution_options options = {.comm = ranks->comm,
        .plan = &ranks->plan,
        .forward = (enum ph_wire)settings->forward,
        .backward = (enum ph_wire)settings->backward,
        .dense = (enum ph_wire)settings->dense,
        .bucket_bytes = (size_t)settings->bucket_bytes,
        .overlaps = settings->overlap,
        .reducer = settings->sync == PH_SYNC_HUB && ranks->world_size > 1 ? job->reducer : NULL};
    PH_TRY(ph__distribution_create(&options, &ranks->learning));
    return ph__distribution_create(&options, &ranks->scoring);
}

static ph_status check_sync(const struct ph__ranks *ranks, const struct ph_train_job *job)
{
    const int sync = job->parallel->sync;
    if (ranks->world_size > 1 && sync == PH_SYNC_NONE)
        return ph_fail(PH_ERROR_CONFIG, "parallel.sync is none, but there are %zu ranks", ranks->world_size);
    if (ranks->world_size > 1 && sync == PH_SYNC_HUB && job->reducer == NULL)
        return ph_fail(PH_ERROR_CONFIG, "parallel.sync is hub, but this program knows of none");
    return PH_OK;
}

/* One rank, and no plan file that it is to carry out. */
static bool is_alone(const struct ph_train_job *job)
{
    const char *plan = job->parallel->plan;
    return ph_comm_world_size(job->comm) == 1 && (strcmp(plan, "auto") == 0 || strcmp(plan, "none") == 0);
}

ph_status ph__ranks_init(struct ph__ranks *ranks, const struct ph_train_job *job)
{
    *ranks = (struct ph__ranks){.world_size = 1};
    if (job->comm == NULL || is_alone(job))
        return ph__job_plan_check_alone(job);
    ranks->comm = job->comm;
    ranks->rank = ph_comm_rank(job->comm);
    ranks->world_size = ph_comm_world_size(job->comm);
    PH_TRY(check_sync(ranks, job));
    ranks->moments = calloc(ranks->world_size, sizeof *ranks->moments);
    ranks->numbers = calloc(ranks->world_size, sizeof *ranks->numbers);
    if (ranks->moments == NULL || ranks->numbers == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu ranks", ranks->world_size);
    PH_TRY(ph__agree_on_job(job));
    PH_TRY(ph__job_plan_find(ranks, job));
    return create_distributions(ranks, job);
}

void ph__ranks_fini(struct ph__ranks *ranks)
{
    ph__distribution_destroy(ranks->learning);
    ph__distribution_destroy(ranks->scoring);
    ph__plan_fini(&ranks->plan);
    free(ranks->moments);
    free(ranks->numbers);
    *ranks = (struct ph__ranks){0};
}

ph_status ph__ranks_bind(const struct ph__ranks *ranks, struct ph_workspace *workspace,
    const struct ph_batch *batch, uint64_t seed, uint64_t step)
{
    return ranks->learning != NULL
               ? ranks->learning->bind(ranks->learning->context, workspace, batch, seed, step)
               : ph_workspace_bind(workspace, batch, seed, step);
}

/* ---- agreeing ------------------------------------------------------------------------------------------------------ */

bool ph__ranks_is_first(const struct ph__ranks *ranks)
{
    return ranks->rank == 0;
}

ph_status ph__ranks_all(struct ph__ranks *ranks, ph_status status)
{
    if (ranks->comm == NULL)
        return status;
    return status != PH_OK ? ph_comm_fail(ranks->comm, status) : ph__comm_barrier(ranks->comm);
}

ph_status ph__ranks_share(struct ph__ranks *ranks, ph_status status)
{
    return ranks->comm != NULL ? ph__comm_share(ranks->comm, status) : status;
}

ph_status ph__ranks_agree(struct ph__ranks *ranks, struct ph__ranks_moment *moment)
{
    if (ranks->comm == NULL)
        return PH_OK;
    PH_TRY(ph__comm_gather_once(ranks->comm, "what comes next", moment, sizeof *moment, ranks->moments));
    moment->is_due = ranks->moments[0].is_due;
    for (size_t rank = 0; rank < ranks->world_size; rank++)
        if (ranks->moments[rank].stop_signal > moment->stop_signal)
            moment->stop_signal = ranks->moments[rank].stop_signal;
    return PH_OK;
}

ph_status ph__ranks_sum(struct ph__ranks *ranks, double own, double *sum_out)
{
    double sum = own;
    if (ranks->comm != NULL) {
        PH_TRY(ph__comm_gather_once(
            ranks->comm, "weights of the ranks' samples", &own, sizeof own, ranks->numbers));
        sum = 0;
        for (size_t rank = 0; rank < ranks->world_size; rank++)
            sum += ranks->numbers[rank];
    }
    *sum_out = sum;
    return PH_OK;
}
