#include "train/folder/checkpoints.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "base/thread/stop.h"
#include "store/checkpoint_names.h"
#include "store/tensor_list.h"
#include "train/folder/resume_file.h"

#define SUBFOLDER "checkpoints"
#define SUFFIX ".safetensors"

static const char *make_path(
    const char *folder, const char *prefix, uint64_t step, char path[PH_CHECKPOINT_PATH_BYTES])
{
    snprintf(path, PH_CHECKPOINT_PATH_BYTES, "%s/" SUBFOLDER "/%s%012" PRIu64 SUFFIX, folder, prefix, step);
    return path;
}

const char *ph__checkpoint_path(const char *folder, uint64_t step, char path[PH_CHECKPOINT_PATH_BYTES])
{
    return make_path(folder, "step-", step, path);
}

const char *ph__checkpoint_best_path(const char *folder, uint64_t step, char path[PH_CHECKPOINT_PATH_BYTES])
{
    return make_path(folder, "best-", step, path);
}

ph_status ph__checkpoints_create(const char *folder)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    snprintf(path, sizeof path, "%s/" SUBFOLDER, folder);
    if (ph__file_exists(path))
        return PH_OK;
    PH_TRY(ph__directory_create(path));
    return ph__file_sync_name(path);
}

/* ---- listing ---- */

/* "step-000000000012.safetensors" */
static bool parse_name(const char *name, const char *prefix, uint64_t *step_out)
{
    size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0 || name[length] < '0' || name[length] > '9')
        return false;
    char *end;
    errno = 0;
    *step_out = strtoull(name + length, &end, 10);
    return errno == 0 && strcmp(end, SUFFIX) == 0;
}

static int compare_newest_first(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left > right ? -1 : left < right;
}

struct listing {
    const char *prefix;
    struct ph__checkpoint_list *list;
};

static ph_status add_name(void *argument, const char *name)
{
    const struct listing *listing = argument;
    struct ph__checkpoint_list *list = listing->list;
    uint64_t step;
    if (!parse_name(name, listing->prefix, &step))
        return PH_OK;
    PH_TRY(ph__array_reserve((void **)&list->steps, &list->capacity, list->count + 1, sizeof *list->steps));
    list->steps[list->count++] = step;
    return PH_OK;
}

static ph_status list_files(const char *folder, const char *prefix, struct ph__checkpoint_list *list_out)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    snprintf(path, sizeof path, "%s/" SUBFOLDER, folder);
    *list_out = (struct ph__checkpoint_list){0};
    ph_status status = ph__directory_visit(path, add_name, &(struct listing){prefix, list_out});
    if (status != PH_OK)
        ph__checkpoint_list_fini(list_out);
    if (list_out->count > 0)
        qsort(list_out->steps, list_out->count, sizeof *list_out->steps, compare_newest_first);
    return status;
}

ph_status ph__checkpoints_list(const char *folder, struct ph__checkpoint_list *list_out)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    size_t count = 0;
    PH_TRY(list_files(folder, "step-", list_out));
    for (size_t i = 0; i < list_out->count; i++)
        if (!ph__checkpoint_is_half_written(ph__checkpoint_path(folder, list_out->steps[i], path)))
            list_out->steps[count++] = list_out->steps[i];
    list_out->count = count;
    return PH_OK;
}

void ph__checkpoint_list_fini(struct ph__checkpoint_list *list)
{
    free(list->steps);
    *list = (struct ph__checkpoint_list){0};
}

/* ---- removing ---- */

/* Removes the checkpoints that are too new or too old, and leaves the kept ones in the list. */
static ph_status prune_steps(
    const char *folder, uint64_t newest, size_t num_kept, struct ph__checkpoint_list *list)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        uint64_t step = list->steps[i];
        if (step == newest || (step < newest && count < num_kept))
            list->steps[count++] = step;
        else
            PH_TRY(ph__checkpoint_remove(ph__checkpoint_path(folder, step, path)));
    }
    list->count = count;
    return PH_OK;
}

/* Returns true when a kept checkpoint other than the newest, which is the first, needs the best model of that
 * step. A checkpoint that cannot be read may need any. */
static bool is_needed(const char *folder, const struct ph__checkpoint_list *kept, uint64_t best_step)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    for (size_t i = 1; i < kept->count; i++) {
        uint64_t needed;
        ph__checkpoint_path(folder, kept->steps[i], path);
        if (ph__resume_file_best_step(path, &needed) != PH_OK || needed == best_step)
            return true;
    }
    return false;
}

static ph_status prune_bests(const char *folder, uint64_t newest_best, const struct ph__checkpoint_list *kept,
    const struct ph__checkpoint_list *bests)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    for (size_t i = 0; i < bests->count; i++)
        if (bests->steps[i] != newest_best && !is_needed(folder, kept, bests->steps[i]))
            PH_TRY(ph__checkpoint_remove(ph__checkpoint_best_path(folder, bests->steps[i], path)));
    return PH_OK;
}

