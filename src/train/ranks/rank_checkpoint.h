/* Writes and reads checkpoints of several ranks: a folder that all of them write at once, each what it alone
 * has, and that any number of others reads (store/checkpoint_folder.h). What every rank has – dense
 * parameters, replicated tables, states – the first one writes. All ranks call these alike; a failure of one
 * is a failure of all, which ends the job where it is one of writing: of checkpoints that cannot be read
 * there may be others. */
#ifndef PH_TRAIN_RANK_CHECKPOINT_H
#define PH_TRAIN_RANK_CHECKPOINT_H

#include "store/tensor_list.h"
#include "train/ranks/ranks.h"

/* Writes the tensors: by several ranks a folder, alone a file. What stands at `path` stays until all of it is
 * on disk, and what one rank fails with leaves it there. metadata as ph_checkpoint_save's, of the first rank.
 * list loses what another rank writes. PH_ERROR_DISK, PH_ERROR_MEMORY, PH_ERROR_PEER. */
ph_status ph__rank_checkpoint_write(
    struct ph__ranks *ranks, const char *path, struct ph__tensor_list *list, const char *const *metadata);

/* Fills the tensors, parts of them among others, of a folder that has no tensor which no rank wants; the
 * ranks share the work of checking seals. PH_ERROR_CHECKPOINT. */
ph_status ph__rank_checkpoint_read(
    struct ph__ranks *ranks, const char *path, const struct ph__tensor_list *list);

/* The digest of the model in a folder, on all ranks. */
ph_status ph__rank_checkpoint_digest(struct ph__ranks *ranks, const char *path, char hex_out[65]);

#endif
