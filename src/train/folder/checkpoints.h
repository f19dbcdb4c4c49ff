/* The checkpoints of a training: the folder DIR/checkpoints, and the moments at which one is saved there.
 *
 * The folder holds
 *   step-<12 digits>.safetensors  all that a training needs to continue after that step (resume_file.h)
 *   best-<12 digits>.safetensors  the best model so far, of that step: a link of DIR/model.safetensors
 *
 * For a training on several ranks each of these is a folder (store/checkpoint_folder.h). They appear whole
 * and durable or not at all. Errors are PH_ERROR_DISK naming the path. One thread at a time. */
#ifndef PH_TRAIN_CHECKPOINTS_H
#define PH_TRAIN_CHECKPOINTS_H

#include "phloem/train.h"
#include "train/trainer.h"

/* Room for the longest DIR that PH_MODEL_PATH_BYTES allows, and the names. */
#define PH_CHECKPOINT_PATH_BYTES 1152

const char *ph__checkpoint_path(const char *folder, uint64_t step, char path[PH_CHECKPOINT_PATH_BYTES]);
const char *ph__checkpoint_best_path(const char *folder, uint64_t step, char path[PH_CHECKPOINT_PATH_BYTES]);

/* Creates DIR/checkpoints, durably. */
ph_status ph__checkpoints_create(const char *folder);

/* Steps of the complete checkpoints, newest first; a missing folder has none. */
struct ph__checkpoint_list { /* zero-initialised is empty */
    uint64_t *steps;
    size_t count, capacity;
};
ph_status ph__checkpoints_list(const char *folder, struct ph__checkpoint_list *list_out);
void ph__checkpoint_list_fini(struct ph__checkpoint_list *list);

/* Removes superseded files once the checkpoint of step `newest` is durable: checkpoints of later steps, which
 * were abandoned; all but the num_kept newest of the others; and the best models that no kept checkpoint
 * needs. newest_best: step of the best model that belongs to `newest`; 0: none. */
ph_status ph__checkpoints_prune(const char *folder, uint64_t newest, uint64_t newest_best, size_t num_kept);

/* Removes the half-written files that a killed process left in DIR and DIR/checkpoints. */
ph_status ph__checkpoints_clean(const char *folder);

/* Returns true when the name is of a file in DIR that is being written, and so counts as absent. */
bool ph__checkpoints_is_temporary(const char *name);

/* ---- saving ----
 *
 * A checkpoint holds the state after a step's arithmetic and before all that follows the step: the
 * evaluation, the report, the end of the training. A resumed training first does what follows the step
 * (loop.c), so that it makes no difference whether that was done before. Two more moments are saved: the end
 * of an epoch, after its evaluation, and a stop that an evaluation decided on. */

/* PH_ERROR_DIVERGED when a weight is not finite: such a model must not replace a saved one. */
ph_status ph__trainer_check_model(const struct ph__trainer *trainer);

/* Saves now, together with the best model, then prunes. The time spent is not counted as training. */
ph_status ph__trainer_save(struct ph__trainer *trainer);

/* Removes what the current step's checkpoint supersedes. On the first rank alone. PH_ERROR_DISK. */
ph_status ph__trainer_prune(const struct ph__trainer *trainer);

/* Returns true when a checkpoint is due by time or steps. */
bool ph__trainer_is_save_due(const struct ph__trainer *trainer);

/* Saves at the end of an epoch, unless checkpoints are off, and always at the end of the training: a longer
 * training may resume from it, and testing the best model may be interrupted. */
ph_status ph__trainer_save_at_end(struct ph__trainer *trainer);

/* Saves after a signal that all ranks have agreed on, and fails with the signal's status and a line that
 * names the checkpoint. */
ph_status ph__trainer_stop(struct ph__trainer *trainer, int signal);
/* Fails like ph__trainer_stop, for a step that is saved already. */
ph_status ph__trainer_stop_saved(const struct ph__trainer *trainer, int signal);

#endif
