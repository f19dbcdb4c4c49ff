/* One thing that is done with a checkpoint's file, by a thread of its own: core threads never wait for a disk, and the control
 * thread only to look into the folder: when it starts, and when a service is created or joined that it does not know. */
#ifndef PH_HUB_CHECKPOINT_TASK_H
#define PH_HUB_CHECKPOINT_TASK_H

#include <stdbool.h>

#include "hub/job_checkpoint.h"

enum ph_checkpoint_work { PH_CHECKPOINT_WRITE, PH_CHECKPOINT_READ, PH_CHECKPOINT_REMOVE };

struct ph_checkpoint_task;

/* Starts it. The path is copied; the snapshot (NULL: for removing) belongs to the task until it is finished. `bell` is rung when the
 * task is done. PH_ERROR_MEMORY: the snapshot is still the caller's. */
ph_status ph__checkpoint_task_start(enum ph_checkpoint_work work, const char *path,
    struct ph_snapshot *snapshot, int bell, struct ph_checkpoint_task **task_out);

bool ph__checkpoint_task_is_done(const struct ph_checkpoint_task *task); /* any thread */
enum ph_checkpoint_work ph__checkpoint_task_work(const struct ph_checkpoint_task *task);
size_t ph__checkpoint_task_bytes(const struct ph_checkpoint_task *task); /* of its snapshot */

/* Waits until it is done and frees it; gives the snapshot back, if there was one, and what became of the work, with
 * ph_error_text(). */
ph_status ph__checkpoint_task_finish(struct ph_checkpoint_task *task, struct ph_snapshot **snapshot_out);

#endif
