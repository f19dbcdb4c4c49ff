/* The checkpoints of a training: the folder DIR/checkpoints, and when one is saved there.
 *
 * The folder holds
 *   step-<12 digits>.safetensors  all that a training needs to go on behind that step (resume_file.h)
 *   best-<12 digits>.safetensors  the model that was best then, by the step that it was saved at: another
 * name of the file that was DIR/model.safetensors Of a training on several ranks each is a folder
 * (store/checkpoint_folder.h). They appear whole and durable or not at all. Errors are PH_ERROR_DISK naming
 * the path. One thread at a time. */
#ifndef PH_TRAIN_CHECKPOINTS_H
#define PH_TRAIN_CHECKPOINTS_H

#include "phloem/train.h"
#include "train/trainer.h"

/* a DIR whose model fits PH_MODEL_PATH_BYTES, and the names */
#define PH_CHECKPOINT_PATH_BYTES 1152

const char *ph__checkpoint_path(const char *folder, uint64_t step, char path[PH_CHECKPOINT_PATH_BYTES]);
const char *ph__checkpoint_best_path(const char *folder, uint64_t step, char path[PH_CHECKPOINT_PATH_BYTES]);

/* Makes DIR/checkpoints, durably. */
ph_status ph__checkpoints_create(const char *folder);

/* Steps of the checkpoints that are there, the newest first; a missing folder has none. One that is half
 * written is none. */
struct ph__checkpoint_list { /* zero-initialised is empty */
    uint64_t *steps;
    size_t count, capacity;
};
ph_status ph__checkpoints_list(const char *folder, struct ph__checkpoint_list *list_out);
void ph__checkpoint_list_fini(struct ph__checkpoint_list *list);

/* Once the checkpoint of step `newest` is durable, with which the best model of step `newest_best` (0: none)
 * belongs: removes those of later steps, which were abandoned, all but the `num_kept` newest of the others,
 * and the best models that none of the kept ones belongs with. */
ph_status ph__checkpoints_prune(const char *folder, uint64_t newest, uint64_t newest_best, size_t num_kept);

/* Removes what a process that was killed left half written in DIR and DIR/checkpoints. */
ph_status ph__checkpoints_clean(const char *folder);

/* Tells whether a name in DIR is of a file that is being written, which counts as nothing. */
bool ph__checkpoints_is_temporary(const char *name);

/* ---- saving ----
 *
 * A checkpoint is of the moment behind a step's arithmetic and before all that follows it: the evaluation,
 * the report, the end of the training. A training that resumes does what follows the step first (loop.c), so
 * that it makes no difference whether it had been done already. Two moments more leave one: the end of an
 * epoch, its evaluation included, and the stop that an evaluation decided on. */

/* PH_ERROR_DIVERGED when a weight is not finite: such a model must not take the place of one that was saved
 * before. */
ph_status ph__trainer_check_model(const struct ph__trainer *trainer);

/* Saves now, with the best model beside, then prunes. Time spent here is not counted as training. */
ph_status ph__trainer_save(struct ph__trainer *trainer);

/* Removes what the checkpoint of the step at hand leaves over. For the first rank alone. PH_ERROR_DISK. */
ph_status ph__trainer_prune(const struct ph__trainer *trainer);

/* Tells whether a checkpoint is due by time or steps. */
bool ph__trainer_is_save_due(const struct ph__trainer *trainer);

/* Saves where an epoch ends, unless checkpoints are off, and where the training does: it can be told to go
 * on, and be stopped while its best model is tested. */
ph_status ph__trainer_save_at_end(struct ph__trainer *trainer);

/* After a signal, of which all ranks know: saves, and fails with its status and a line that names the
 * checkpoint. */
ph_status ph__trainer_stop(struct ph__trainer *trainer, int signal);
/* Does the same where this step has been saved. */
ph_status ph__trainer_stop_saved(const struct ph__trainer *trainer, int signal);

#endif
