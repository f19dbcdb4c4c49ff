/* The loop: epochs of steps, and the work after each step and each epoch. */
#include "train/loop/loop.h"

#include "base/file/stream.h"
#include "base/memory/caller.h"
#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "graph/executor.h"
#include "train/folder/checkpoints.h"
#include "train/folder/run_report.h"
#include "train/folder/summary.h"
#include "train/measure/evaluate.h"
#include "train/ranks/rank_checkpoint.h"
#include "train/ranks/rows_learnt.h"

/* ---- steps ---- */

static bool is_profile_wanted(const struct ph__trainer *trainer)
{
    return trainer->job->options.profile_path != NULL || trainer->job->options.trace_path != NULL;
}

/* Takes the cost of a sample by the operators' rules from the first step, which is profiled in any case; then
 * turns the profile off, unless it is wanted. */
static ph_status first_step_done(struct ph__trainer *trainer)
{
    double flops, bytes;
    ph_executor_cost(trainer->executor, &flops, &bytes);
    PH_TRY(ph__ranks_sum(&trainer->ranks, flops, &flops));
    trainer->summary.flops_per_sample = flops / (double)trainer->summary.samples;
    ph__trainer_observe_memory(trainer);
    if (is_profile_wanted(trainer))
        return PH_OK;
    ph__profile_clear(trainer->executor);
    return ph_executor_profile(trainer->executor, false, 0);
}

/* Takes one step, profiled by operator where the whole profile is wanted or the report samples this step. */
static ph_status step(struct ph__trainer *trainer, const struct ph_batch *batch)
{
    bool is_sampled = !is_profile_wanted(trainer) && ph__run_statistics_profiles_next(&trainer->statistics);
    if (is_sampled)
        PH_TRY(ph_executor_profile(trainer->executor, true, 0));
    PH_TRY(ph__trainer_step(trainer, batch));
    ph__run_statistics_step(&trainer->statistics, batch, is_sampled || is_profile_wanted(trainer));
    if (trainer->summary.steps == 1)
        PH_TRY(first_step_done(trainer));
    return is_sampled ? ph_executor_profile(trainer->executor, false, 0) : PH_OK;
}

/* Ends the training by max_steps. Saves before the evaluation that follows: a longer training would not make
 * that one, and the checkpoint can be resumed with more steps. */
static ph_status end_by_steps(struct ph__trainer *trainer, bool *is_stop)
{
    *is_stop = true;
    return trainer->saved_step == trainer->summary.steps ? PH_OK : ph__trainer_save_at_end(trainer);
}

/* Does all that follows a step's arithmetic; a training that resumes within an epoch does this first. */
static ph_status follow_step(struct ph__trainer *trainer, bool *is_stop)
{
    const struct ph_train_settings *settings = trainer->job->train;
    uint64_t steps = trainer->summary.steps;
    if (ph__trainer_is_out_of_steps(trainer))
        return end_by_steps(trainer, is_stop);
    if (ph__protocol_is_over(&trainer->protocol, settings)) {
        *is_stop = true;
        return PH_OK;
    }
    if (settings->evaluate_steps > 0 && steps % (uint64_t)settings->evaluate_steps == 0)
        return ph__trainer_evaluate(trainer, is_stop);
    if (trainer->reported_step != steps &&
        ph__clock_seconds() - trainer->tally.started >= settings->report_seconds)
        return ph__trainer_log_progress(trainer);
    return PH_OK;
}

static void count_step(struct ph__trainer *trainer, const struct ph_batch *batch)
{
    ph__rank_figures_end_step(&trainer->figures, batch->num_samples);
    ph__rank_costs_step(&trainer->costs);
    ph__rank_trace_step(trainer->executor->trace, &trainer->figures, trainer->summary.steps);
}

/* Lets the ranks change how they sum, and tells of it. */
static ph_status retry_collective(struct ph__trainer *trainer)
{
    struct ph__ranks *ranks = &trainer->ranks;
    char note[PH_COLLECTIVE_NOTE_BYTES];
    if (!ranks->collectives.may_change)
        return PH_OK;
    PH_TRY(ph__collective_retry_step(&ranks->collective_retry, trainer->figures.profile,
        trainer->job->parallel->dense, &ranks->collectives, note));
    if (note[0] != '\0')
        ph__trainer_note(trainer, note);
    return PH_OK;
}

