/* The loop: epochs of steps, with reports as they go and the BARS protocol after each evaluation. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "train/step.h"
#include "train/trainer.h"

/* ---- reports ---------------------------------------------------------------------------------------------- */

static void restart_tally(struct ph__trainer *trainer)
{
    trainer->tally = (struct ph__tally){.started = ph__clock_seconds()};
}

static uint64_t expected_steps(const struct ph__trainer *trainer)
{
    const struct ph_train_settings *settings = trainer->job->train;
    uint64_t by_epochs = (uint64_t)settings->epochs * trainer->steps_per_epoch;
    uint64_t by_steps = (uint64_t)settings->max_steps;
    if (by_steps == 0 || (by_epochs > 0 && by_epochs < by_steps))
        return by_epochs;
    return by_steps;
}

static ph_status observe(struct ph__trainer *trainer, const struct ph_train_progress *progress)
{
    const struct ph_train_observer *observer = trainer->job->observer;
    return observer != NULL ? observer->on_progress(observer->context, progress) : PH_OK;
}

static struct ph_train_progress progress_now(const struct ph__trainer *trainer)
{
    const struct ph__tally *tally = &trainer->tally;
    double seconds = ph__clock_seconds() - tally->started;
    double rate = tally->steps > 0 ? (double)tally->steps / seconds : (double)NAN;
    uint64_t total = expected_steps(trainer);
    bool has_end = total >= trainer->summary.steps && total > 0;
    return (struct ph_train_progress){
        .epoch = trainer->epoch,
        .epochs = (uint64_t)trainer->job->train->epochs,
        .step = trainer->summary.steps,
        .total_steps = total,
        .samples_per_s = (double)tally->samples / seconds,
        .loss = tally->steps > 0 ? tally->loss_sum / (double)tally->steps : (double)NAN,
        .auc = (double)NAN,
        .learning_rate = trainer->learning_rate,
        .seconds_left = has_end ? (double)(total - trainer->summary.steps) / rate : (double)NAN,
    };
}

static ph_status report(struct ph__trainer *trainer)
{
    struct ph_train_progress progress = progress_now(trainer);
    PH_TRY(ph__recent_auc(&trainer->recent, &progress.auc));
    PH_TRY(ph__report_progress(&trainer->report, &progress));
    ph__trainer_observe_memory(trainer);
    trainer->summary.train_seconds += ph__clock_seconds() - trainer->tally.started;
    PH_TRY(observe(trainer, &progress));
    restart_tally(trainer);
    return PH_OK;
}

/* ---- evaluation ------------------------------------------------------------------------------------------- */

static ph_status save_best(struct ph__trainer *trainer)
{
    char seed[24], step[24];
    snprintf(seed, sizeof seed, "%" PRIu64, trainer->job->seed);
    snprintf(step, sizeof step, "%" PRIu64, trainer->summary.steps);
    const char *const metadata[] = {
        "model", ph_model_name(trainer->job->model->kind), "seed", seed, "step", step, NULL};
    trainer->summary.best_epoch = trainer->epoch;
    return ph_checkpoint_save(trainer->summary.checkpoint_path, trainer->store, trainer->state, metadata);
}

static ph_status observe_evaluation(struct ph__trainer *trainer, bool is_best)
{
    struct ph_train_progress progress = {
        .epoch = trainer->epoch,
        .epochs = (uint64_t)trainer->job->train->epochs,
        .step = trainer->summary.steps,
        .learning_rate = trainer->learning_rate,
        .valid = trainer->metrics,
        .is_best = is_best,
    };
    PH_TRY(ph__report_metrics(
        &trainer->report, "valid", trainer->epoch, trainer->summary.steps, trainer->metrics));
    return observe(trainer, &progress);
}

/* Without validation data the latest model is the one to keep. */
static ph_status evaluate(struct ph__trainer *trainer, bool *is_stop)
{
    if (trainer->evaluated_step == trainer->summary.steps)
        return PH_OK;
    if (trainer->tally.steps > 0)
        PH_TRY(report(trainer));
    trainer->evaluated_step = trainer->summary.steps;
    struct ph__decision decision = {.is_best = true};
    if (trainer->job->valid_path != NULL) {
        PH_TRY(ph_scorer_evaluate(trainer->scorer, trainer->job->valid_path, trainer->metrics));
        decision = ph__protocol_evaluated(&trainer->protocol, trainer->job->train, trainer->metrics);
        PH_TRY(observe_evaluation(trainer, decision.is_best));
    }
    if (decision.is_best || !trainer->protocol.has_best)
        trainer->summary.valid = trainer->metrics[0];
    if (decision.is_best)
        PH_TRY(save_best(trainer));
    ph__trainer_observe_memory(trainer);
    *is_stop = *is_stop || decision.is_stop;
    restart_tally(trainer);
    return PH_OK;
}

/* ---- the loop --------------------------------------------------------------------------------------------- */

/* Profiling measures the first step in any case: what a sample costs by the operators' rules. */
static ph_status first_step_done(struct ph__trainer *trainer)
{
    double flops, bytes;
    ph_executor_cost(trainer->executor, &flops, &bytes);
    trainer->summary.flops_per_sample = flops / (double)trainer->summary.samples;
    ph__trainer_observe_memory(trainer);
    if (trainer->job->profile_file != NULL || trainer->job->trace_path != NULL)
        return PH_OK;
    return ph_executor_profile(trainer->executor, false, 0);
}

