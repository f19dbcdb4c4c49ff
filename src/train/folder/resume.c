#include "train/folder/resume.h"

#include <inttypes.h>
#include <string.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "base/thread/stop.h"
#include "comm/collective/comm.h"
#include "phloem/version.h"
#include "store/checkpoint_names.h"
#include "store/tensor_list.h"
#include "train/folder/checkpoints.h"
#include "train/folder/reporting.h"
#include "train/folder/resume_file.h"
#include "train/job_rows.h"
#include "train/ranks/rank_exchange.h"

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

/* ---- saving ----------------------------------------------------------------------------------------------- */

static ph_status check_weights(const struct ph_store *store)
{
    struct ph__tensor_list list = {0};
    ph_status status = ph__tensor_list_add_store(&list, store);
    if (status == PH_OK)
        status = ph__tensor_list_check_finite(&list);
    ph__tensor_list_fini(&list);
    return status;
}

ph_status ph__trainer_check_model(const struct ph__trainer *trainer)
{
    ph_status status = check_weights(trainer->store);
    if (status != PH_ERROR_DATA)
        return status;
    return ph_fail(PH_ERROR_DIVERGED,
        "epoch %" PRIu64 ", step %" PRIu64
        ": %s: the model is not saved; look at the data and the learning rate",
        trainer->epoch, trainer->summary.steps, ph_error_text());
}

/* The best model gets its second name first: a checkpoint that is there has all that belongs to it. */
static ph_status prepare_checkpoint(struct ph__trainer *trainer)
{
    const char *folder = trainer->job->folder;
    char path[PH_CHECKPOINT_PATH_BYTES];
    PH_TRY(ph__checkpoints_create(folder));
    if (trainer->best_step > 0)
        PH_TRY(ph__checkpoint_link(
            trainer->summary.checkpoint_path, ph__checkpoint_best_path(folder, trainer->best_step, path)));
    return ph__report_sync(&trainer->report, &trainer->report_bytes);
}

ph_status ph__trainer_prune(const struct ph__trainer *trainer)
{
    const struct ph_train_job *job = trainer->job;
    return ph__checkpoints_prune(
        job->folder, trainer->summary.steps, trainer->best_step, (size_t)job->train->checkpoints_kept);
}

static ph_status write_checkpoint(struct ph__trainer *trainer)
{
    const char *folder = trainer->job->folder;
    char path[PH_CHECKPOINT_PATH_BYTES];
    const bool is_first = ph__ranks_is_first(&trainer->ranks);
    PH_TRY(ph__ranks_all(&trainer->ranks, is_first ? prepare_checkpoint(trainer) : PH_OK));
    PH_TRY(ph__resume_file_write(ph__checkpoint_path(folder, trainer->summary.steps, path), trainer));
    return is_first ? ph__trainer_prune(trainer) : PH_OK;
}

ph_status ph__trainer_save(struct ph__trainer *trainer)
{
    double began = ph__clock_seconds();
    trainer->tally.seconds = began - trainer->tally.started;
    trainer->summary.peak_rss_bytes = ph__memory_peak_rss_bytes();
    PH_TRY(ph__trainer_check_model(trainer));
    PH_TRY(write_checkpoint(trainer));
    trainer->saved_step = trainer->summary.steps;
    trainer->saved_seconds = ph__clock_seconds();
    trainer->tally.started += trainer->saved_seconds - began;
    return PH_OK;
}

bool ph__trainer_is_save_due(const struct ph__trainer *trainer)
{
    const struct ph_train_settings *settings = trainer->job->train;
    uint64_t steps = trainer->summary.steps;
    bool is_due = settings->checkpoint_steps > 0 && steps % (uint64_t)settings->checkpoint_steps == 0;
    if (!is_due && settings->checkpoint_seconds > 0)
        is_due = ph__clock_seconds() - trainer->saved_seconds >= settings->checkpoint_seconds;
    return is_due;
}

