#include "train/ranks/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "comm/collective/comm.h"
#include "plan/fabric/fabric.h"
#include "plan/plan_cost.h"
#include "shard/plan_distribution.h"
#include "train/config/kept_plan.h"
#include "train/config/table_facts.h"
#include "train/observer.h"
#include "train/ranks/collective_choice.h"
#include "train/ranks/job_agreement.h"

/* ---- the plan ----
 *
 * A job's plan is read from a file, kept from the beginning of the training, or made of its tables, of
 * figures that are nominal (plan/plan_cost.h) or a topology file's, and of the memory that the config allows
 * or the machines have. Nothing that changes from one moment to the next counts: the same job on the same
 * machines gets the same plan. */

static uint64_t rank_bytes_of(const struct ph__train_job *job)
{
    return (uint64_t)job->parallel->memory_bytes;
}

/* Gives the smallest share that any rank has of its machine's memory, free or not. */
static ph_status find_least_share(struct ph__ranks *ranks, uint64_t *rank_bytes_out)
{
    uint64_t total_bytes, least = UINT64_MAX;
    PH_TRY(ph__memory_total_bytes("", &total_bytes));
    const double own = (double)(total_bytes / ph__comm_num_neighbours(ranks->comm));
    PH_TRY(ph__comm_gather_once(ranks->comm, "memory of the machines", &own, sizeof own, ranks->numbers));
    for (size_t rank = 0; rank < ranks->world_size; rank++)
        least = ph__min(least, (uint64_t)ranks->numbers[rank]);
    *rank_bytes_out = least;
    return PH_OK;
}

/* Gives the machine that a plan is made for: rates of the topology file, which rank 0 reads, else nominal
 * ones; the memory that the config allows for tables, else *share_out, a rank's share by the file, else of
 * the machines. */
static ph_status settle_machine(struct ph__ranks *ranks, const struct ph__train_job *job,
    struct ph__topology topology, struct ph__plan_machine *machine_out, uint64_t *share_out)
{
    const char *path = job->parallel->topology;
    struct ph__plan_machine given = {0};
    *machine_out = ph__plan_machine_nominal(rank_bytes_of(job));
    if (path != NULL) {
        if (ph__ranks_is_first(ranks))
            PH_TRY(ph__fabric_machine(path, &topology, &given));
        PH_TRY(ph__comm_broadcast_once(ranks->comm, "figures of the topology", 0, &given, sizeof given));
        ph__plan_machine_take(machine_out, &given);
    }
    *share_out = given.rank_bytes;
    if (*share_out == 0)
        PH_TRY(find_least_share(ranks, share_out));
    if (machine_out->rank_bytes == 0)
        machine_out->rank_bytes = *share_out;
    return PH_OK;
}

/* Returns true when another rank of this process has made the plan. */
static bool has_plan(const struct ph__ranks *ranks)
{
    return ranks->plan->tables != NULL;
}

static ph_status plan_greedily(struct ph__ranks *ranks, const struct ph__train_job *job,
    const struct ph__topology *topology, const struct ph__table_list *list)
{
    const struct ph__plan_step step = ph__plan_step_of_job(job);
    struct ph__plan_machine machine;
    uint64_t share;
    PH_TRY(settle_machine(ranks, job, *topology, &machine, &share));
    if (has_plan(ranks))
        return PH_OK;
    ph_status status =
        ph__plan_greedy(&machine, topology, &step, list->tables, list->num_tables, ranks->plan);
    if (status == PH_OK)
        status = ph__table_list_make_units(list, job, share, ranks->plan);
    if (status != PH_ERROR_MEMORY || rank_bytes_of(job) > 0)
        return status;
    char why[1024];
    snprintf(why, sizeof why, "%s", ph_error_text());
    return ph_fail(status,
        "%s; that is a rank's share of its machine's memory: take more ranks or machines, or set "
        "parallel.memory_bytes",
        why);
}

/* Notes that the kept plan is refused, with the last error as the reason. */
static void refuse_kept_plan(struct ph__ranks *ranks, const struct ph__train_job *job)
{
    char note[1200];
    ph__plan_fini(ranks->plan);
    snprintf(note, sizeof note, "the kept plan is replaced by a new one: %s", ph_error_text());
    if (ph__ranks_is_first(ranks))
        ph__observer_note(job->options.observer, note);
}

