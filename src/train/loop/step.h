/* One step: a batch through forward, backward, clip and update, the first two by micro-batches. */
#ifndef PH_TRAIN_STEP_H
#define PH_TRAIN_STEP_H

#include "train/trainer.h"

/* Counts the step in summary and tally. Loss or gradients that are not finite: PH_ERROR_DIVERGED, or by the policy "skip" a
 * step that changes nothing and is counted. */
ph_status ph__trainer_step(struct ph__trainer *trainer, const struct ph_batch *batch);

#endif
