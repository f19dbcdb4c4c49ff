/* Writes and reads checkpoints of several ranks: a folder that all ranks write at once, each its own shards,
 * and that any number of ranks can read (store/checkpoint_folder.h). The first rank writes what every rank
 * has: dense parameters, replicated tables, states. All ranks call these functions alike; a failure of one is
 * a failure of all. A failed write ends the job; after a failed read it goes on, since another checkpoint may
 * be readable. */
#ifndef PH_TRAIN_RANK_CHECKPOINT_H
#define PH_TRAIN_RANK_CHECKPOINT_H

#include "store/tensor_list.h"
#include "train/ranks/ranks.h"

/* Writes the tensors: several ranks write a folder, one alone a file. The former content of `path` stays
 * until the new one is on disk as a whole, and when a rank fails. metadata: as for ph_checkpoint_save, of the
 * first rank. Removes from list the tensors that another rank writes. PH_ERROR_DISK, PH_ERROR_MEMORY,
 * PH_ERROR_PEER. */
ph_status ph__rank_checkpoint_write(
    struct ph__ranks *ranks, const char *path, struct ph__tensor_list *list, const char *const *metadata);

/* Fills the tensors, which may be parts of the folder's. The ranks share the work of checking seals.
 * PH_ERROR_CHECKPOINT, also when the folder has a tensor that no rank wants. */
ph_status ph__rank_checkpoint_read(
    struct ph__ranks *ranks, const char *path, const struct ph__tensor_list *list);

/* Gives the digest of the model in a folder, on all ranks. */
ph_status ph__rank_checkpoint_digest(struct ph__ranks *ranks, const char *path, char hex_out[65]);

#endif
