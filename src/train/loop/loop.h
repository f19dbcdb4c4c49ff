/* The parts of a training's loop, which loop.c puts together. */
#ifndef PH_TRAIN_LOOP_H
#define PH_TRAIN_LOOP_H

#include "train/trainer.h"

/* ---- training_setup.c: every size is known, and compared with the machine, before the first step ---- */

/* Builds the programs, checks that the job fits, and begins or resumes the training in its folder
 * (train_folder.h). */
ph_status ph__trainer_create(const struct ph_train_job *job, struct ph__trainer **trainer_out);
void ph__trainer_destroy(struct ph__trainer *trainer);

/* ---- step.c: a batch through forward, backward, clip and update, the first two by micro-batches ---- */

/* Copies the state, puts a copy back, and frees one. PH_ERROR_MEMORY. */
ph_status ph__state_snapshot_take(struct ph__state_snapshot *snapshot, const struct ph_state *state);
void ph__state_snapshot_restore(const struct ph__state_snapshot *snapshot, struct ph_state *state);
void ph__state_snapshot_fini(struct ph__state_snapshot *snapshot);

/* Scores the batch that the next step learns from, in inference mode, and reports each window that it fills.
 * Nothing when train.progressive is false. */
ph_status ph__trainer_score_ahead(struct ph__trainer *trainer, const struct ph_batch *batch);

/* Ends the stream: reports the rest as a smaller window, and puts the metrics of all rows into the summary.
 * What a checkpoint carries must have been saved before. */
ph_status ph__trainer_end_stream(struct ph__trainer *trainer);

/* Counts the step in summary and tally. Loss or gradients that are not finite: PH_ERROR_DIVERGED, or by the
 * policy "skip" a step that changes nothing and is counted. */
ph_status ph__trainer_step(struct ph__trainer *trainer, const struct ph_batch *batch);

/* ---- validation.c: evaluations, and the best model ---- */

/* Evaluates on data.valid, unless that has been done behind this step, keeps the model when it is the best,
 * and lets the protocol decide: *is_stop becomes true when the training ends, and is left as it is otherwise.
 * Stopped by a signal, it saves a checkpoint of before the evaluation, as ph__trainer_stop. */
ph_status ph__trainer_evaluate(struct ph__trainer *trainer, bool *is_stop);

/* Keeps a model where no evaluation has chosen one, takes up the best one, and tests it on data.test. After a
 * signal as ph__trainer_stop_saved. */
ph_status ph__trainer_test_best(struct ph__trainer *trainer);

#endif
