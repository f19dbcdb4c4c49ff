/* Creates and destroys a training. */
#include "train/loop/loop.h"

#include <math.h>
#include <stdlib.h>

#include "base/file/directory.h"
#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/thread/stop.h"
#include "comm/collective/comm.h"
#include "plan/plan_units.h"
#include "serve/model_identity.h"
#include "serve/scorer.h"
#include "store/store.h"
#include "train/config/job_config.h"
#include "train/folder/train_folder.h"
#include "train/ranks/memory_check.h"

#define TRACE_EVENTS 100000

/* The largest batch, known from the first one: only the last batch of the data may be smaller. */
struct batch_size {
    size_t num_samples;
    size_t num_ids; /* an eighth more than in the first batch, unless each bag holds one id */
};

static struct batch_size size_by(const struct ph_batch *first, size_t num_sparse)
{
    bool has_one_each = first->num_ids == first->num_samples * num_sparse;
    double num_ids = (double)first->num_ids * (has_one_each ? 1 : 1.125);
    return (struct batch_size){first->num_samples, (size_t)ceil(num_ids)};
}

/* Ends the training after a signal; the steps of a former part are saved already. */
static ph_status check_signal(const struct ph__trainer *trainer)
{
    const volatile int *stop_signal = trainer->job->options.stop_signal;
    return ph__is_stopped(stop_signal) ? ph__fail_stopped_early(ph__stop_status(stop_signal)) : PH_OK;
}

/* Opens the rows and reads their first batch, which is borrowed until they are closed. */
static ph_status open_first_batch(const struct ph__trainer *trainer, struct ph__rows_origin rows,
    const struct ph_batches_options *options, struct ph_batches **batches_out,
    const struct ph_batch **batch_out)
{
    struct ph_batches *batches = NULL;
    ph_status status = ph__batches_open(trainer->job->encoder, &rows, options, &batches);
    if (status == PH_OK)
        status = ph_batches_next(batches, batch_out);
    if (status == PH_OK) {
        *batches_out = batches;
        return PH_OK;
    }
    ph_batches_close(batches);
    return status == PH_ERROR_INTERRUPTED ? ph__fail_stopped_early(ph__stop_status(options->stop_signal))
                                          : status;
}

static ph_status estimate_batch(const struct ph__trainer *trainer, struct batch_size *size_out)
{
    const struct ph__train_job *job = trainer->job;
    if (ph__job_rows_flow(ph__job_train(job))) {
        /* a pipe cannot be read ahead: assume one id a bag, and grow where there are more */
        size_t num_samples = (size_t)job->train->batch_size;
        *size_out = (struct batch_size){num_samples, num_samples * trainer->features.num_sparse};
        return PH_OK;
    }
    struct ph_batches_options options = {.size = sizeof options,
        .batch_size = (size_t)job->train->batch_size,
        .seed = job->run.seed,
        .reading.max_bad_rows = job->reading.max_bad_rows,
        .stop_signal = job->options.stop_signal,
        .rank = trainer->ranks.rank,
        .world_size = trainer->ranks.world_size};
    struct ph_batches *batches;
    const struct ph_batch *batch;
    PH_TRY(open_first_batch(trainer, ph__job_train(job), &options, &batches, &batch));
    *size_out = size_by(batch, trainer->features.num_sparse);
    ph_batches_close(batches);
    return PH_OK;
}

/* Gives the size of the largest micro-batch. */
static struct batch_size micro_size(const struct ph__trainer *trainer, struct batch_size whole)
{
    const size_t num_samples = ph__micro_batch_most_samples(
        whole.num_samples, trainer->ranks.world_size, ph__num_micro_batches(trainer->job->train));
    const double share = (double)num_samples / (double)ph__max(1, whole.num_samples);
    return (struct batch_size){num_samples, (size_t)ceil((double)whole.num_ids * share)};
}

/* Checks that the training fits into memory, alone and beside the other ranks of its host. */
static ph_status check_memory(const struct ph__trainer *trainer, uint64_t available_bytes)
{
    const struct ph_train_memory *memory = &trainer->summary.memory;
    PH_TRY(ph__memory_check(memory, available_bytes));
    return trainer->ranks.comm != NULL ? ph__host_memory_check(trainer->ranks.comm, memory, available_bytes)
                                       : PH_OK;
}