ph_status ph__trainer_save_at_end(struct ph__trainer *trainer)
{
    const struct ph_train_settings *settings = trainer->job->train;
    bool is_on = settings->checkpoint_seconds > 0 || settings->checkpoint_steps > 0;
    return is_on || ph__trainer_is_over(trainer) ? ph__trainer_save(trainer) : PH_OK;
}

int ph__trainer_signal(const struct ph__trainer *trainer)
{
    const volatile int *stop_signal = trainer->job->stop_signal;
    return stop_signal != NULL ? *stop_signal : 0;
}

ph_status ph__fail_stopped_early(ph_status status)
{
    return ph_fail(status, "stopped by a signal before the first step: there is nothing to save");
}

ph_status ph__trainer_stop(struct ph__trainer *trainer, int signal)
{
    if (trainer->summary.steps == 0)
        return ph__fail_stopped_early(ph__stop_status(&signal));
    PH_TRY(ph__trainer_save(trainer));
    return ph__trainer_stop_saved(trainer, signal);
}

ph_status ph__trainer_stop_saved(const struct ph__trainer *trainer, int signal)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    return ph_fail(ph__stop_status(&signal),
        "stopped by a signal at step %" PRIu64 "; %s is saved: --resume goes on from it",
        trainer->summary.steps, ph__checkpoint_path(trainer->job->folder, trainer->summary.steps, path));
}

/* ---- resuming --------------------------------------------------------------------------------------------- */

/* Of the files each rank reads its share. */
static ph_status check_best(void *context, const struct ph_meanwhile *meanwhile)
{
    const struct ph__trainer *trainer = context;
    char path[PH_CHECKPOINT_PATH_BYTES], seal[65];
    if (trainer->best_step == 0)
        return PH_OK;
    ph__checkpoint_best_path(trainer->job->folder, trainer->best_step, path);
    PH_TRY(ph__checkpoint_check_seals(path, trainer->ranks.rank, trainer->ranks.world_size, meanwhile));
    PH_TRY(ph__checkpoint_read_seal(path, seal));
    if (strcmp(seal, trainer->best_seal) != 0)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: is not the best model of the checkpoint", path);
    return PH_OK;
}

static ph_status read_checkpoint(struct ph__trainer *trainer, uint64_t step)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    ph__checkpoint_path(trainer->job->folder, step, path);
    PH_TRY(ph__resume_file_read(path, trainer));
    if (trainer->summary.steps != step)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: is of step %" PRIu64, path, trainer->summary.steps);
    return ph__rank_work_by_all(trainer->ranks.comm, check_best, trainer);
}

/* Ranks that see different checkpoints have not one folder. */
static ph_status agree_on_list(const struct ph__trainer *trainer, const struct ph__checkpoint_list *list)
{
    struct ph_arena arena = {0};
    const char *text = ph__arena_printf(&arena, "the checkpoints in %s=", trainer->job->folder);
    for (size_t i = 0; text != NULL && i < list->count; i++)
        text = ph__arena_printf(&arena, "%s %" PRIu64, text, list->steps[i]);
    const ph_status status =
        text != NULL ? ph__comm_agree(trainer->ranks.comm, text) : (ph_status)PH_ERROR_MEMORY;
    ph__arena_fini(&arena);
    return status;
}

/* The newest that is valid; what is wrong with those after it is told once it is clear that one is. */
static ph_status read_newest(struct ph__trainer *trainer, const struct ph__checkpoint_list *list)
{
    char problem[768] = "", note[1024];
    for (size_t i = 0; i < list->count; i++) {
        ph_status status = read_checkpoint(trainer, list->steps[i]);
        if (status == PH_OK && i > 0) {
            snprintf(
                note, sizeof note, "%s; resuming from step %" PRIu64 " instead", problem, list->steps[i]);
            ph__trainer_note(trainer, note);
        }
        if (status != PH_ERROR_CHECKPOINT)
            return status;
        if (i == 0)
            snprintf(problem, sizeof problem, "%s", ph_error_text());
    }
    return ph_fail(PH_ERROR_CHECKPOINT, "no valid checkpoint: %s", problem);
}

