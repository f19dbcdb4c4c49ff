#include "train/trainer.h"

#include <math.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "train/observer.h"

/* ---- progress ---- */

bool ph__trainer_is_simulated(const struct ph__trainer *trainer)
{
    return trainer->backend->simulator != NULL;
}

bool ph__trainer_is_out_of_steps(const struct ph__trainer *trainer)
{
    int64_t max_steps = trainer->job->train->max_steps;
    return max_steps > 0 && trainer->summary.steps >= (uint64_t)max_steps;
}

bool ph__trainer_is_over(const struct ph__trainer *trainer)
{
    const struct ph_train_settings *settings = trainer->job->train;
    if (ph__trainer_is_out_of_steps(trainer) || ph__protocol_is_over(&trainer->protocol, settings))
        return true;
    return !trainer->is_in_epoch && trainer->epoch >= (uint64_t)settings->epochs;
}

/* ---- memory ---- */

void ph__trainer_observe_memory(struct ph__trainer *trainer)
{
    uint64_t now = ph__memory_anonymous_bytes();
    if (now > trainer->summary.memory.peak_anonymous_bytes)
        trainer->summary.memory.peak_anonymous_bytes = now;
}

static void add_plan(struct ph_train_memory *memory, struct ph_memory_usage plan)
{
    memory->plan_bytes += plan.planned_bytes;
    memory->no_reuse_bytes += plan.no_reuse_bytes;
    memory->num_growths += plan.num_growths;
}

void ph__trainer_observe_plans(struct ph__trainer *trainer)
{
    struct ph_train_memory *memory = &trainer->summary.memory;
    memory->plan_bytes = memory->no_reuse_bytes = memory->num_growths = 0;
    add_plan(memory, ph_workspace_memory(trainer->workspace));
    if (trainer->scorer != NULL)
        add_plan(memory, ph_scorer_memory(trainer->scorer));
}

/* ---- reports ---- */

void ph__trainer_restart_tally(struct ph__trainer *trainer)
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
        .samples_per_s = tally->steps > 0 ? (double)tally->samples / seconds : (double)NAN,
        .loss = tally->steps > 0 ? tally->loss_sum / (double)tally->steps : (double)NAN,
        .auc = (double)NAN,
        .num_ranks = trainer->ranks.world_size,
        .learning_rate = trainer->learning_rate,
        .seconds_left = has_end ? (double)(total - trainer->summary.steps) / rate : (double)NAN,
    };
}

ph_status ph__trainer_log_progress(struct ph__trainer *trainer)
{
    struct ph_train_progress progress = progress_now(trainer);
    PH_TRY(ph__recent_auc(&trainer->recent, &progress.auc));
    PH_TRY(ph__metrics_log_progress(&trainer->metrics_log, &progress));
    ph__trainer_observe_memory(trainer);
    trainer->summary.train_seconds += ph__clock_seconds() - trainer->tally.started;
    trainer->reported_step = trainer->summary.steps;
    PH_TRY(ph__observer_progress(trainer->job->options.observer, &progress));
    ph__trainer_restart_tally(trainer);
    return PH_OK;
}

ph_status ph__trainer_log_evaluation(struct ph__trainer *trainer, bool is_best)
{
    struct ph_train_progress progress = progress_now(trainer);
    progress.valid = trainer->metrics;
    progress.is_best = is_best;
    PH_TRY(ph__recent_auc(&trainer->recent, &progress.auc));
    PH_TRY(ph__metrics_log_evaluation(
        &trainer->metrics_log, "valid", trainer->epoch, trainer->summary.steps, trainer->metrics));
    if (is_best)
        PH_TRY(ph__trainer_log_calibration(trainer, "valid"));
    return ph__observer_progress(trainer->job->options.observer, &progress);
}

ph_status ph__trainer_log_calibration(struct ph__trainer *trainer, const char *what)
{
    if (!trainer->statistics.is_on)
        return PH_OK;
    return ph__metrics_log_calibration(&trainer->metrics_log, what, trainer->epoch, trainer->summary.steps,
        &trainer->statistics.calibration);
}

void ph__trainer_note(const struct ph__trainer *trainer, const char *text)
{
    ph__observer_note(trainer->job->options.observer, text);
}
