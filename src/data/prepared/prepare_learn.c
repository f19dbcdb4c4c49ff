#include "data/prepared/prepare_learn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/thread/cpu.h"
#include "data/learn/learn.h"
#include "data/prepared/prepare_tasks.h"

struct learning {
    const struct ph_data_settings *settings;
    const struct ph_encoder *encoder;
    const struct ph__prepare_plan *plan;
    struct ph_arena arena;
    const char **prefixes; /* (num_tasks) of the training split */
    size_t num_tasks;
    uint64_t max_bytes; /* of ids, for each thread */
    struct ph__tasks tasks;
};

/* A task that tells how far it is. */
struct telling {
    struct learning *learning;
    size_t task;
    bool has_told; /* not of what was learnt before */
};

static bool advance(void *argument, uint64_t num_rows, uint64_t num_bytes)
{
    struct telling *telling = argument;
    telling->has_told = true;
    return ph__tasks_advance(&telling->learning->tasks, telling->task, num_rows, num_bytes);
}

static ph_status learn_task(void *argument, size_t number, size_t worker)
{
    (void)worker;
    struct learning *learning = argument;
    const struct ph__prepare_task *task = &learning->plan->tasks[number];
    struct ph__source_position start = {.file = task->file->number};
    struct telling telling = {.learning = learning, .task = number};
    struct ph__fit_summary summary;
    if (task->file->is_cut)
        PH_TRY(ph__prepare_task_first_line(task, &start.byte));
    const struct ph__learn_part part = {.path = learning->settings->train,
        .start = &start,
        .end_byte = task->file->is_cut ? task->end : 0,
        .prefix = learning->prefixes[number],
        .max_bytes = learning->max_bytes,
        .max_bad_rows = (uint64_t)learning->settings->max_bad_rows,
        .advance = advance,
        .advance_argument = &telling};
    PH_TRY(ph__learn_part(learning->encoder, &part, &summary));
    if (!telling.has_told)
        ph__tasks_skip(&learning->tasks, task->end - task->begin);
    return PH_OK;
}

/* The plan's first tasks are those of the training split. */
static ph_status name_tasks(struct learning *learning, const char *folder)
{
    const struct ph__prepare_plan *plan = learning->plan;
    learning->prefixes = ph__arena_alloc_array(&learning->arena, plan->num_tasks, sizeof *learning->prefixes);
    if (learning->prefixes == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < plan->num_tasks && plan->tasks[i].file->split == PH_SPLIT_TRAIN; i++) {
        learning->prefixes[i] = ph__arena_printf(&learning->arena, "%s/part-%05zu-%05zu", folder,
            plan->tasks[i].file->number, plan->tasks[i].part);
        if (learning->prefixes[i] == NULL)
            return PH_ERROR_MEMORY;
        learning->num_tasks++;
    }
    return PH_OK;
}

static ph_status learn(struct learning *learning, const char *folder,
    const struct ph_prepare_options *options, struct ph_encoder *encoder)
{
    size_t num_threads = options->num_threads != 0 ? options->num_threads : ph__cpu_count();
    PH_TRY(ph__directory_create(folder));
    PH_TRY(name_tasks(learning, folder));
    learning->max_bytes = options->vocabulary_bytes / (2 * num_threads); /* sorting takes as much again */
    struct ph__prepare_reporter reporter = ph__prepare_reporter_of(options, true);
    learning->tasks = (struct ph__tasks){.run = learn_task,
        .argument = learning,
        .num_tasks = learning->num_tasks,
        .stop_signal = options->stop_signal,
        .on_progress = ph__prepare_report,
        .progress_context = &reporter,
        .progress.total_bytes = ph__prepare_plan_text_bytes(learning->plan, learning->num_tasks)};
    PH_TRY(ph__tasks_run(&learning->tasks, num_threads));
    return ph__learn_finish(learning->settings->train, learning->prefixes, learning->num_tasks,
        options->vocabulary_bytes, encoder);
}

ph_status ph__prepare_learn(const struct ph_data_settings *settings, const struct ph__prepare_plan *plan,
    const char *folder, const struct ph_prepare_options *options, struct ph_encoder *encoder)
{
    struct learning learning = {.settings = settings, .encoder = encoder, .plan = plan};
    ph_status status = learn(&learning, folder, options, encoder);
    ph__arena_fini(&learning.arena);
    return status;
}

struct cleaning {
    const char *folder;
    struct ph_arena arena;
};

static ph_status cannot_remove(const char *path)
{
    return ph_fail(PH_ERROR_DISK, "%s: cannot be removed: %s", path, strerror(errno));
}

static ph_status remove_entry(void *argument, const char *name)
{
    struct cleaning *cleaning = argument;
    const char *path = ph__path_join(&cleaning->arena, cleaning->folder, name);
    if (path == NULL)
        return PH_ERROR_MEMORY;
    return unlink(path) == 0 ? PH_OK : cannot_remove(path);
}

ph_status ph__prepare_learn_clean(const char *folder)
{
    struct cleaning cleaning = {.folder = folder};
    ph_status status = ph__directory_visit(folder, remove_entry, &cleaning);
    ph__arena_fini(&cleaning.arena);
    if (status == PH_OK && rmdir(folder) != 0 && errno != ENOENT)
        status = cannot_remove(folder);
    return status;
}