/* What a former part of the training went by may only become more patient: it could not have been as it was. */
static ph_status check_growth(const struct ph__trainer *trainer)
{
    const struct ph__resumed *was = &trainer->resumed;
    uint64_t patience = (uint64_t)trainer->job->train->patience, max_bad_rows = trainer->job->max_bad_rows;
    bool is_impatient = patience != 0 && (was->patience == 0 || patience < was->patience);
    if (is_impatient)
        return ph_fail(PH_ERROR_CONFIG,
            "train.patience was '%" PRIu64 "' and is now '%" PRIu64 "', but may only grow on resume",
            was->patience, patience);
    if (max_bad_rows < was->max_bad_rows)
        return ph_fail(PH_ERROR_CONFIG,
            "data.max_bad_rows was '%" PRIu64 "' and is now '%" PRIu64 "', but may only grow on resume",
            was->max_bad_rows, max_bad_rows);
    return PH_OK;
}

static ph_status check_settings(const struct ph__trainer *trainer)
{
    const struct ph_train_job *job = trainer->job;
    const struct ph_train_settings *settings = job->train;
    uint64_t max_steps = (uint64_t)settings->max_steps;
    if (trainer->resumed.was_prepared != ph__job_rows_are_prepared(ph__job_train(job)))
        return ph_fail(PH_ERROR_CONFIG, "data.train was %s and is now %s, which may not change on resume",
            trainer->resumed.was_prepared ? "prepared data" : "text",
            trainer->resumed.was_prepared ? "text" : "prepared data");
    if (trainer->resumed.had_valid != ph__job_rows_exist(ph__job_valid(job)))
        return ph_fail(PH_ERROR_CONFIG, "data.valid may name another place on resume, but not come or go");
    if ((uint64_t)settings->epochs < trainer->epoch)
        return ph_fail(PH_ERROR_CONFIG,
            "train.epochs is %" PRId64 ", but the checkpoint is of epoch %" PRIu64, settings->epochs,
            trainer->epoch);
    if (max_steps > 0 && max_steps < trainer->summary.steps)
        return ph_fail(PH_ERROR_CONFIG,
            "train.max_steps is %" PRIu64 ", but the checkpoint is of step %" PRIu64, max_steps,
            trainer->summary.steps);
    if (ph__schedule_ends_with_max_steps(settings) && max_steps != trainer->resumed.max_steps)
        return ph_fail(PH_ERROR_CONFIG,
            "train.max_steps was '%" PRIu64 "' and is now '%" PRIu64
            "', but may not change on resume where schedule cosine ends with it",
            trainer->resumed.max_steps, max_steps);
    return check_growth(trainer);
}

/* What this process has that the checkpoint does not carry. */
static ph_status settle(struct ph__trainer *trainer)
{
    const struct ph_train_job *job = trainer->job;
    char note[128];
    trainer->tally.started = ph__clock_seconds() - trainer->tally.seconds;
    trainer->saved_seconds = ph__clock_seconds();
    trainer->saved_step = trainer->summary.resumed_step = trainer->summary.steps;
    if (strcmp(trainer->resumed.library, ph_version()) != 0) {
        snprintf(note, sizeof note, "the checkpoint was written by version %s, this is %s",
            trainer->resumed.library, ph_version());
        ph__trainer_note(trainer, note);
    }
    if (job->profile_file != NULL || job->trace_path != NULL)
        return PH_OK;
    return ph_executor_profile(trainer->executor, false, 0); /* what a sample costs is known */
}

ph_status ph__trainer_resume(struct ph__trainer *trainer)
{
    struct ph__checkpoint_list list;
    PH_TRY(ph__checkpoints_list(trainer->job->folder, &list));
    ph_status status = trainer->ranks.comm != NULL ? agree_on_list(trainer, &list) : PH_OK;
    if (status == PH_OK)
        status = read_newest(trainer, &list);
    ph__checkpoint_list_fini(&list);
    PH_TRY(status);
    PH_TRY(check_settings(trainer));
    return settle(trainer);
}