/* Returns the signal that this process has received; 0: none. */
static int signal_of(const struct ph__trainer *trainer)
{
    const volatile int *stop_signal = trainer->job->options.stop_signal;
    return stop_signal != NULL ? *stop_signal : 0;
}

static ph_status take_step(
    struct ph__trainer *trainer, struct ph_batches *batches, const struct ph_batch *batch, bool *is_stop)
{
    if (trainer->labels.is_on)
        ph__label_check_add(&trainer->labels, batch);
    PH_TRY(ph__trainer_score_ahead(trainer, batch));
    ph__rank_figures_begin_step(&trainer->figures);
    PH_TRY(step(trainer, batch));
    ph_batches_position(batches, &trainer->position);
    ph__batches_read_place(batches, &trainer->data.train_place);
    ph__bad_rows_update(&trainer->bad_rows.train, batches);
    struct ph__ranks_moment moment = {signal_of(trainer), ph__trainer_is_save_due(trainer)};
    PH_TRY(ph__ranks_agree(&trainer->ranks, &moment));
    count_step(trainer, batch);
    if (moment.stop_signal != 0)
        return ph__trainer_stop(trainer, moment.stop_signal);
    if (moment.is_due)
        PH_TRY(ph__trainer_save(trainer));
    PH_TRY(retry_collective(trainer));
    return follow_step(trainer, is_stop);
}

/* ---- epochs ---- */

static void begin_epoch(struct ph__trainer *trainer)
{
    trainer->epoch++;
    trainer->epoch_first_step = trainer->summary.steps;
    trainer->position = (struct ph_position){0};
    trainer->is_in_epoch = true;
}

static ph_status wait_batch(
    struct ph__trainer *trainer, struct ph_batches *batches, const struct ph_batch **batch_out)
{
    const double began = ph__clock_seconds();
    const ph_status status = ph_batches_next(batches, batch_out);
    trainer->reader_wait_seconds += ph__clock_seconds() - began;
    return status;
}

/* Handles a failure to get a batch. A signal takes precedence over the error, which it may have caused by
 * ending the program that supplies the data. With several ranks no program supplies data, and signals are
 * handled after a step alone. */
static ph_status data_failed(struct ph__trainer *trainer, ph_status status)
{
    const int signal = signal_of(trainer);
    return signal != 0 && trainer->ranks.world_size == 1 ? ph__trainer_stop(trainer, signal) : status;
}

/* Trains on batches until the data or the training ends. */
static ph_status train_batches(struct ph__trainer *trainer, struct ph_batches *batches, bool *is_stop)
{
    while (!*is_stop) {
        const struct ph_batch *batch;
        const ph_status status = wait_batch(trainer, batches, &batch);
        if (status != PH_OK)
            return data_failed(trainer, status);
        if (batch == NULL)
            return PH_OK;
        PH_TRY(take_step(trainer, batches, batch, is_stop));
    }
    return PH_OK;
}

static ph_status open_and_train(struct ph__trainer *trainer, bool *is_stop)
{
    const struct ph__train_job *job = trainer->job;
    struct ph_batches_options options = {
        .size = sizeof options,
        .batch_size = (size_t)job->train->batch_size,
        .reading = job->reading,
        .seed = job->run.seed,
        .epoch = trainer->epoch,
        .start = &trainer->position,
        .stop_signal = trainer->ranks.world_size == 1 ? job->options.stop_signal : NULL,
        .rank = trainer->ranks.rank,
        .world_size = trainer->ranks.world_size,
    };
    const struct ph__rows_origin rows = ph__data_fingerprint_train(&trainer->data, job);
    struct ph_batches *batches;
    ph_status status = ph__batches_open(job->encoder, &rows, &options, &batches);
    if (status != PH_OK)
        return data_failed(trainer, status);
    status = train_batches(trainer, batches, is_stop);
    ph__bad_rows_update(&trainer->bad_rows.train, batches);
    ph__batches_read_place(batches, &trainer->data.train_place);
    ph_batches_close(batches);
    if (status == PH_OK && !*is_stop && trainer->labels.is_on)
        status = ph__label_check_end(&trainer->labels, job->encoder, ph__job_train(job));
    return status;
}