/* Counts the model's parameters, each once however many ranks hold it. */
static uint64_t count_parameters(const struct ph__trainer *trainer)
{
    const struct ph__plan *plan = trainer->ranks.plan;
    uint64_t count = ph_store_parameter_count(trainer->store);
    for (size_t p = 0; trainer->ranks.comm != NULL && p < ph__store_num_parameters(trainer->store); p++) {
        const struct ph_parameter *parameter = ph__store_parameter(trainer->store, p);
        const struct ph__plan_unit *unit;
        const bool is_sharded = ph__plan_units_find(&plan->units, parameter->name, &unit) != NULL;
        count -= parameter->is_table || is_sharded ? parameter->elements : 0;
    }
    for (size_t u = 0; u < plan->units.num_units; u++)
        count += ph__unit_numbers(&plan->units.units[u]);
    for (size_t i = 0; i < plan->num_tables; i++)
        count += plan->tables[i].num_rows * plan->tables[i].dim;
    for (size_t i = 0; i < plan->num_towers; i++)
        if (trainer->ranks.rank / plan->topology.ranks_per_host != plan->towers[i].host)
            count += plan->towers[i].of.num_numbers;
    return count;
}

static ph_status create_learner(struct ph__trainer *trainer, struct batch_size size, uint64_t available_bytes)
{
    const struct ph__train_job *job = trainer->job;
    struct ph_train_memory *memory = &trainer->summary.memory;
    const struct ph_distribution *distribution = trainer->ranks.learning;
    PH_TRY(ph__training_program_build(job, &trainer->features, distribution, &trainer->learning));
    uint64_t missing_bytes;
    PH_TRY(ph_program_missing_bytes(trainer->learning.program, trainer->store, &missing_bytes));
    memory->parameter_bytes = trainer->learning.parameter_bytes;
    memory->slot_bytes = missing_bytes - memory->parameter_bytes;
    PH_TRY(check_memory(trainer, available_bytes));
    PH_TRY(ph_executor_create(
        trainer->learning.program, trainer->store, trainer->state, trainer->backend, &trainer->executor));
    ph_status status =
        distribution != NULL
            ? distribution->create_workspace(distribution->context, trainer->executor,
                  size.num_samples * trainer->ranks.world_size, size.num_ids, &trainer->workspace)
            : ph_workspace_create(trainer->executor, size.num_samples, size.num_ids, &trainer->workspace);
    PH_TRY(ph__memory_plan_failed(status, memory, available_bytes));
    trainer->summary.parameters = count_parameters(trainer);
    return PH_OK;
}

/* Returns how many samples of a global batch are scored at once: as many as are learnt from at once. */
static size_t scored_together(const struct ph_train_settings *train)
{
    const size_t num_parts = ph__num_micro_batches(train);
    return ((size_t)train->batch_size + num_parts - 1) / num_parts;
}

static ph_status create_scorer(struct ph__trainer *trainer, struct batch_size size)
{
    const struct ph__train_job *job = trainer->job;
    if (!ph__job_rows_exist(ph__job_valid(job)) && !ph__job_rows_exist(ph__job_test(job)) &&
        !job->train->progressive)
        return PH_OK;
    struct ph_scorer_options options = {
        .size = sizeof options,
        .model = job->model,
        .encoder = job->encoder,
        .store = trainer->store,
        .state = trainer->state,
        .backend = trainer->backend,
        .batch_size = trainer->ranks.comm != NULL ? scored_together(job->train) : size.num_samples,
        .num_ids = size.num_ids,
        .num_prefetched = job->reading.num_prefetched,
        .max_bad_rows = job->reading.max_bad_rows,
        .logit_shift = ph__negative_rate_shift(job->reading.negative_rate),
        .distribution = trainer->ranks.scoring,
        .comm = trainer->ranks.comm,
    };
    return ph_scorer_create(&options, &trainer->scorer);
}