ph_status ph__checkpoints_prune(const char *folder, uint64_t newest, uint64_t newest_best, size_t num_kept)
{
    struct ph__checkpoint_list steps = {0}, bests = {0};
    ph_status status = list_files(folder, "step-", &steps);
    if (status == PH_OK)
        status = list_files(folder, "best-", &bests);
    if (status == PH_OK)
        status = prune_steps(folder, newest, num_kept, &steps);
    if (status == PH_OK)
        status = prune_bests(folder, newest_best, &steps, &bests);
    ph__checkpoint_list_fini(&steps);
    ph__checkpoint_list_fini(&bests);
    return status;
}

bool ph__checkpoints_is_temporary(const char *name)
{
    static const char *const names[] = {
        "config.yaml.tmp", "encoder.json.tmp", "model.safetensors.tmp", "summary.json.tmp"};
    bool is_one = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        is_one = is_one || strcmp(name, names[i]) == 0;
    return is_one;
}

static bool has_temporary_suffix(const char *name)
{
    return ph__path_ends_in(name, ".tmp") && strcmp(name, ".tmp") != 0;
}

struct cleaning {
    const char *folder;
    bool (*is_temporary)(const char *name);
    struct ph__arena arena;
};

static ph_status remove_temporary(void *argument, const char *name)
{
    struct cleaning *cleaning = argument;
    if (!cleaning->is_temporary(name))
        return PH_OK;
    const char *path = ph__path_join(&cleaning->arena, cleaning->folder, name);
    return path != NULL ? ph__checkpoint_remove(path) : PH_ERROR_MEMORY;
}

/* Removes the files of a folder whose name is_temporary accepts. */
static ph_status clean_folder(const char *folder, bool (*is_temporary)(const char *name))
{
    struct cleaning cleaning = {.folder = folder, .is_temporary = is_temporary};
    ph_status status = ph__directory_visit(folder, remove_temporary, &cleaning);
    ph__arena_fini(&cleaning.arena);
    return status;
}

ph_status ph__checkpoints_clean(const char *folder)
{
    char path[PH_CHECKPOINT_PATH_BYTES];
    snprintf(path, sizeof path, "%s/" SUBFOLDER, folder);
    PH_TRY(clean_folder(folder, ph__checkpoints_is_temporary));
    return clean_folder(path, has_temporary_suffix);
}

/* ---- saving ---- */

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
        ": %s: the model is not saved; check the data and the learning rate",
        trainer->epoch, trainer->summary.steps, ph_error_text());
}

/* Links the best model to its second name first: a visible checkpoint has all its parts. */
static ph_status prepare_checkpoint(struct ph__trainer *trainer)
{
    const char *folder = trainer->job->options.folder;
    char path[PH_CHECKPOINT_PATH_BYTES];
    PH_TRY(ph__checkpoints_create(folder));
    if (trainer->best_step > 0)
        PH_TRY(ph__checkpoint_link(
            trainer->model_path, ph__checkpoint_best_path(folder, trainer->best_step, path)));
    return ph__metrics_log_sync(&trainer->metrics_log, &trainer->report_bytes);
}

ph_status ph__trainer_prune(const struct ph__trainer *trainer)
{
    const struct ph__train_job *job = trainer->job;
    return ph__checkpoints_prune(job->options.folder, trainer->summary.steps, trainer->best_step,
        (size_t)job->train->checkpoints_kept);
}

static ph_status write_checkpoint(struct ph__trainer *trainer)
{
    const char *folder = trainer->job->options.folder;
    char path[PH_CHECKPOINT_PATH_BYTES];
    const bool is_first = ph__ranks_is_first(&trainer->ranks);
    PH_TRY(ph__ranks_all(&trainer->ranks, is_first ? prepare_checkpoint(trainer) : PH_OK));
    PH_TRY(ph__resume_file_write(ph__checkpoint_path(folder, trainer->summary.steps, path), trainer));
    return is_first ? ph__trainer_prune(trainer) : PH_OK;
}

ph_status ph__trainer_save(struct ph__trainer *trainer)
{
    if (ph__trainer_is_simulated(trainer))
        return PH_OK;
    double began = ph__clock_seconds();
    trainer->tally.seconds = began - trainer->tally.started;
    trainer->summary.peak_rss_bytes = ph__memory_peak_rss_bytes();
    PH_TRY(ph__trainer_check_model(trainer));
    PH_TRY(write_checkpoint(trainer));
    PH_TRY(ph__probing_write(&trainer->probing, trainer->summary.steps, trainer->job->options.folder));
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
        "stopped by a signal at step %" PRIu64 "; %s is saved: --resume continues from it",
        trainer->summary.steps,
        ph__checkpoint_path(trainer->job->options.folder, trainer->summary.steps, path));
}