/* Trains an epoch or the rest of one, and evaluates, also when the training ends within the epoch. */
static ph_status train_epoch(struct ph__trainer *trainer, bool *is_stop)
{
    bool is_from_start = !trainer->is_in_epoch;
    if (trainer->is_in_epoch)
        PH_TRY(follow_step(trainer, is_stop));
    else
        begin_epoch(trainer);
    if (!*is_stop)
        PH_TRY(open_and_train(trainer, is_stop));
    if (!*is_stop)
        trainer->steps_per_epoch = trainer->summary.steps - trainer->epoch_first_step;
    bool is_whole = !*is_stop;
    if (is_whole && is_from_start)
        ph__run_statistics_pass(&trainer->statistics, trainer->job->reading.negative_rate);
    PH_TRY(ph__trainer_evaluate(trainer, is_stop));
    if (!is_whole && ph__trainer_is_out_of_steps(trainer))
        return PH_OK; /* saved before the evaluation */
    trainer->is_in_epoch = !is_whole;
    return ph__trainer_save_at_end(trainer);
}

static ph_status train_all(struct ph__trainer *trainer)
{
    bool is_stop = false;
    if (trainer->has_checkpoint) {
        trainer->former_seconds = trainer->summary.train_seconds + trainer->tally.seconds;
    } else {
        ph__trainer_restart_tally(trainer);
        trainer->saved_seconds = ph__clock_seconds();
    }
    while (!is_stop && (trainer->is_in_epoch || !ph__trainer_is_over(trainer)))
        PH_TRY(train_epoch(trainer, &is_stop));
    return PH_OK;
}

/* ---- the end ---- */

/* Writes the trace of all ranks into one file. */
static ph_status write_rank_trace(const struct ph__trainer *trainer)
{
    struct ph__rank_trace_sources sources = {.trace = trainer->executor->trace,
        .profile = trainer->figures.profile,
        .num_threads = trainer->summary.num_threads,
        .first = trainer->clock};
    PH_TRY(ph__rank_clock_read(trainer->ranks.comm, &sources.last));
    return ph__rank_trace_write(&sources, trainer->ranks.comm, trainer->job->options.trace_path);
}

static ph_status write_trace(const struct ph__trainer *trainer)
{
    if (trainer->job->options.trace_path == NULL)
        return PH_OK;
    return trainer->ranks.comm != NULL
               ? write_rank_trace(trainer)
               : ph_executor_write_trace(trainer->executor, trainer->job->options.trace_path);
}

/* Returns a share of this process's part of the training. */
static double share_of(const struct ph__trainer *trainer, double taken_s)
{
    const double seconds = trainer->summary.train_seconds - trainer->former_seconds;
    return seconds > 0 ? taken_s / seconds : 0;
}

static ph_status digest_model(struct ph__trainer *trainer)
{
    struct ph_train_summary *summary = &trainer->summary;
    return trainer->ranks.comm != NULL
               ? ph__rank_checkpoint_digest(&trainer->ranks, trainer->model_path, summary->checkpoint_sha256)
               : ph_checkpoint_digest(trainer->store, trainer->state, summary->checkpoint_sha256);
}

static ph_status print_profile(const struct ph__trainer *trainer, struct ph__writer *writer)
{
    if (trainer->ranks.world_size > 1)
        PH_TRY(ph__writer_printf(
            writer, "operators of rank %zu of %zu\n", trainer->ranks.rank, trainer->ranks.world_size));
    return ph__profile_write(trainer->executor, writer);
}

static ph_status write_profile(const struct ph__trainer *trainer)
{
    struct ph__writer *writer;
    if (trainer->job->options.profile_path == NULL)
        return PH_OK;
    PH_TRY(ph__writer_open_atomic(trainer->job->options.profile_path, &writer));
    return ph__writer_end(writer, print_profile(trainer, writer));
}

/* Writes summary.json and the profile. ranks: taken over; may be NULL. */
static ph_status write_end(struct ph__trainer *trainer, struct ph__json *ranks)
{
    char path[PH_MODEL_PATH_BYTES];
    snprintf(path, sizeof path, "%s/summary.json", trainer->job->options.folder);
    PH_TRY(ph__summary_write(trainer->job, &trainer->summary, &trainer->bad_rows,
        ph_backend_describe(trainer->backend), ranks, path));
    return write_profile(trainer);
}

static ph_status gather_figures(struct ph__trainer *trainer, struct ph__json **json_out)
{
    struct ph__rank_figures *figures = &trainer->figures;
    figures->train_seconds = trainer->summary.train_seconds - trainer->former_seconds;
    figures->reader_wait_seconds = trainer->reader_wait_seconds;
    figures->held_bytes = trainer->summary.memory.parameter_bytes + trainer->summary.memory.slot_bytes;
    figures->peak_bytes = trainer->summary.memory.peak_anonymous_bytes;
    return ph__rank_figures_gather(figures, &trainer->ranks, json_out);
}