/* Reads the plan that the training was begun by, if as many ranks resume it and may still spend the memory
 * that it takes. */
static ph_status read_kept_plan(struct ph__ranks *ranks, const struct ph__train_job *job,
    const struct ph__topology *topology, const struct ph__table_list *list, bool *is_there_out)
{
    *is_there_out = false;
    if (!job->options.is_resumed)
        return PH_OK;
    enum ph__dense_mode mode;
    const ph_status status = ph__kept_plan_read(job->options.folder, topology, list,
        ph__named_dense_mode(job->parallel->dense_mode, &mode), ranks->plan, is_there_out);
    if (status == PH_ERROR_MEMORY || (status == PH_OK && !*is_there_out))
        return status;
    if (status == PH_OK && ph__plan_check_bytes(ranks->plan, list->tables, rank_bytes_of(job)) == PH_OK)
        return PH_OK;
    *is_there_out = false;
    refuse_kept_plan(ranks, job);
    return PH_OK;
}

static ph_status take_kept_plan(struct ph__ranks *ranks, const struct ph__train_job *job,
    const struct ph__topology *topology, const struct ph__table_list *list, bool *is_kept_out)
{
    bool is_there;
    PH_TRY(read_kept_plan(ranks, job, topology, list, &is_there));
    struct ph__ranks_moment moment = {.is_due = is_there};
    PH_TRY(ph__ranks_agree(ranks, &moment));
    *is_kept_out = moment.is_due;
    if (is_there == moment.is_due)
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG,
        "%s: the kept plan differs between ranks 0 and %zu: all ranks must share the folder",
        job->options.folder, ranks->rank);
}

static ph_status plan_automatically(struct ph__ranks *ranks, const struct ph__train_job *job,
    const struct ph__topology *topology, const struct ph__table_list *list)
{
    bool is_kept;
    PH_TRY(take_kept_plan(ranks, job, topology, list, &is_kept));
    return is_kept ? PH_OK : plan_greedily(ranks, job, topology, list);
}

static ph_status read_plan(struct ph__ranks *ranks, const struct ph__train_job *job,
    const struct ph__topology *topology, const struct ph__table_list *list)
{
    const char *plan = job->parallel->plan;
    if (has_plan(ranks))
        return PH_OK;
    enum ph__dense_mode mode;
    if (strcmp(plan, "none") == 0) {
        PH_TRY(ph__plan_replicate(topology, list->tables, list->num_tables, ranks->plan));
        PH_TRY(ph__table_list_make_units(list, job, 0, ranks->plan));
    } else {
        PH_TRY(ph__table_list_read_plan(
            plan, topology, list, ph__named_dense_mode(job->parallel->dense_mode, &mode), ranks->plan));
    }
    return ph__plan_check_bytes(ranks->plan, list->tables, rank_bytes_of(job));
}

static ph_status make_plan(
    struct ph__ranks *ranks, const struct ph__train_job *job, const struct ph__table_list *list)
{
    const size_t ranks_per_host = ph_comm_ranks_per_host(ranks->comm);
    const struct ph__topology topology = {
        ranks->world_size, ranks_per_host > 0 ? ranks_per_host : ranks->world_size};
    if (strcmp(job->parallel->plan, "auto") == 0)
        return plan_automatically(ranks, job, &topology, list);
    return read_plan(ranks, job, &topology, list);
}

/* Sets ranks->plan, the same on all ranks, which must all call it. PH_ERROR_CONFIG: as ph__plan_read, or
 * ranks have come to different plans; PH_ERROR_MEMORY: no plan fits, naming the table; PH_ERROR_PEER. */
static ph_status find_plan(struct ph__ranks *ranks, const struct ph__train_job *job)
{
    struct ph__table_list own = {0}, *list = job->shared_plan != NULL ? &job->shared_plan->tables : &own;
    ph_status status = list->tables == NULL ? ph__table_list_of_job(job, list) : PH_OK;
    if (status == PH_OK)
        status = make_plan(ranks, job, list);
    if (status == PH_OK)
        status = ph__agree_on_plan(ranks->comm, ranks->plan);
    ph__table_list_fini(&own);
    return status;
}

