/* The folder DIR/checkpoints of a training:
 *   step-<12 digits>.safetensors  all that a training needs to go on behind that step (resume_file.h)
 *   best-<12 digits>.safetensors  the model that was best then, by the step that it was saved at: another name of the
 *                                 file that was DIR/model.safetensors
 * Of a training on several ranks each is a folder (store/checkpoint_folder.h). They appear whole and durable or not at all.
 * Errors are PH_ERROR_DISK naming the path. One thread at a time. */
#ifndef PH_TRAIN_CHECKPOINTS_H
#define PH_TRAIN_CHECKPOINTS_H

#include "phloem/train.h"

#define PH_CHECKPOINT_PATH_BYTES \
    1152 /* a DIR that fits struct ph_train_summary.checkpoint_path, and the names */

const char *ph__checkpoint_path(const char *folder, uint64_t step, char path[PH_CHECKPOINT_PATH_BYTES]);
const char *ph__checkpoint_best_path(const char *folder, uint64_t step, char path[PH_CHECKPOINT_PATH_BYTES]);

/* Makes DIR/checkpoints, durably. */
ph_status ph__checkpoints_create(const char *folder);

/* Steps of the checkpoints that are there, the newest first; a missing folder has none. One that is half written is none. */
struct ph__checkpoint_list { /* zero-initialised is empty */
    uint64_t *steps;
    size_t count, capacity;
};
ph_status ph__checkpoints_list(const char *folder, struct ph__checkpoint_list *list_out);
void ph__checkpoint_list_fini(struct ph__checkpoint_list *list);

/* Once the checkpoint of step `newest` is durable, with which the best model of step `newest_best` (0: none) belongs: removes those of
 * later steps, which were abandoned, all but the `num_kept` newest of the others, and the best models that none of the kept ones
 * belongs with. */
ph_status ph__checkpoints_prune(const char *folder, uint64_t newest, uint64_t newest_best, size_t num_kept);

/* Removes what a process that was killed left half written in DIR and DIR/checkpoints. */
ph_status ph__checkpoints_clean(const char *folder);

/* Whether a name in DIR is of a file that is being written, which counts as nothing. */
bool ph__checkpoints_is_temporary(const char *name);

#endif
