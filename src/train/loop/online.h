/* Online learning: a training whose rows are scored before they are learnt from, with reports as the stream goes. */
#ifndef PH_TRAIN_ONLINE_H
#define PH_TRAIN_ONLINE_H

#include "train/trainer.h"

/* PH_ERROR_CONFIG where the job cannot be measured so: rows out of order, seen twice, or left out. */
ph_status ph__online_check(const struct ph_train_job *job);

/* Scores the batch that the next step learns from, in inference mode, and reports each window that it fills. Nothing
 * when train.progressive is false. */
ph_status ph__trainer_score_ahead(struct ph__trainer *trainer, const struct ph_batch *batch);

/* The stream has ended: reports the rest as a smaller window, and puts the metrics of all rows into the summary. What a
 * checkpoint carries must have been saved before. */
ph_status ph__trainer_end_stream(struct ph__trainer *trainer);

#endif
