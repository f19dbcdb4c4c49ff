/* Checkpoints under their names: one may be a file or a folder of files (checkpoint_folder.h), and whoever
 * links, removes or replaces it need not know which. Errors name the path. */
#ifndef PH_STORE_CHECKPOINT_NAMES_H
#define PH_STORE_CHECKPOINT_NAMES_H

#include <stdbool.h>

#include "base/memory/arena.h"
#include "base/thread/stop.h"
#include "phloem/status.h"

/* Tells whether the path is a folder without its index, which is no checkpoint: one is being written, or
 * whoever wrote it has ended. */
bool ph__checkpoint_is_half_written(const char *path);

/* Where a checkpoint is written that is to stand at `path`, until it is whole: "PATH.tmp", which the next
 * process removes where this one does not get that far. The arena's; NULL: no memory. */
const char *ph__checkpoint_draft(struct ph__arena *arena, const char *path);
/* What is whole and on disk at the draft's place takes that of the checkpoint, whatever stands there: in one
 * moment, but where the file system cannot exchange names; there nothing stands at `path` for a while.
 * Durable. PH_ERROR_DISK. */
ph_status ph__checkpoint_publish(const char *path);

/* Makes `to` another name of the checkpoint `from`, durably, in place of what is there, and not at all where
 * `to` has the seal of `from`. PH_ERROR_DISK. */
ph_status ph__checkpoint_link(const char *from, const char *to);

/* Removes it; of a folder the index first. Nothing there is fine. PH_ERROR_DISK. */
ph_status ph__checkpoint_remove(const char *path);

/* The seal that it carries: the file's, or the index's, which knows those of its files. PH_ERROR_CHECKPOINT.
 */
ph_status ph__checkpoint_read_seal(const char *path, char seal_out[65]);
/* As ph__folder_check_seals, with ph__folder_set_meanwhile. */
ph_status ph__checkpoint_check_seals(
    const char *path, size_t first, size_t step, const struct ph__meanwhile *meanwhile);

#endif
