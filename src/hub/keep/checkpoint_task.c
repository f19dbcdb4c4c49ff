/* Runs tasks on checkpoint files; see checkpoint_task.h. */
#include "hub/keep/checkpoint_task.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/thread/parallel.h"
#include "hub/keep/job_checkpoint.h"
#include "net/waiter.h"

struct ph__checkpoint_task {
    struct ph__checkpoint_outcome outcome;
    char *path; /* path of the service's file */
    int bell;
    pthread_t thread;
    ph_status status;
    char text[PH_HUB_MAX_TEXT + 1];
    _Atomic bool is_done; /* set after all of the above */
};

/* Writes a file, without open parts of a former service of the same name. */
static ph_status write_file(const struct ph__checkpoint_task *task, const char *file)
{
    bool unused;
    PH_TRY(ph__job_parts_keep(task->path, PH_NO_ITERATION, task->outcome.order.settled_end, &unused));
    return ph__job_checkpoint_write(file, task->outcome.snapshot);
}

static ph_status keep_part(struct ph__checkpoint_task *task)
{
    return ph__job_parts_keep(
        task->path, task->outcome.order.part, task->outcome.order.settled_end, &task->outcome.has_kept);
}

/* Reads a file, and keeps it alone: the job goes on from here, so no other part fits any more. */
static ph_status read_file(struct ph__checkpoint_task *task, const char *file)
{
    PH_TRY(ph__job_checkpoint_read(file, task->outcome.snapshot));
    return keep_part(task);
}

/* Removes all files, the service's own last: without it the others would belong to no service. */
static ph_status remove_files(const struct ph__checkpoint_task *task)
{
    bool unused;
    PH_TRY(ph__job_parts_keep(task->path, PH_NO_ITERATION, task->outcome.order.settled_end, &unused));
    return ph__job_checkpoint_remove(task->path);
}

static ph_status do_work(struct ph__checkpoint_task *task, const char *file)
{
    switch (task->outcome.order.work) {
    case PH_CHECKPOINT_WRITE:
        return write_file(task, file);
    case PH_CHECKPOINT_READ:
        return read_file(task, file);
    case PH_CHECKPOINT_KEEP:
        return keep_part(task);
    default:
        return remove_files(task);
    }
}

static ph_status do_with_file(struct ph__checkpoint_task *task)
{
    char *file;
    PH_TRY(ph__job_part_path(task->path, task->outcome.order.part, &file));
    const ph_status status = do_work(task, file);
    free(file);
    return status;
}

static void *run(void *context)
{
    struct ph__checkpoint_task *task = context;
    const int bell = task->bell;
    task->status = do_with_file(task);
    if (task->status != PH_OK)
        snprintf(task->text, sizeof task->text, "%s", ph_error_text());
    atomic_store(&task->is_done, true);
    ph__doorbell_ring(bell);
    return NULL;
}

static void destroy(struct ph__checkpoint_task *task)
{
    free(task->path);
    free(task);
}

ph_status ph__checkpoint_task_start(const struct ph__checkpoint_order *order, const char *path,
    struct ph__snapshot *snapshot, int bell, struct ph__checkpoint_task **task_out)
{
    struct ph__checkpoint_task *task = calloc(1, sizeof *task);
    if (task == NULL)
        return ph__out_of_memory("%s: a checkpoint", path);
    task->outcome = (struct ph__checkpoint_outcome){.order = *order, .snapshot = snapshot};
    task->bell = bell;
    task->path = strdup(path);
    const int error = task->path != NULL ? ph__thread_start(&task->thread, run, task) : ENOMEM;
    if (error != 0) {
        destroy(task);
        return ph_fail(
            PH_ERROR_MEMORY, "%s: cannot start a thread for a checkpoint: %s", path, strerror(error));
    }
    *task_out = task;
    return PH_OK;
}

bool ph__checkpoint_task_is_done(const struct ph__checkpoint_task *task)
{
    return atomic_load(&task->is_done);
}

size_t ph__checkpoint_task_bytes(const struct ph__checkpoint_task *task)
{
    return task->outcome.snapshot != NULL ? task->outcome.snapshot->num_bytes : 0;
}

ph_status ph__checkpoint_task_finish(
    struct ph__checkpoint_task *task, struct ph__checkpoint_outcome *outcome_out)
{
    pthread_join(task->thread, NULL);
    *outcome_out = task->outcome;
    const ph_status status = task->status == PH_OK ? PH_OK : ph_fail(task->status, "%s", task->text);
    destroy(task);
    return status;
}
