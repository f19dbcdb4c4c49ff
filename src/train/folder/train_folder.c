#include "train/folder/train_folder.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/sum/digest.h"
#include "store/checkpoint_names.h"
#include "train/config/kept_plan.h"
#include "train/folder/checkpoints.h"
#include "train/folder/reporting.h"
#include "train/folder/resume.h"
#include "train/folder/resume_file.h"
#include "train/folder/summary.h"
#include "train/ranks/rank_exchange.h"

/* A name in the folder, which fits: ph__trainer_open_folder has checked its length. */
static const char *path_in(const char *folder, const char *name, char path[PH_CHECKPOINT_PATH_BYTES])
{
    snprintf(path, PH_CHECKPOINT_PATH_BYTES, "%s/%s", folder, name);
    return path;
}

/* ---- may it? ---------------------------------------------------------------------------------------------- */

static ph_status note_entry(void *argument, const char *name)
{
    bool *is_empty = argument;
    *is_empty = *is_empty && ph__checkpoints_is_temporary(name);
    return PH_OK;
}

/* There is no checkpoint: one has not been written yet, or this is something else. */
static ph_status check_has_begun(const char *folder)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    bool has_begun = ph__file_exists(path_in(folder, "config.yaml", path)) ||
                     ph__file_exists(path_in(folder, "encoder.json", path));
    if (!has_begun)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: holds no training to resume", folder);
    if (ph__file_exists(path_in(folder, "summary.json", path)))
        return ph_fail(
            PH_ERROR_CHECKPOINT, "%s: holds a finished training, but no checkpoint to resume from", folder);
    return PH_OK;
}

ph_status ph_train_check_folder(const char *folder, bool is_resumed, bool *has_checkpoint_out)
{
    struct ph__checkpoint_list list;
    bool is_empty = true;
    if (strlen(folder) + sizeof "/model.safetensors" > sizeof((struct ph_train_summary *)0)->checkpoint_path)
        return ph_fail(PH_ERROR_USAGE, "the name of the output folder is too long: %s", folder);
    PH_TRY(ph__directory_create(folder));
    if (access(folder, W_OK | X_OK) != 0)
        return ph_fail(PH_ERROR_DISK, "%s: cannot be written: %s", folder, strerror(errno));
    PH_TRY(ph__directory_visit(folder, note_entry, &is_empty));
    if (!is_empty && !is_resumed)
        return ph_fail(PH_ERROR_USAGE,
            "%s: is not empty: --resume goes on with a training there, another --out begins a new one",
            folder);
    PH_TRY(ph__checkpoints_list(folder, &list));
    *has_checkpoint_out = list.count > 0;
    ph__checkpoint_list_fini(&list);
    return is_empty || *has_checkpoint_out ? PH_OK : check_has_begun(folder);
}

/* ---- beginning and resuming ------------------------------------------------------------------------------- */

static ph_status tell_start(const struct ph__trainer *trainer)
{
    const struct ph_train_observer *observer = trainer->job->observer;
    return observer != NULL && observer->on_start != NULL ? observer->on_start(observer->context) : PH_OK;
}

static ph_status digest_encoder(struct ph__trainer *trainer)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    path_in(trainer->job->folder, "encoder.json", path);
    if (ph__digest_file(path, trainer->encoder_sha256) != PH_OK)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s", ph_error_text());
    return PH_OK;
}

static ph_status keep_plan(const struct ph__trainer *trainer)
{
    const struct ph__ranks *ranks = &trainer->ranks;
    return ranks->comm != NULL ? ph__kept_plan_write(trainer->job->folder, &ranks->plan) : PH_OK;
}

static ph_status begin(struct ph__trainer *trainer)
{
    const struct ph_train_job *job = trainer->job;
    char path[PH_CHECKPOINT_PATH_BYTES];
    if (!ph__ranks_is_first(&trainer->ranks))
        return PH_OK;
    PH_TRY(ph__checkpoints_clean(job->folder));
    PH_TRY(ph__data_record_begin(&trainer->data, job));
    PH_TRY(tell_start(trainer));
    PH_TRY(ph_encoder_save(job->encoder, path_in(job->folder, "encoder.json", path)));
    PH_TRY(keep_plan(trainer));
    PH_TRY(ph__file_sync_name(job->folder));
    PH_TRY(digest_encoder(trainer));
    return ph__report_open(
        job->folder, (struct ph__event_place){0}, job->train->tensorboard, &trainer->report);
}

