/* Task on a checkpoint's file, in a thread of its own. Core threads never wait for a disk; the control thread
 * waits only to look into the folder: at its start, and when an unknown service is created or joined. */
#ifndef PH_HUB_CHECKPOINT_TASK_H
#define PH_HUB_CHECKPOINT_TASK_H

#include <stdbool.h>

#include "hub/keep/job_checkpoint.h"
#include "hub/wire/part_list.h"

/* Work of a task. Where several hubs share the job's keys, the others also do what KEEP does: before they
 * write or remove the service's file, or after they have read a part. */
enum ph__checkpoint_work {
    PH_CHECKPOINT_WRITE,
    PH_CHECKPOINT_READ,
    PH_CHECKPOINT_KEEP,
    PH_CHECKPOINT_REMOVE
};

struct ph__checkpoint_order {
    enum ph__checkpoint_work work;
    uint64_t part;        /* iteration of the open part; PH_NO_ITERATION: the service's own file */
    uint64_t settled_end; /* ph__job_parts_keep(part, settled_end); 0: remove no open parts */
};

struct ph__checkpoint_task;

/* Starts a task. Copies the path, of the service's file. The task owns the snapshot (NULL: for keeping and
 * removing) until it is finished. Rings `bell` when it is done. PH_ERROR_MEMORY: the caller still owns the
 * snapshot. */
ph_status ph__checkpoint_task_start(const struct ph__checkpoint_order *order, const char *path,
    struct ph__snapshot *snapshot, int bell, struct ph__checkpoint_task **task_out);

bool ph__checkpoint_task_is_done(const struct ph__checkpoint_task *task); /* any thread */
size_t ph__checkpoint_task_bytes(const struct ph__checkpoint_task *task); /* bytes of its snapshot */

/* Order of a task, and its result. */
struct ph__checkpoint_outcome {
    struct ph__checkpoint_order order;
    struct ph__snapshot *snapshot; /* the caller's again; NULL: there was none */
    /* Set when the part that was read, or to be kept, is the kept one, even if removing others has failed
     * (ph__job_parts_keep). */
    bool has_kept;
};

/* Waits until the task is done, and frees it. Returns the status of the work, with ph_error_text(); writes
 * the outcome in any case. */
ph_status ph__checkpoint_task_finish(
    struct ph__checkpoint_task *task, struct ph__checkpoint_outcome *outcome_out);

#endif
