/* Checkpoints by path: a checkpoint may be a file or a folder of files (checkpoint_folder.h), and callers
 * that link, remove or replace one need not know which. Errors name the path. */
#ifndef PH_STORE_CHECKPOINT_NAMES_H
#define PH_STORE_CHECKPOINT_NAMES_H

#include <stdbool.h>

#include "base/memory/arena.h"
#include "base/thread/stop.h"
#include "phloem/status.h"

/* Tells whether the path is a folder without its index, which is no checkpoint: it is being written, or its
 * writer has ended early. */
bool ph__checkpoint_is_half_written(const char *path);

/* Returns the path at which a checkpoint for `path` is written until it is whole: "PATH.tmp". The next
 * process removes a draft that an earlier one left. In the arena; NULL when out of memory. */
const char *ph__checkpoint_draft(struct ph__arena *arena, const char *path);
/* Moves the whole, durable draft to `path`, replacing a checkpoint there: atomically, except on a file system
 * that cannot exchange names, where `path` does not exist for a while. Durable. PH_ERROR_DISK. */
ph_status ph__checkpoint_publish(const char *path);

/* Makes `to` another name of the checkpoint `from`, durably, replacing a checkpoint there. Does nothing when
 * folder `to` already has the seal of folder `from`. PH_ERROR_DISK. */
ph_status ph__checkpoint_link(const char *from, const char *to);

/* Removes a checkpoint, a folder's index first. A missing one is fine. PH_ERROR_DISK. */
ph_status ph__checkpoint_remove(const char *path);

/* Reads the seal of the file, or of the index, which holds the seals of its files. PH_ERROR_CHECKPOINT. */
ph_status ph__checkpoint_read_seal(const char *path, char seal_out[65]);
/* Checks seals as ph__folder_check_seals does, with ph__folder_set_meanwhile. */
ph_status ph__checkpoint_check_seals(
    const char *path, size_t first, size_t step, const struct ph__meanwhile *meanwhile);

#endif
