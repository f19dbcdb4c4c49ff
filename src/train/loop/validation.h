/* Evaluations while a training runs, and the best model. */
#ifndef PH_TRAIN_VALIDATION_H
#define PH_TRAIN_VALIDATION_H

#include "train/trainer.h"

/* Evaluates on data.valid, unless that has been done behind this step, keeps the model when it is the best, and lets
 * the protocol decide: *is_stop becomes true when the training ends, and is left as it is otherwise. Stopped by a
 * signal, it saves a checkpoint of before the evaluation, as ph__trainer_stop. */
ph_status ph__trainer_evaluate(struct ph__trainer *trainer, bool *is_stop);

/* By train.non_finite: PH_ERROR_DIVERGED when scores of trainer->metrics, just measured on `what`, were no numbers. */
ph_status ph__trainer_check_scores(const struct ph__trainer *trainer, const char *what);

/* Where no evaluation has chosen a model, makes the last one the best: for want of data.valid, or of both classes there.
 * PH_ERROR_DIVERGED when its scores are no numbers. */
ph_status ph__trainer_keep_last(struct ph__trainer *trainer);

/* Makes the model as it is now the one in DIR/model.safetensors. */
ph_status ph__trainer_save_best(struct ph__trainer *trainer);
/* Back into store and state, as it was saved. */
ph_status ph__trainer_load_best(struct ph__trainer *trainer);

#endif
