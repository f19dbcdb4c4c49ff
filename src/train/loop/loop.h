/* The parts of a training's loop, which loop.c puts together. */
#ifndef PH_TRAIN_LOOP_H
#define PH_TRAIN_LOOP_H

#include "train/trainer.h"

/* ---- training_setup.c: computes every size, and compares it with the machine, before the first step ---- */

/* Builds the programs, checks that the job fits, and begins or resumes the training in its folder
 * (train_folder.h). */
ph_status ph__trainer_create(const struct ph__train_job *job, struct ph__trainer **trainer_out);
void ph__trainer_destroy(struct ph__trainer *trainer);

/* ---- step.c: runs forward and backward by micro-batches, then clip and update ---- */

/* Take a copy of the state, put it back, and free it. PH_ERROR_MEMORY. */
ph_status ph__state_snapshot_take(struct ph__state_snapshot *snapshot, const struct ph_state *state);
void ph__state_snapshot_restore(const struct ph__state_snapshot *snapshot, struct ph_state *state);
void ph__state_snapshot_fini(struct ph__state_snapshot *snapshot);

/* Scores the batch that the next step learns from, in inference mode, and reports each window that it fills.
 * Does nothing when train.progressive is false. */
ph_status ph__trainer_score_ahead(struct ph__trainer *trainer, const struct ph_batch *batch);

/* Ends the stream: reports the remaining rows as a smaller window, and puts the metrics of all rows into the
 * summary. The last checkpoint must have been saved before. */
ph_status ph__trainer_end_stream(struct ph__trainer *trainer);

/* Learns from a batch, and counts the step in summary and tally. PH_ERROR_DIVERGED when loss or gradients are
 * not finite; with the policy "skip" such a step changes nothing and is counted. */
ph_status ph__trainer_step(struct ph__trainer *trainer, const struct ph_batch *batch);

/* ---- validation.c: evaluations, and the best model ---- */

/* Evaluates on data.valid, unless this step has been evaluated, keeps the model when it is the best, and lets
 * the protocol decide: sets *is_stop when the training ends, and leaves it unchanged otherwise. On a signal
 * saves a checkpoint of the state before the evaluation, as ph__trainer_stop does. */
ph_status ph__trainer_evaluate(struct ph__trainer *trainer, bool *is_stop);

/* Keeps the last model where no evaluation has chosen one, loads the best one, and tests it on data.test. On
 * a signal fails like ph__trainer_stop_saved. */
ph_status ph__trainer_test_best(struct ph__trainer *trainer);

#endif
