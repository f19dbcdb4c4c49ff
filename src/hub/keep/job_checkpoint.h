/* Checkpoints of a hub's jobs: a sealed safetensors file for each (store/safetensors.h), replaced atomically.
 *
 * Key k has the tensors "key.k.weight", and "key.k.m" and "key.k.s" where its optimizer keeps them, all fp32
 * of the key's elements; "versions" has the number of updates of each chunk. Where several hubs share the
 * keys, each has a file with the elements of its own chunks, in their order, without tensors of keys of which
 * it has no chunk; the service says which hub it is. A service that has not begun has no tensors. The
 * metadata:
 *
 *     format          PH_CHECKPOINT_FORMAT
 *     name            of the service
 *     iteration       from which it resumes
 *     service, keys   bodies of its workers' CREATE and INIT (protocol.h), in hexadecimal digits
 *     progress        u64 iteration, u32 bytes of a chunk, f32 learning rate of each optimizer, likewise
 *     sum             a checksum of the last three
 *
 * A file that is damaged, of another version or not a hub's is PH_ERROR_CHECKPOINT, naming it and what is
 * wrong; a bad file is never read in part. Tasks write and read files, in threads of their own
 * (checkpoint_task.h). */
#ifndef PH_HUB_JOB_CHECKPOINT_H
#define PH_HUB_JOB_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "hub/keep/snapshot.h"
#include "phloem/status.h"

#define PH_CHECKPOINT_FORMAT "phloem hub job 1"
#define PH_CHECKPOINT_ENDING ".safetensors"
#define PH_CHECKPOINT_TEMPORARY_ENDING PH_CHECKPOINT_ENDING ".tmp" /* left by a hub that was killed */

/* Gives the path of a service's file, which the caller frees. Its name is the service's, with '/', '%', '~',
 * control characters and a leading '.' as %2f and so on; a name too long for a file system is cut and made
 * unique by a checksum. */
ph_status ph__job_checkpoint_path(const char *folder, const char *service, char **path_out);

/* Writes a finished snapshot. PH_ERROR_DISK, PH_ERROR_MEMORY: the former file is still there. */
ph_status ph__job_checkpoint_write(const char *path, const struct ph__snapshot *snapshot);

/* Metadata of a service, read before its parameters and checked against their checksum. Not to be copied: the
 * settings point into themselves. */
struct ph__job_checkpoint_head {
    struct ph__service_settings settings;
    float learning_rates[PH_HUB_MAX_OPTIMIZERS];
    uint64_t iteration;
    size_t chunk_bytes;
    size_t num_keys; /* 0: the service has not begun */
};
ph_status ph__job_checkpoint_read_head(const char *path, struct ph__job_checkpoint_head *head_out);

/* Fills a snapshot that was made for the same service, keys and chunk size: PH_ERROR_CHECKPOINT when the file
 * has others, is another hub's or damaged. Compares the metadata first, which have a checksum of their own,
 * and then checks the seal. After an error the snapshot is unusable. */
ph_status ph__job_checkpoint_read(const char *path, struct ph__snapshot *snapshot);

/* Computes the checksum of the metadata: 16 digits. */
void ph__job_checkpoint_sum(const char *service, const char *keys, const char *progress, char digits_out[17]);

/* Removes the file durably, if there is one. PH_ERROR_DISK. */
ph_status ph__job_checkpoint_remove(const char *path);

/* ---- parts: job_parts.c ---- */

/* Files of a job's parts (part_list.h), beside the kept one: NAME~at-ITERATION.safetensors of
 * NAME.safetensors. No service's name becomes such a file's name: '~' is escaped, and a '~' in a name that
 * was cut is followed by digits.
 *
 * Called by tasks (checkpoint_task.h), except the functions on names. `path` is the kept file's. */

/* Gives the path of the open part, or of the kept file for PH_NO_ITERATION. PH_ERROR_MEMORY. The caller frees
 * the path. */
ph_status ph__job_part_path(const char *path, uint64_t iteration, char **part_out);

bool ph__job_part_is_open(const char *name); /* name of a file in the folder */

/* Returns true if the file is an open part of the service whose kept file is `path`; gives its iteration. */
bool ph__job_part_is_of(const char *path, const char *name, uint64_t *iteration_out);

/* Replaces the kept file by the open part of this iteration, if there is one and not PH_NO_ITERATION; then
 * removes the open parts of iterations below settled_end. All of this is durable when it returns, and in this
 * order. PH_ERROR_DISK. is_kept_out: set when the first is done, even after an error: parts below settled_end
 * may be gone then. */
ph_status ph__job_parts_keep(const char *path, uint64_t iteration, uint64_t settled_end, bool *is_kept_out);

#endif