/* Compares this rank's data with the checkpoint's record: each rank may have files of its own. */
static ph_status compare_data(void *context, const struct ph_meanwhile *meanwhile)
{
    struct ph__trainer *trainer = context;
    const struct ph_train_job *job = trainer->job;
    char path[PH_CHECKPOINT_PATH_BYTES];
    const char *text;
    ph__checkpoint_path(job->folder, trainer->summary.steps, path);
    PH_TRY(ph__data_record_begin(&trainer->data, job));
    PH_TRY(ph__resume_file_data(path, &trainer->arena, &text));
    if (text != NULL)
        return ph__data_record_resume(&trainer->data, job, text, path, meanwhile);
    ph__trainer_note(trainer, "the checkpoint was written by an older version and does not say what "
                              "data.train and data.valid held: "
                              "whether they have changed since is not checked");
    return PH_OK;
}

/* The record goes on with the first rank, which saves it. */
static ph_status resume_data(struct ph__trainer *trainer)
{
    PH_TRY(ph__rank_work_by_all(trainer->ranks.comm, compare_data, trainer));
    if (!ph__ranks_is_first(&trainer->ranks))
        ph__data_record_fini(&trainer->data);
    return PH_OK;
}

/* The checkpoint's best model, which has been looked at, under its first name: whatever has become of that. */
static ph_status put_model_back(const struct ph__trainer *trainer)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    if (trainer->best_step == 0 || !ph__ranks_is_first(&trainer->ranks))
        return PH_OK;
    ph__checkpoint_best_path(trainer->job->folder, trainer->best_step, path);
    return ph__checkpoint_link(path, trainer->summary.checkpoint_path);
}

/* The best model of the checkpoint and the lines of metrics.jsonl up to it; a summary belongs to an end that is no
 * longer the end. Checkpoints behind this one were found damaged: they go, so that they are not counted as kept. */
static ph_status put_back(struct ph__trainer *trainer)
{
    const char *folder = trainer->job->folder;
    char path[PH_CHECKPOINT_PATH_BYTES];
    if (!ph__ranks_is_first(&trainer->ranks))
        return PH_OK;
    PH_TRY(ph__checkpoints_clean(folder));
    PH_TRY(tell_start(trainer));
    PH_TRY(keep_plan(trainer));
    PH_TRY(ph__trainer_prune(trainer));
    path_in(folder, "summary.json", path);
    if (unlink(path) != 0 && errno != ENOENT)
        return ph_fail(PH_ERROR_DISK, "%s: cannot be removed: %s", path, strerror(errno));
    PH_TRY(put_model_back(trainer));
    const struct ph__event_place place = {trainer->summary.steps, trainer->report_bytes};
    return ph__report_open(folder, place, trainer->job->train->tensorboard, &trainer->report);
}

/* Whether nothing is left to do, and what summary.json says of a training that is over. One that is lost or damaged is made once
 * more, by a training that has no step left. As the first rank finds it: where another one cannot read it, all fail. */
static ph_status read_end(
    struct ph__trainer *trainer, struct ph_train_summary *ended_out, bool *has_ended_out)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    ph_status status = PH_OK;
    struct ph__ranks_moment moment = {0};
    path_in(trainer->job->folder, "summary.json", path);
    if (ph__trainer_is_over(trainer)) {
        status = ph__summary_read(path, ended_out, NULL, 0);
        moment.is_due = status == PH_OK;
    }
    PH_TRY(ph__ranks_agree(&trainer->ranks, &moment));
    *has_ended_out = moment.is_due;
    return moment.is_due ? ph__ranks_all(&trainer->ranks, status) : PH_OK;
}

static ph_status resume(struct ph__trainer *trainer)
{
    struct ph_train_summary ended;
    bool has_ended;
    PH_TRY(digest_encoder(trainer));
    PH_TRY(ph__trainer_resume(trainer));
    PH_TRY(read_end(trainer, &ended, &has_ended));
    if (!has_ended) {
        PH_TRY(resume_data(trainer));
        return put_back(trainer);
    }
    PH_TRY(put_model_back(trainer));
    ended.resumed_step = trainer->summary.resumed_step;
    ended.was_finished = true;
    trainer->summary = ended;
    return PH_OK;
}

ph_status ph__trainer_open_folder(struct ph__trainer *trainer)
{
    struct ph_train_summary *summary = &trainer->summary;
    snprintf(summary->checkpoint_path, sizeof summary->checkpoint_path, "%s/model.safetensors",
        trainer->job->folder);
    return trainer->has_checkpoint ? resume(trainer) : begin(trainer);
}