/* Checks that rows needed later have the schema's columns and a first batch, before hours of steps. */
static ph_status check_rows(const struct ph__trainer *trainer, struct ph__rows_origin rows)
{
    const struct ph__train_job *job = trainer->job;
    const struct ph_batches_options options = {.size = sizeof options,
        .batch_size = (size_t)job->train->batch_size,
        .reading.max_bad_rows = job->reading.max_bad_rows,
        .stop_signal = job->options.stop_signal};
    struct ph_batches *batches;
    const struct ph_batch *batch;
    if (!ph__job_rows_exist(rows) || ph__job_rows_flow(rows))
        return PH_OK;
    PH_TRY(open_first_batch(trainer, rows, &options, &batches, &batch));
    ph_batches_close(batches);
    return PH_OK;
}

static ph_status look_at_labels(void *context, const struct ph__meanwhile *meanwhile)
{
    return ph__label_check_look(context, meanwhile);
}

/* Checks before the first step that each label has a value. Rows that can be read only once are checked while
 * they are learnt from; a resumed training has passed before. */
static ph_status check_labels(struct ph__trainer *trainer)
{
    const struct ph__train_job *job = trainer->job;
    if (trainer->has_checkpoint)
        return PH_OK;
    if (ph__job_rows_flow(ph__job_train(job)))
        return ph__label_check_init(&trainer->labels, trainer->features.num_tasks);
    return trainer->ranks.comm != NULL
               ? ph__comm_work_by_first(trainer->ranks.comm, look_at_labels, (void *)job)
               : ph__label_check_look(job, &(struct ph__meanwhile){0});
}

/* Lets the first rank check the folder, before any rank writes there, and tells the others whether it has a
 * checkpoint. */
static ph_status look_at_folder(struct ph__trainer *trainer)
{
    const struct ph__train_job *job = trainer->job;
    if (ph__ranks_is_first(&trainer->ranks)) {
        PH_TRY(ph__directory_create(job->options.folder));
        PH_TRY(ph__directory_lock(
            job->options.folder, &trainer->lock)); /* first: another process may be at work */
        PH_TRY(
            ph__train_check_folder(job->options.folder, job->options.is_resumed, &trainer->has_checkpoint));
    }
    struct ph__ranks_moment moment = {.is_due = trainer->has_checkpoint};
    PH_TRY(ph__ranks_agree(&trainer->ranks, &moment));
    trainer->has_checkpoint = moment.is_due;
    return PH_OK;
}

static ph_status prepare_measurements(struct ph__trainer *trainer)
{
    const size_t num_events = trainer->job->options.trace_path != NULL ? TRACE_EVENTS : 0;
    PH_TRY(ph_executor_profile(trainer->executor, true, num_events));
    PH_TRY(ph__rank_figures_init(&trainer->figures, &trainer->ranks, num_events));
    if (!ph__trainer_is_simulated(trainer))
        PH_TRY(ph__rank_costs_init(&trainer->costs, trainer->executor));
    return num_events > 0 && trainer->ranks.comm != NULL
               ? ph__rank_clock_read(trainer->ranks.comm, &trainer->clock)
               : PH_OK;
}

static ph_status prepare_probe(struct ph__trainer *trainer)
{
    const int64_t interval = trainer->job->train->probe_steps;
    if (!ph__ranks_is_first(&trainer->ranks) || ph__trainer_is_simulated(trainer))
        return PH_OK;
    PH_TRY(
        ph__probing_init(&trainer->probing, (uint64_t)interval, trainer->learning.program, trainer->backend));
    trainer->summary.memory.probe_bytes = ph__probing_bytes(&trainer->probing);
    return PH_OK;
}

static ph_status create_backend(struct ph__trainer *trainer)
{
    const struct ph__train_job *job = trainer->job;
    const struct ph_backend_options options = {.size = sizeof options,
        .num_threads = job->run.num_threads,
        .is_fast = !job->train->deterministic,
        .team = job->run.team};
    if (job->backend == NULL)
        return ph_backend_create(&options, &trainer->backend);
    trainer->backend = job->backend;
    return PH_OK;
}

