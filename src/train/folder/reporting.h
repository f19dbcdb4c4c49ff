/* Reports while a training runs: to metrics.jsonl and to its observer. */
#ifndef PH_TRAIN_REPORTING_H
#define PH_TRAIN_REPORTING_H

#include "train/trainer.h"

/* Begins a new tally: nothing has happened since the last report. */
void ph__trainer_restart_tally(struct ph__trainer *trainer);

/* Reports the tally, counts its seconds as training, and begins a new one. */
ph_status ph__trainer_report(struct ph__trainer *trainer);

/* Reports trainer->metrics, which have just been measured on data.valid. */
ph_status ph__trainer_report_evaluation(struct ph__trainer *trainer, bool is_best);

/* Reports how far the probabilities of the latest evaluation, which was on `what`, can be believed. */
ph_status ph__trainer_report_calibration(struct ph__trainer *trainer, const char *what);

/* Tells the observer something that does not stop the training. */
void ph__trainer_note(const struct ph__trainer *trainer, const char *text);

#endif