static ph_status check_stop(const struct ph__trainer *trainer)
{
    const volatile int *stop_signal = trainer->job->stop_signal;
    if (stop_signal == NULL || *stop_signal == 0)
        return PH_OK;
    return ph_fail(*stop_signal == SIGTERM ? PH_ERROR_TERMINATED : PH_ERROR_INTERRUPTED,
        "stopped by a signal at step %" PRIu64 "%s%s", trainer->summary.steps,
        trainer->summary.best_epoch > 0 ? "; the best model so far is " : ", before the first evaluation",
        trainer->summary.best_epoch > 0 ? trainer->summary.checkpoint_path : "");
}

static ph_status after_step(struct ph__trainer *trainer, bool *is_stop)
{
    const struct ph_train_settings *settings = trainer->job->train;
    uint64_t steps = trainer->summary.steps;
    if (steps == 1)
        PH_TRY(first_step_done(trainer));
    PH_TRY(check_stop(trainer));
    if (settings->max_steps > 0 && steps >= (uint64_t)settings->max_steps) {
        *is_stop = true;
        return PH_OK;
    }
    if (settings->evaluate_steps > 0 && steps % (uint64_t)settings->evaluate_steps == 0)
        return evaluate(trainer, is_stop);
    if (ph__clock_seconds() - trainer->tally.started >= settings->report_seconds)
        return report(trainer);
    return PH_OK;
}

static ph_status train_batches(struct ph__trainer *trainer, struct ph_batches *batches, bool *is_stop)
{
    while (!*is_stop) {
        const struct ph_batch *batch;
        PH_TRY(ph_batches_next(batches, &batch));
        if (batch == NULL)
            return PH_OK;
        PH_TRY(ph__trainer_step(trainer, batch));
        PH_TRY(after_step(trainer, is_stop));
    }
    return PH_OK;
}

static ph_status train_epoch(struct ph__trainer *trainer, bool *is_stop)
{
    const struct ph_train_job *job = trainer->job;
    struct ph_batches_options options = {
        .batch_size = (size_t)job->train->batch_size,
        .is_shuffled = job->is_shuffled,
        .shuffle_bytes = job->shuffle_bytes,
        .seed = job->seed,
        .epoch = trainer->epoch,
        .num_prefetched = job->num_prefetched,
    };
    struct ph_batches *batches;
    uint64_t first_step = trainer->summary.steps;
    PH_TRY(ph_batches_open(job->encoder, job->train_path, &options, &batches));
    ph_status status = train_batches(trainer, batches, is_stop);
    ph_batches_close(batches);
    PH_TRY(status);
    trainer->summary.epochs = trainer->epoch;
    if (!*is_stop)
        trainer->steps_per_epoch = trainer->summary.steps - first_step;
    return evaluate(trainer, is_stop);
}

static ph_status train_all(struct ph__trainer *trainer)
{
    bool is_stop = false;
    restart_tally(trainer);
    while (!is_stop && trainer->epoch < (uint64_t)trainer->job->train->epochs) {
        trainer->epoch++;
        bool is_last = false;
        PH_TRY(train_epoch(trainer, &is_last));
        is_stop = is_last;
    }
    return PH_OK;
}

/* ---- the end ---------------------------------------------------------------------------------------------- */

static ph_status test_best(struct ph__trainer *trainer)
{
    struct ph_train_summary *summary = &trainer->summary;
    if (summary->best_epoch == 0) /* no evaluation was defined: the last model is what there is */
        PH_TRY(save_best(trainer));
    if (trainer->job->valid_path != NULL)
        PH_TRY(ph_checkpoint_load(summary->checkpoint_path, trainer->store, trainer->state));
    summary->has_valid = trainer->job->valid_path != NULL;
    summary->has_test = trainer->job->test_path != NULL;
    if (!summary->has_test)
        return PH_OK;
    PH_TRY(ph_scorer_evaluate(trainer->scorer, trainer->job->test_path, trainer->metrics));
    summary->test = trainer->metrics[0];
    return ph__report_metrics(
        &trainer->report, "test", summary->best_epoch, summary->steps, trainer->metrics);
}

static ph_status write_profile(const struct ph__trainer *trainer)
{
    if (trainer->job->profile_file != NULL)
        PH_TRY(ph_executor_print_profile(trainer->executor, trainer->job->profile_file));
    if (trainer->job->trace_path != NULL)
        PH_TRY(ph_executor_write_trace(trainer->executor, trainer->job->trace_path));
    return PH_OK;
}

static ph_status finish(struct ph__trainer *trainer)
{
    struct ph_train_summary *summary = &trainer->summary;
    char path[sizeof summary->checkpoint_path];
    PH_TRY(test_best(trainer));
    PH_TRY(ph_checkpoint_digest(trainer->store, trainer->state, summary->checkpoint_sha256));
    summary->samples_per_s = (double)summary->samples / summary->train_seconds;
    ph__trainer_observe_memory(trainer);
    summary->peak_rss_bytes = ph__memory_peak_rss_bytes();
    ph__trainer_observe_plans(trainer);
    snprintf(path, sizeof path, "%s/summary.json", trainer->job->folder);
    PH_TRY(ph__summary_write(trainer->job, summary, ph_backend_describe(trainer->backend), path));
    return write_profile(trainer);
}

ph_status ph_train(const struct ph_train_job *job, struct ph_train_summary *summary_out)
{
    struct ph__trainer *trainer;
    PH_TRY(ph__trainer_create(job, &trainer));
    ph_status status = train_all(trainer);
    if (status == PH_OK)
        status = finish(trainer);
    if (status == PH_OK)
        *summary_out = trainer->summary;
    ph__trainer_destroy(trainer);
    return status;
}