static ph_status write_all(struct ph__trainer *trainer)
{
    const bool is_first = ph__ranks_is_first(&trainer->ranks);
    struct ph__json *ranks;
    if (is_first && trainer->statistics.is_on)
        PH_TRY(ph__run_report_write(trainer, NULL));
    PH_TRY(ph__rank_costs_write(&trainer->costs, &trainer->ranks, trainer->job, trainer->learning.program));
    PH_TRY(gather_figures(trainer, &ranks));
    if (is_first)
        PH_TRY(write_end(trainer, ranks));
    return write_trace(trainer);
}

static enum ph_train_end end_of(const struct ph__trainer *trainer)
{
    const struct ph_train_settings *settings = trainer->job->train;
    if (ph__trainer_is_out_of_steps(trainer))
        return PH_ENDED_BY_MAX_STEPS;
    return ph__protocol_is_over(&trainer->protocol, settings) ? PH_ENDED_BY_PATIENCE : PH_ENDED_BY_EPOCHS;
}

static ph_status finish_model(struct ph__trainer *trainer)
{
    PH_TRY(ph__rows_learnt_mark_all(
        trainer->ranks.comm, trainer->store, trainer->job->optimizer, &trainer->statistics.coverage));
    PH_TRY(ph__trainer_test_best(trainer));
    return digest_model(trainer);
}

static ph_status finish(struct ph__trainer *trainer)
{
    struct ph_train_summary *summary = &trainer->summary;
    summary->epochs = trainer->epoch;
    summary->ended_by = end_of(trainer);
    PH_TRY(ph__trainer_end_stream(trainer));
    if (!ph__trainer_is_simulated(trainer))
        PH_TRY(finish_model(trainer));
    summary->samples_per_s = (double)summary->samples / summary->train_seconds;
    summary->reader_wait_share = share_of(trainer, trainer->reader_wait_seconds);
    summary->probe_share = share_of(trainer, ph__probing_seconds(&trainer->probing));
    ph__trainer_observe_memory(trainer);
    uint64_t peak_rss_bytes = ph__memory_peak_rss_bytes();
    if (peak_rss_bytes > summary->peak_rss_bytes)
        summary->peak_rss_bytes = peak_rss_bytes;
    ph__trainer_observe_plans(trainer);
    return ph__ranks_all(&trainer->ranks, write_all(trainer));
}

/* Writes the report of a training that failed, and reports that failure again: it matters more than a missing
 * report. */
static void report_as_far_as_it_got(struct ph__trainer *trainer, ph_status status)
{
    char why[1024];
    snprintf(why, sizeof why, "%s", ph_error_text());
    (void)ph__run_report_write(trainer, why);
    ph_fail(status, "%s", why);
}

static ph_status train(struct ph__trainer *trainer)
{
    ph_status status = train_all(trainer);
    if (status == PH_OK)
        status = finish(trainer);
    if (status != PH_OK && trainer->statistics.is_on && trainer->summary.steps > 0 &&
        ph__ranks_is_first(&trainer->ranks))
        report_as_far_as_it_got(trainer, status);
    return status;
}

static void tell_end(const struct ph__trainer *trainer, struct ph_train_summary *summary_out)
{
    const struct ph_first_bad_rows *first = &trainer->job->options.first_bad_rows;
    *summary_out = trainer->summary;
    ph__summary_count_bad_rows(summary_out, &trainer->bad_rows);
    ph__buffer_set(first->train, trainer->bad_rows.train.first);
    ph__buffer_set(first->valid, trainer->bad_rows.valid.first);
    ph__buffer_set(first->test, trainer->bad_rows.test.first);
}

/* Tells the other ranks of a failure before this rank tears down its connections. */
static ph_status tell_others(const struct ph__train_job *job, ph_status status)
{
    return status != PH_OK && job->options.comm != NULL ? ph_comm_fail(job->options.comm, status) : status;
}

ph_status ph__train(const struct ph__train_job *job, struct ph_train_summary *summary_out)
{
    struct ph__trainer *trainer;
    ph_status status = ph__trainer_create(job, &trainer);
    if (status != PH_OK)
        return tell_others(job, status);
    if (!trainer->summary.was_finished)
        status = tell_others(job, train(trainer));
    if (status == PH_OK)
        tell_end(trainer, summary_out);
    ph__trainer_destroy(trainer);
    return status;
}
