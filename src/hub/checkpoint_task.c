/* See checkpoint_task.h. */
#include "hub/checkpoint_task.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "net/doorbell.h"

struct ph_checkpoint_task {
    enum ph_checkpoint_work work;
    char *path;
    struct ph_snapshot *snapshot;
    int bell;
    pthread_t thread;
    ph_status status;
    char text[PH_HUB_MAX_TEXT + 1];
    _Atomic bool is_done; /* set when all of the above is */
};

static ph_status do_work(struct ph_checkpoint_task *task)
{
    switch (task->work) {
    case PH_CHECKPOINT_WRITE:
        return ph__job_checkpoint_write(task->path, task->snapshot);
    case PH_CHECKPOINT_READ:
        return ph__job_checkpoint_read(task->path, task->snapshot);
    default:
        return ph__job_checkpoint_remove(task->path);
    }
}

static void *run(void *context)
{
    struct ph_checkpoint_task *task = context;
    const int bell = task->bell;
    task->status = do_work(task);
    if (task->status != PH_OK)
        snprintf(task->text, sizeof task->text, "%s", ph_error_text());
    atomic_store(&task->is_done, true);
    ph__doorbell_ring(bell);
    return NULL;
}

static void destroy(struct ph_checkpoint_task *task)
{
    free(task->path);
    free(task);
}

ph_status ph__checkpoint_task_start(enum ph_checkpoint_work work, const char *path,
    struct ph_snapshot *snapshot, int bell, struct ph_checkpoint_task **task_out)
{
    struct ph_checkpoint_task *task = calloc(1, sizeof *task);
    if (task == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory for a checkpoint", path);
    task->work = work;
    task->snapshot = snapshot;
    task->bell = bell;
    task->path = strdup(path);
    const int error = task->path != NULL ? ph__thread_start(&task->thread, run, task) : ENOMEM;
    if (error != 0) {
        destroy(task);
        return ph_fail(PH_ERROR_MEMORY, "%s: no thread for a checkpoint: %s", path, strerror(error));
    }
    *task_out = task;
    return PH_OK;
}

bool ph__checkpoint_task_is_done(const struct ph_checkpoint_task *task)
{
    return atomic_load(&task->is_done);
}

enum ph_checkpoint_work ph__checkpoint_task_work(const struct ph_checkpoint_task *task)
{
    return task->work;
}

size_t ph__checkpoint_task_bytes(const struct ph_checkpoint_task *task)
{
    return task->snapshot != NULL ? task->snapshot->num_bytes : 0;
}

ph_status ph__checkpoint_task_finish(struct ph_checkpoint_task *task, struct ph_snapshot **snapshot_out)
{
    pthread_join(task->thread, NULL);
    *snapshot_out = task->snapshot;
    const ph_status status = task->status == PH_OK ? PH_OK : ph_fail(task->status, "%s", task->text);
    destroy(task);
    return status;
}
