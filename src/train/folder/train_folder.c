#include "train/folder/train_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/sum/digest.h"
#include "base/thread/clock.h"
#include "comm/collective/comm.h"
#include "phloem/version.h"
#include "store/checkpoint_names.h"
#include "train/config/kept_costs.h"
#include "train/config/kept_plan.h"
#include "train/folder/checkpoints.h"
#include "train/folder/resume_file.h"
#include "train/folder/summary.h"
#include "train/job_rows.h"
#include "train/observer.h"

/* Writes the path of a name in the folder. It fits: ph__trainer_open_folder has checked the length. */
static const char *path_in(const char *folder, const char *name, char path[PH_CHECKPOINT_PATH_BYTES])
{
    snprintf(path, PH_CHECKPOINT_PATH_BYTES, "%s/%s", folder, name);
    return path;
}

/* ---- checking the folder ---- */

static ph_status note_entry(void *argument, const char *name)
{
    bool *is_empty = argument;
    *is_empty = *is_empty && ph__checkpoints_is_temporary(name);
    return PH_OK;
}

/* Checks that a training without a checkpoint has begun in the folder, and has not finished. */
static ph_status check_has_begun(const char *folder)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    bool has_begun = ph__file_exists(path_in(folder, "config.yaml", path)) ||
                     ph__file_exists(path_in(folder, "encoder.json", path));
    if (!has_begun)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the folder holds no training to resume", folder);
    if (ph__file_exists(path_in(folder, "summary.json", path)))
        return ph_fail(PH_ERROR_CHECKPOINT,
            "%s: the folder holds a finished training, but no checkpoint to resume from", folder);
    return PH_OK;
}

ph_status ph__train_check_folder(const char *folder, bool is_resumed, bool *has_checkpoint_out)
{
    struct ph__checkpoint_list list;
    bool is_empty = true;
    if (strlen(folder) + sizeof "/model.safetensors" > PH_MODEL_PATH_BYTES)
        return ph_fail(PH_ERROR_USAGE, "the name of the output folder is too long: %s", folder);
    PH_TRY(ph__directory_create(folder));
    if (access(folder, W_OK | X_OK) != 0)
        return ph_fail(PH_ERROR_DISK, "%s: cannot write: %s", folder, strerror(errno));
    PH_TRY(ph__directory_visit(folder, note_entry, &is_empty));
    if (!is_empty && !is_resumed)
        return ph_fail(PH_ERROR_USAGE,
            "%s: the folder is not empty: --resume continues its training, another --out begins a new one",
            folder);
    PH_TRY(ph__checkpoints_list(folder, &list));
    *has_checkpoint_out = list.count > 0;
    ph__checkpoint_list_fini(&list);
    return is_empty || *has_checkpoint_out ? PH_OK : check_has_begun(folder);
}

/* ---- the newest checkpoint ---- */

/* Checks that the best model is undamaged and belongs to the checkpoint; each rank reads its share of the
 * files. */
static ph_status check_best(void *context, const struct ph__meanwhile *meanwhile)
{
    const struct ph__trainer *trainer = context;
    char path[PH_CHECKPOINT_PATH_BYTES], seal[65];
    if (trainer->best_step == 0)
        return PH_OK;
    ph__checkpoint_best_path(trainer->job->options.folder, trainer->best_step, path);
    PH_TRY(ph__checkpoint_check_seals(path, trainer->ranks.rank, trainer->ranks.world_size, meanwhile));
    PH_TRY(ph__checkpoint_read_seal(path, seal));
    if (strcmp(seal, trainer->best_seal) != 0)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the file is not the best model of the checkpoint", path);
    return PH_OK;
}

static ph_status read_checkpoint(struct ph__trainer *trainer, uint64_t step)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    ph__checkpoint_path(trainer->job->options.folder, step, path);
    PH_TRY(ph__resume_file_read(path, trainer));
    if (trainer->summary.steps != step)
        return ph_fail(
            PH_ERROR_CHECKPOINT, "%s: the checkpoint is of step %" PRIu64, path, trainer->summary.steps);
    return ph__comm_work_by_all(trainer->ranks.comm, check_best, trainer);
}

/* PH_ERROR_CONFIG when ranks see different checkpoints, and so do not share one folder. */
static ph_status agree_on_list(const struct ph__trainer *trainer, const struct ph__checkpoint_list *list)
{
    struct ph__arena arena = {0};
    const char *text = ph__arena_printf(&arena, "the checkpoints in %s=", trainer->job->options.folder);
    for (size_t i = 0; text != NULL && i < list->count; i++)
        text = ph__arena_printf(&arena, "%s %" PRIu64, text, list->steps[i]);
    const ph_status status =
        text != NULL ? ph__comm_agree(trainer->ranks.comm, text) : (ph_status)PH_ERROR_MEMORY;
    ph__arena_fini(&arena);
    return status;
}

