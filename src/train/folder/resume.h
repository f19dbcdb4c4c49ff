/* When a training saves a checkpoint, and how it takes one up again.
 *
 * A checkpoint is of the moment behind a step's arithmetic and before all that follows it: the evaluation, the report,
 * the end of the training. Who resumes does what follows the step first (loop.c), so that it makes no difference
 * whether it had been done already. Two moments more leave one: the end of an epoch, its evaluation included, and the
 * stop that an evaluation decided on. */
#ifndef PH_TRAIN_RESUME_H
#define PH_TRAIN_RESUME_H

#include "train/trainer.h"

/* PH_ERROR_DIVERGED when a weight is not finite: such a model must not take the place of one that was saved before. */
ph_status ph__trainer_check_model(const struct ph__trainer *trainer);

/* Saves now, with the best model beside, then prunes. Time spent here is not counted as training. */
ph_status ph__trainer_save(struct ph__trainer *trainer);

/* Removes what the checkpoint of the step at hand leaves over. For the first rank alone. PH_ERROR_DISK. */
ph_status ph__trainer_prune(const struct ph__trainer *trainer);

/* Whether time or steps say that it is to be saved. */
bool ph__trainer_is_save_due(const struct ph__trainer *trainer);

/* Saves where an epoch ends, unless checkpoints are off, and where the training does: it can be told to go on, and be
 * stopped while its best model is tested. */
ph_status ph__trainer_save_at_end(struct ph__trainer *trainer);

/* Records that a signal has ended a training without a step, and returns its status. */
ph_status ph__fail_stopped_early(ph_status status);

/* The signal that has come to this process; 0: none. */
int ph__trainer_signal(const struct ph__trainer *trainer);

/* After a signal, of which all ranks know: saves, and fails with its status and a line that names the checkpoint. */
ph_status ph__trainer_stop(struct ph__trainer *trainer, int signal);
/* The same where this step has been saved. */
ph_status ph__trainer_stop_saved(const struct ph__trainer *trainer, int signal);

/* Fills the trainer from the newest valid checkpoint of the folder; touches no file. A damaged one is left out with a
 * note. PH_ERROR_CHECKPOINT when none is valid, PH_ERROR_CONFIG when the settings do not go with it. */
ph_status ph__trainer_resume(struct ph__trainer *trainer);

/* Whether the settings want no further step. */
bool ph__trainer_is_over(const struct ph__trainer *trainer);
bool ph__trainer_is_out_of_steps(const struct ph__trainer *trainer);

#endif