/* PH_ERROR_MEMORY when all tables take more than one rank alone may spend. */
static ph_status check_plan_alone(const struct ph__train_job *job)
{
    const struct ph__topology topology = {1, 1};
    struct ph__plan plan = {0};
    struct ph__table_list list;
    if (job->parallel == NULL || job->parallel->memory_bytes == 0)
        return PH_OK;
    ph_status status = ph__table_list_of_job(job, &list);
    if (status == PH_OK)
        status = ph__plan_replicate(&topology, list.tables, list.num_tables, &plan);
    if (status == PH_OK)
        status = ph__plan_check_bytes(&plan, list.tables, rank_bytes_of(job));
    ph__table_list_fini(&list);
    ph__plan_fini(&plan);
    return status;
}

/* ---- creating ---- */

static ph_status create_distributions(struct ph__ranks *ranks, const struct ph__train_job *job)
{
    const struct ph_parallel_settings *settings = job->parallel;
    const struct ph__distribution_options options = {.comm = ranks->comm,
        .plan = ranks->plan,
        .forward = settings->forward,
        .backward = settings->backward,
        .dense = settings->dense,
        .bucket_bytes = (size_t)settings->bucket_bytes,
        .overlaps = settings->overlap,
        .reducer = settings->sync == PH_SYNC_HUB && ranks->world_size > 1 ? job->options.reducer : NULL};
    PH_TRY(ph__distribution_create(&options, &ranks->learning));
    return ph__distribution_create(&options, &ranks->scoring);
}

static ph_status check_sync(const struct ph__ranks *ranks, const struct ph__train_job *job)
{
    const enum ph_sync sync = job->parallel->sync;
    if (ranks->world_size > 1 && sync == PH_SYNC_NONE)
        return ph_fail(
            PH_ERROR_CONFIG, "parallel.sync: none requires a single rank, not %zu", ranks->world_size);
    if (ranks->world_size > 1 && sync == PH_SYNC_HUB && job->options.reducer == NULL)
        return ph_fail(PH_ERROR_CONFIG, "parallel.sync: hub requires a reducer in struct ph_train_options: "
                                        "set it, or use sync: allreduce");
    return PH_OK;
}

/* Returns true when there is one rank, and no plan file for it to carry out. */
static bool is_alone(const struct ph__train_job *job)
{
    const char *plan = job->parallel->plan;
    return ph_comm_world_size(job->options.comm) == 1 &&
           (strcmp(plan, "auto") == 0 || strcmp(plan, "none") == 0);
}

ph_status ph__ranks_init(struct ph__ranks *ranks, const struct ph__train_job *job)
{
    *ranks = (struct ph__ranks){
        .world_size = 1, .plan = job->shared_plan != NULL ? &job->shared_plan->plan : &ranks->own_plan};
    if (job->options.comm == NULL || is_alone(job))
        return check_plan_alone(job);
    ranks->comm = job->options.comm;
    ranks->rank = ph_comm_rank(job->options.comm);
    ranks->world_size = ph_comm_world_size(job->options.comm);
    PH_TRY(check_sync(ranks, job));
    ranks->moments = calloc(ranks->world_size, sizeof *ranks->moments);
    ranks->numbers = calloc(ranks->world_size, sizeof *ranks->numbers);
    if (ranks->moments == NULL || ranks->numbers == NULL)
        return ph__out_of_memory("%zu ranks", ranks->world_size);
    PH_TRY(ph__agree_on_job(job));
    PH_TRY(ph__collectives_agree(ranks->comm, job, &ranks->collectives));
    PH_TRY(find_plan(ranks, job));
    return create_distributions(ranks, job);
}

void ph__ranks_fini(struct ph__ranks *ranks)
{
    ph__distribution_destroy(ranks->learning);
    ph__distribution_destroy(ranks->scoring);
    ph__plan_fini(&ranks->own_plan);
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

/* ---- agreeing ---- */

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