/* Reads the newest valid checkpoint; once one is found, notes what is wrong with the newest one if that was
 * damaged. */
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

/* Checks that limits which the training's former part obeyed have only grown: a smaller one would have
 * stopped it. */
static ph_status check_growth(const struct ph__trainer *trainer)
{
    const struct ph__resumed *was = &trainer->resumed;
    uint64_t patience = (uint64_t)trainer->job->train->patience,
             max_bad_rows = trainer->job->reading.max_bad_rows;
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

static ph_status check_resumed_settings(const struct ph__trainer *trainer)
{
    const struct ph__train_job *job = trainer->job;
    const struct ph_train_settings *settings = job->train;
    uint64_t max_steps = (uint64_t)settings->max_steps;
    if (trainer->resumed.is_prepared != ph__job_rows_are_prepared(ph__job_train(job)))
        return ph_fail(PH_ERROR_CONFIG, "data.train was %s and is now %s, but may not change on resume",
            trainer->resumed.is_prepared ? "prepared data" : "text",
            trainer->resumed.is_prepared ? "text" : "prepared data");
    if (trainer->resumed.has_valid != ph__job_rows_exist(ph__job_valid(job)))
        return ph_fail(
            PH_ERROR_CONFIG, "data.valid may name another file on resume, but cannot be added or removed");
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

/* Sets what the checkpoint does not carry, and turns the executor's profile off unless it is asked for. */
static ph_status settle(struct ph__trainer *trainer)
{
    const struct ph__train_job *job = trainer->job;
    char note[128];
    trainer->tally.started = ph__clock_seconds() - trainer->tally.seconds;
    trainer->saved_seconds = ph__clock_seconds();
    trainer->saved_step = trainer->summary.resumed_step = trainer->summary.steps;
    if (strcmp(trainer->resumed.library, ph_version()) != 0) {
        snprintf(note, sizeof note, "the checkpoint was written by phloem %s; this is phloem %s",
            trainer->resumed.library, ph_version());
        ph__trainer_note(trainer, note);
    }
    if (job->options.profile_path != NULL || job->options.trace_path != NULL)
        return PH_OK;
    return ph_executor_profile(trainer->executor, false, 0); /* the cost of a sample is known */
}

/* Fills the trainer from the newest valid checkpoint of the folder; touches no file. Skips a damaged one with
 * a note. PH_ERROR_CHECKPOINT when none is valid, PH_ERROR_CONFIG when the settings do not fit it. */
static ph_status resume_newest(struct ph__trainer *trainer)
{
    struct ph__checkpoint_list list;
    PH_TRY(ph__checkpoints_list(trainer->job->options.folder, &list));
    ph_status status = trainer->ranks.comm != NULL ? agree_on_list(trainer, &list) : PH_OK;
    if (status == PH_OK)
        status = read_newest(trainer, &list);
    ph__checkpoint_list_fini(&list);
    PH_TRY(status);
    PH_TRY(check_resumed_settings(trainer));
    return settle(trainer);
}

/* ---- beginning and resuming ---- */

static ph_status digest_encoder(struct ph__trainer *trainer)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    path_in(trainer->job->options.folder, "encoder.json", path);
    if (ph__digest_file(path, trainer->encoder_sha256) != PH_OK)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s", ph_error_text());
    return PH_OK;
}

static ph_status keep_plan(const struct ph__trainer *trainer)
{
    const struct ph__ranks *ranks = &trainer->ranks;
    ph__kept_costs_remove(trainer->job->options.folder);
    return ranks->comm != NULL ? ph__kept_plan_write(trainer->job->options.folder, ranks->plan) : PH_OK;
}

static ph_status begin(struct ph__trainer *trainer)
{
    const struct ph__train_job *job = trainer->job;
    char path[PH_CHECKPOINT_PATH_BYTES];
    if (!ph__ranks_is_first(&trainer->ranks))
        return PH_OK;
    PH_TRY(ph__checkpoints_clean(job->options.folder));
    PH_TRY(ph__data_fingerprint_begin(&trainer->data, job));
    PH_TRY(ph__observer_start(trainer->job->options.observer));
    PH_TRY(ph_encoder_save(job->encoder, path_in(job->options.folder, "encoder.json", path)));
    PH_TRY(keep_plan(trainer));
    PH_TRY(ph__file_sync_name(job->options.folder));
    PH_TRY(digest_encoder(trainer));
    return ph__metrics_log_open(
        job->options.folder, (struct ph__event_place){0}, job->train->tensorboard, &trainer->metrics_log);
}

/* Compares this rank's data with the checkpoint's fingerprint: each rank may have its own files. */
static ph_status compare_data(void *context, const struct ph__meanwhile *meanwhile)
{
    struct ph__trainer *trainer = context;
    const struct ph__train_job *job = trainer->job;
    char path[PH_CHECKPOINT_PATH_BYTES];
    const char *text;
    ph__checkpoint_path(job->options.folder, trainer->summary.steps, path);
    PH_TRY(ph__data_fingerprint_begin(&trainer->data, job));
    PH_TRY(ph__resume_file_data(path, &trainer->arena, &text));
    if (text != NULL)
        return ph__data_fingerprint_resume(&trainer->data, job, text, path, meanwhile);
    ph__trainer_note(trainer, "the checkpoint was written by an older version, without a record of "
                              "data.train and data.valid: changes of them are not checked");
    return PH_OK;
}

/* Checks the data on all ranks, and keeps the fingerprint on the first rank, which saves it. */
static ph_status resume_data(struct ph__trainer *trainer)
{
    PH_TRY(ph__comm_work_by_all(trainer->ranks.comm, compare_data, trainer));
    if (!ph__ranks_is_first(&trainer->ranks))
        ph__data_fingerprint_fini(&trainer->data);
    return PH_OK;
}

/* Links the checkpoint's best model, which was checked, to DIR/model.safetensors, whatever is there now. */
static ph_status put_model_back(const struct ph__trainer *trainer)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    if (trainer->best_step == 0 || !ph__ranks_is_first(&trainer->ranks))
        return PH_OK;
    ph__checkpoint_best_path(trainer->job->options.folder, trainer->best_step, path);
    return ph__checkpoint_link(path, trainer->model_path);
}