static ph_status create_all(struct ph__trainer *trainer)
{
    const struct ph__train_job *job = trainer->job;
    uint64_t available_bytes;
    PH_TRY(ph__train_job_check(job));
    PH_TRY(ph__ranks_init(&trainer->ranks, job));
    PH_TRY(look_at_folder(trainer));
    PH_TRY(check_rows(trainer, ph__job_valid(job)));
    PH_TRY(check_rows(trainer, ph__job_test(job)));
    PH_TRY(ph__model_identity(job->model, job->reading.negative_rate, &trainer->arena, &trainer->identity));
    PH_TRY(ph__job_values(
        job, (struct ph__key_filter){.without = PH_KEY_MAY_CHANGE}, &trainer->arena, &trainer->values));
    PH_TRY(ph__features_init(job->encoder, &trainer->features));
    PH_TRY(check_labels(trainer));
    trainer->metrics = calloc(trainer->features.num_tasks, sizeof *trainer->metrics);
    if (trainer->metrics == NULL)
        return ph__out_of_memory("%zu tasks", trainer->features.num_tasks);
    trainer->summary.memory.baseline_bytes = ph__memory_anonymous_bytes();
    PH_TRY(ph__memory_available_bytes(&available_bytes));
    PH_TRY(ph_store_create(job->run.seed, &trainer->store));
    ph__store_learn_rows(trainer->store, job->train->row_format);
    ph__store_stop_by(trainer->store, job->options.stop_signal);
    PH_TRY(ph_state_create(&trainer->state));
    PH_TRY(create_backend(trainer));
    trainer->summary.num_threads = ph_backend_num_threads(trainer->backend);
    struct batch_size size;
    PH_TRY(estimate_batch(trainer, &size));
    PH_TRY(check_signal(trainer));
    size = micro_size(trainer, size);
    const ph_status created = create_learner(trainer, size, available_bytes);
    if (created != PH_OK)
        return ph__is_stop_status(created) ? ph__fail_stopped_early(created) : created;
    PH_TRY(create_scorer(trainer, size));
    ph__trainer_observe_plans(trainer);
    PH_TRY(prepare_probe(trainer));
    PH_TRY(check_memory(trainer, available_bytes));
    PH_TRY(ph__recent_init(&trainer->recent));
    if (job->train->report)
        PH_TRY(ph__run_statistics_init(&trainer->features, &trainer->statistics));
    if (job->train->progressive)
        PH_TRY(ph__progressive_init(&trainer->progressive, (size_t)job->train->progressive_rows));
    PH_TRY(prepare_measurements(trainer));
    PH_TRY(check_signal(trainer));
    PH_TRY(ph__trainer_open_folder(trainer));
    if (trainer->summary.steps > 0)
        ph__id_coverage_miss(&trainer->statistics.coverage);
    return PH_OK;
}

ph_status ph__trainer_create(const struct ph__train_job *job, struct ph__trainer **trainer_out)
{
    struct ph__trainer *trainer = calloc(1, sizeof *trainer);
    if (trainer == NULL)
        return ph__out_of_memory("a training");
    trainer->job = job;
    trainer->protocol.cuts = 1;
    trainer->lock = -1;
    ph_status status = create_all(trainer);
    if (status == PH_OK)
        *trainer_out = trainer;
    else
        ph__trainer_destroy(trainer);
    return status;
}

void ph__trainer_destroy(struct ph__trainer *trainer)
{
    if (trainer == NULL)
        return;
    ph__state_snapshot_fini(&trainer->snapshot);
    ph__recent_fini(&trainer->recent);
    ph__progressive_fini(&trainer->progressive);
    ph__gathered_scores_fini(&trainer->scored_ahead);
    free(trainer->own_scores);
    ph__run_statistics_fini(&trainer->statistics);
    ph__data_fingerprint_fini(&trainer->data);
    ph__label_check_fini(&trainer->labels);
    ph__metrics_log_close(&trainer->metrics_log);
    ph_scorer_destroy(trainer->scorer);
    ph_workspace_destroy(trainer->workspace);
    ph__micro_batch_fini(&trainer->micro_batch);
    ph__probing_fini(&trainer->probing);
    ph_executor_destroy(trainer->executor);
    ph_program_destroy(trainer->learning.program);
    ph__rank_costs_fini(&trainer->costs);
    ph__rank_figures_fini(&trainer->figures);
    ph__ranks_fini(&trainer->ranks);
    if (trainer->backend != trainer->job->backend)
        ph_backend_destroy(trainer->backend);
    ph_state_destroy(trainer->state);
    ph_store_destroy(trainer->store);
    free(trainer->metrics);
    ph__features_fini(&trainer->features);
    ph__arena_fini(&trainer->arena);
    ph__directory_unlock(trainer->lock);
    free(trainer);
}
