/* One thing that is done with a checkpoint's file, by a thread of its own: core threads never wait for a
 * disk, and the control thread only to look into the folder: when it starts, and when a service is created or
 * joined that it does not know. */
#ifndef PH_HUB_CHECKPOINT_TASK_H
#define PH_HUB_CHECKPOINT_TASK_H

#include <stdbool.h>

#include "hub/keep/job_checkpoint.h"
#include "hub/wire/part_list.h"

/* What KEEP does, the others do besides, where several hubs share the job's keys: before they write or remove
 * the service's file, or after they have read a part. */
enum ph__checkpoint_work {
    PH_CHECKPOINT_WRITE,
    PH_CHECKPOINT_READ,
    PH_CHECKPOINT_KEEP,
    PH_CHECKPOINT_REMOVE
};

struct ph__checkpoint_order {
    enum ph__checkpoint_work work;
    uint64_t part;        /* iteration of the open part; PH_NO_ITERATION: the service's own file */
    uint64_t settled_end; /* ph__job_parts_keep(part, settled_end); 0: nothing of that */
};

struct ph__checkpoint_task;

/* Starts it. The path, of the service's file, is copied; the snapshot (NULL: for keeping and removing)
 * belongs to the task until it is finished. `bell` is rung when the task is done. PH_ERROR_MEMORY: the
 * snapshot is still the caller's. */
ph_status ph__checkpoint_task_start(const struct ph__checkpoint_order *order, const char *path,
    struct ph__snapshot *snapshot, int bell, struct ph__checkpoint_task **task_out);

bool ph__checkpoint_task_is_done(const struct ph__checkpoint_task *task); /* any thread */
size_t ph__checkpoint_task_bytes(const struct ph__checkpoint_task *task); /* of its snapshot */

/* What a task was asked to do, and what it has done. */
struct ph__checkpoint_outcome {
    struct ph__checkpoint_order order;
    struct ph__snapshot *snapshot; /* the caller's again; NULL: there was none */
    /* Whether the part that was read, or to be kept, is the kept one, even if removing others has failed
     * (ph__job_parts_keep). */
    bool has_kept;
};

/* Waits until it is done and frees it. Returns what became of the work, with ph_error_text(); the outcome is
 * written also when that is an error. */
ph_status ph__checkpoint_task_finish(
    struct ph__checkpoint_task *task, struct ph__checkpoint_outcome *outcome_out);

#endif