/* Restores the best model of the checkpoint and the lines of metrics.jsonl up to it, and removes
 * summary.json, which describes an end that no longer holds. Checkpoints after this one were found damaged:
 * they are removed, so that they do not count as kept. */
static ph_status put_back(struct ph__trainer *trainer)
{
    const char *folder = trainer->job->options.folder;
    char path[PH_CHECKPOINT_PATH_BYTES];
    if (!ph__ranks_is_first(&trainer->ranks))
        return PH_OK;
    PH_TRY(ph__checkpoints_clean(folder));
    PH_TRY(ph__observer_start(trainer->job->options.observer));
    PH_TRY(keep_plan(trainer));
    PH_TRY(ph__trainer_prune(trainer));
    path_in(folder, "summary.json", path);
    if (unlink(path) != 0 && errno != ENOENT)
        return ph_fail(PH_ERROR_DISK, "%s: cannot remove: %s", path, strerror(errno));
    PH_TRY(put_model_back(trainer));
    const struct ph__event_place place = {trainer->summary.steps, trainer->report_bytes};
    return ph__metrics_log_open(folder, place, trainer->job->train->tensorboard, &trainer->metrics_log);
}

/* Reads summary.json if the training is over, as the first rank finds it; when another rank cannot read it,
 * all fail. *has_ended_out: nothing is left to do. A lost or damaged summary is made again, by a training
 * without any step left. */
static ph_status read_end(struct ph__trainer *trainer, struct ph_train_summary *ended_out,
    struct ph__split_bad_rows *bad_rows_out, bool *has_ended_out)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    ph_status status = PH_OK;
    struct ph__ranks_moment moment = {0};
    path_in(trainer->job->options.folder, "summary.json", path);
    if (ph__trainer_is_over(trainer)) {
        status = ph__summary_read(path, ended_out, bad_rows_out, NULL, 0);
        moment.is_due = status == PH_OK;
    }
    PH_TRY(ph__ranks_agree(&trainer->ranks, &moment));
    *has_ended_out = moment.is_due;
    return moment.is_due ? ph__ranks_all(&trainer->ranks, status) : PH_OK;
}

static ph_status resume(struct ph__trainer *trainer)
{
    struct ph_train_summary ended;
    struct ph__split_bad_rows bad_rows;
    bool has_ended;
    PH_TRY(digest_encoder(trainer));
    PH_TRY(resume_newest(trainer));
    PH_TRY(read_end(trainer, &ended, &bad_rows, &has_ended));
    if (!has_ended) {
        PH_TRY(resume_data(trainer));
        return put_back(trainer);
    }
    PH_TRY(put_model_back(trainer));
    ended.resumed_step = trainer->summary.resumed_step;
    ended.was_finished = true;
    trainer->summary = ended;
    trainer->bad_rows = bad_rows;
    return PH_OK;
}

ph_status ph__trainer_open_folder(struct ph__trainer *trainer)
{
    snprintf(trainer->model_path, sizeof trainer->model_path, "%s/model.safetensors",
        trainer->job->options.folder);
    return trainer->has_checkpoint ? resume(trainer) : begin(trainer);
}
