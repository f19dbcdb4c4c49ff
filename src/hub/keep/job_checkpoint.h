/* Checkpoints of a hub's jobs: a sealed safetensors file for each (store/safetensors.h), replaced in one
 * moment.
 *
 * Of key k it has the tensors "key.k.weight", and "key.k.m" and "key.k.s" where the key's optimizer keeps
 * them, all fp32 of the key's elements; "versions" has the number of updates of each chunk. Of several hubs
 * that share the keys each has a file with the elements of its own chunks, in their order, without the
 * tensors of keys that it has none of; the service says which hub it is. A service that has not begun has no
 * tensors. The metadata:
 *
 *     format          PH_CHECKPOINT_FORMAT
 *     name            of the service
 *     iteration       that it goes on from
 *     service, keys   the bodies of the CREATE and the INIT that its workers have sent (protocol.h), in
 * hexadecimal digits progress        u64 iteration, u32 bytes of a chunk, f32 learning rate of each
 * optimizer: the same way sum             a checksum of the last three
 *
 * A file is PH_ERROR_CHECKPOINT, naming it and what is wrong, when it is damaged, of another version or
 * somebody else's; what cannot be read is never read in part. Files are written and read by threads of their
 * own (checkpoint_task.h). */
#ifndef PH_HUB_JOB_CHECKPOINT_H
#define PH_HUB_JOB_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "hub/keep/snapshot.h"
#include "phloem/status.h"

#define PH_CHECKPOINT_FORMAT "phloem hub job 1"
#define PH_CHECKPOINT_ENDING ".safetensors"
#define PH_CHECKPOINT_TEMPORARY_ENDING \
    PH_CHECKPOINT_ENDING ".tmp" /* what a hub that was killed left behind */

/* The path of a service's file; the caller frees it. Its name is the service's, with '/', '%', '~', control
 * characters and a leading '.' as %2f and so on; where that is too long for a file system, cut and made
 * unique by a checksum. */
ph_status ph__job_checkpoint_path(const char *folder, const char *service, char **path_out);

/* The snapshot is whole. PH_ERROR_DISK, PH_ERROR_MEMORY: the former file is still there. */
ph_status ph__job_checkpoint_write(const char *path, const struct ph__snapshot *snapshot);

/* What is known of a service before its parameters are read: the metadata, against their checksum. Not to be
 * copied: the settings point into themselves. */
struct ph__job_checkpoint_head {
    struct ph__service_settings settings;
    float learning_rates[PH_HUB_MAX_OPTIMIZERS];
    uint64_t iteration;
    size_t chunk_bytes;
    size_t num_keys; /* 0: it has not begun */
};
ph_status ph__job_checkpoint_read_head(const char *path, struct ph__job_checkpoint_head *head_out);

/* Fills a snapshot that was made for the same service, keys and chunk size: PH_ERROR_CHECKPOINT when the file
 * has others, is another hub's or damaged. Compares the metadata first, which have a checksum of their own,
 * and then checks the seal. After an error the snapshot is good for nothing. */
ph_status ph__job_checkpoint_read(const char *path, struct ph__snapshot *snapshot);

/* The checksum of the metadata: 16 digits. */
void ph__job_checkpoint_sum(const char *service, const char *keys, const char *progress, char digits_out[17]);

/* Removes the file for good; fine when there is none. PH_ERROR_DISK. */
ph_status ph__job_checkpoint_remove(const char *path);

/* ---- parts: job_parts.c ---- */

/* The files of a job's parts (part_list.h), beside the kept one: NAME~at-ITERATION.safetensors of
 * NAME.safetensors. No other service's name becomes that of a file: '~' is escaped, and what follows one in a
 * name that was cut are digits.
 *
 * For tasks (checkpoint_task.h) but for the names. `path` is that of the kept file. */

/* The path of the open part; of PH_NO_ITERATION: the kept file's. The caller frees it. PH_ERROR_MEMORY. */
ph_status ph__job_part_path(const char *path, uint64_t iteration, char **part_out);

bool ph__job_part_is_open(const char *name); /* whether a file of this name in the folder is an open part */

/* Whether it is one of the service whose kept file is `path`, and of which iteration. */
bool ph__job_part_is_of(const char *path, const char *name, uint64_t *iteration_out);

/* The open part of this iteration, if there is one, replaces the kept file; then the other open parts of
 * iterations below settled_end are removed. PH_NO_ITERATION: they only are. All of it is durable when it
 * returns, and in this order. PH_ERROR_DISK. is_kept_out: whether the first is done, also after an error:
 * those below settled_end may be gone then. */
ph_status ph__job_parts_keep(const char *path, uint64_t iteration, uint64_t settled_end, bool *is_kept_out);

#endif
