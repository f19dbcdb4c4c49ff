#include "train/ranks/job_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "comm/collective/comm.h"
#include "plan/plan_machine.h"
#include "train/config/kept_plan.h"
#include "train/config/table_facts.h"
#include "train/ranks/job_agreement.h"

static uint64_t rank_bytes_of(const struct ph_train_job *job)
{
    return (uint64_t)job->parallel->memory_bytes;
}

/* Gives what a plan may let a rank spend that is made for this job: what its config says or, where that says nothing, the
 * smallest share that any rank has of its machine's memory, whatever is free there. */
static ph_status settle_rank_bytes(
    struct ph__ranks *ranks, const struct ph_train_job *job, uint64_t *rank_bytes_out)
{
    uint64_t total_bytes, least = UINT64_MAX;
    *rank_bytes_out = rank_bytes_of(job);
    if (*rank_bytes_out > 0)
        return PH_OK;
    PH_TRY(ph__memory_total_bytes("", &total_bytes));
    const double own = (double)(total_bytes / ph__comm_num_neighbours(ranks->comm));
    PH_TRY(ph__comm_gather_once(ranks->comm, "memory of the machines", &own, sizeof own, ranks->numbers));
    for (size_t rank = 0; rank < ranks->world_size; rank++)
        least = ph__min(least, (uint64_t)ranks->numbers[rank]);
    *rank_bytes_out = least;
    return PH_OK;
}

static ph_status plan_greedily(struct ph__ranks *ranks, const struct ph_train_job *job,
    const struct ph_topology *topology, const struct ph__table_list *list)
{
    const struct ph_plan_step step = ph__plan_step_of_job(job);
    uint64_t rank_bytes;
    PH_TRY(settle_rank_bytes(ranks, job, &rank_bytes));
    const struct ph_plan_machine machine = ph__plan_machine_nominal(rank_bytes);
    const ph_status status =
        ph__plan_greedy(&machine, topology, &step, list->tables, list->num_tables, &ranks->plan);
    if (status != PH_ERROR_MEMORY || rank_bytes_of(job) > 0)
        return status;
    char why[1024];
    snprintf(why, sizeof why, "%s", ph_error_text());
    return ph_fail(status,
        "%s; that is a rank's share of its machine's memory: take more ranks or machines, or set "
        "parallel.memory_bytes",
        why);
}

/* What is wrong with the plan that was kept is the last error. */
static void refuse_kept_plan(struct ph__ranks *ranks, const struct ph_train_job *job)
{
    const struct ph_train_observer *observer = job->observer;
    char note[1200];
    ph__plan_fini(&ranks->plan);
    snprintf(note, sizeof note, "the plan that was kept gives way to another: %s", ph_error_text());
    if (ph__ranks_is_first(ranks) && observer != NULL && observer->on_note != NULL)
        observer->on_note(observer->context, note);
}

/* The one that the training was begun by, where as many ranks resume it, and may still spend what it takes. */
static ph_status read_kept_plan(struct ph__ranks *ranks, const struct ph_train_job *job,
    const struct ph_topology *topology, const struct ph__table_list *list, bool *is_there_out)
{
    *is_there_out = false;
    if (!job->is_resumed)
        return PH_OK;
    const ph_status status =
        ph__kept_plan_read(job->folder, topology, list->tables, list->num_tables, &ranks->plan, is_there_out);
    if (status == PH_ERROR_MEMORY || (status == PH_OK && !*is_there_out))
        return status;
    if (status == PH_OK && ph__plan_check_bytes(&ranks->plan, list->tables, rank_bytes_of(job)) == PH_OK)
        return PH_OK;
    *is_there_out = false;
    refuse_kept_plan(ranks, job);
    return PH_OK;
}

static ph_status take_kept_plan(struct ph__ranks *ranks, const struct ph_train_job *job,
    const struct ph_topology *topology, const struct ph__table_list *list, bool *is_kept_out)
{
    bool is_there;
    PH_TRY(read_kept_plan(ranks, job, topology, list, &is_there));
    struct ph__ranks_moment moment = {.is_due = is_there};
    PH_TRY(ph__ranks_agree(ranks, &moment));
    *is_kept_out = moment.is_due;
    if (is_there == moment.is_due)
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG,
        "%s: the plan there is not the same on ranks 0 and %zu: do they share the folder?", job->folder,
        ranks->rank);
}

static ph_status plan_automatically(struct ph__ranks *ranks, const struct ph_train_job *job,
    const struct ph_topology *topology, const struct ph__table_list *list)
{
    bool is_kept;
    PH_TRY(take_kept_plan(ranks, job, topology, list, &is_kept));
    return is_kept ? PH_OK : plan_greedily(ranks, job, topology, list);
}

static ph_status read_plan(struct ph__ranks *ranks, const struct ph_train_job *job,
    const struct ph_topology *topology, const struct ph__table_list *list)
{
    const char *plan = job->parallel->plan;
    if (strcmp(plan, "none") == 0)
        PH_TRY(ph__plan_replicate(topology, list->tables, list->num_tables, &ranks->plan));
    else
        PH_TRY(ph__plan_read(plan, topology, list->tables, list->num_tables, &ranks->plan));
    return ph__plan_check_bytes(&ranks->plan, list->tables, rank_bytes_of(job));
}

static ph_status make_plan(
    struct ph__ranks *ranks, const struct ph_train_job *job, const struct ph__table_list *list)
{
    const size_t ranks_per_host = ph_comm_ranks_per_host(ranks->comm);
    const struct ph_topology topology = {
        ranks->world_size, ranks_per_host > 0 ? ranks_per_host : ranks->world_size};
    if (strcmp(job->parallel->plan, "auto") == 0)
        return plan_automatically(ranks, job, &topology, list);
    return read_plan(ranks, job, &topology, list);
}

ph_status ph__job_plan_find(struct ph__ranks *ranks, const struct ph_train_job *job)
{
    struct ph__table_list list;
    ph_status status = ph__table_list_of_job(job, &list);
    if (status == PH_OK)
        status = make_plan(ranks, job, &list);
    if (status == PH_OK)
        status = ph__agree_on_plan(ranks->comm, &ranks->plan);
    ph__table_list_fini(&list);
    return status;
}

ph_status ph__job_plan_check_alone(const struct ph_train_job *job)
{
    const struct ph_topology topology = {1, 1};
    struct ph_plan plan = {0};
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
