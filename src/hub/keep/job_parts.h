/* The files of a job's parts (part_list.h), beside the kept one: NAME~at-ITERATION.safetensors of NAME.safetensors. No other service's
 * name becomes that of a file (job_checkpoint.h): '~' is escaped, and what follows one in a name that was cut are digits.
 *
 * For tasks (checkpoint_task.h) but for the names. `path` is that of the kept file. */
#ifndef PH_HUB_JOB_PARTS_H
#define PH_HUB_JOB_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "phloem/status.h"

/* The path of the open part; of PH_NO_ITERATION: the kept file's. The caller frees it. PH_ERROR_MEMORY. */
ph_status ph__job_part_path(const char *path, uint64_t iteration, char **part_out);

bool ph__job_part_is_open(const char *name); /* whether a file of this name in the folder is an open part */

/* Whether it is one of the service whose kept file is `path`, and of which iteration. */
bool ph__job_part_is_of(const char *path, const char *name, uint64_t *iteration_out);

/* The open part of this iteration, if there is one, replaces the kept file; then the other open parts of iterations below
 * settled_end are removed. PH_NO_ITERATION: they only are. All of it is durable when it returns, and in this order. PH_ERROR_DISK.
 * is_kept_out: whether the first is done, also after an error: those below settled_end may be gone then. */
ph_status ph__job_parts_keep(const char *path, uint64_t iteration, uint64_t settled_end, bool *is_kept_out);

#endif
