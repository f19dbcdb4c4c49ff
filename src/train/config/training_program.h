/* The program that learns: entries "forward" (loss), "backward" (gradients), "clip" (their common factor,
 * where wanted) and "update".
 *
 * When a batch is cut into micro-batches, forward and backward run for each of them; then entry "combine"
 * runs once and makes the batch's gradients of what backward has kept. Ranks reduce gradients there, once a
 * step. */
#ifndef PH_TRAIN_TRAINING_PROGRAM_H
#define PH_TRAIN_TRAINING_PROGRAM_H

#include "train/job.h"

struct ph__training_program {
    struct ph_program *program; /* owned */
    size_t num_micro_batches;   /* most a batch is cut into; 1: there is no entry "combine" */
    bool has_clip;              /* true: there is an entry "clip" with the scalar "clip_factor" */
    uint64_t parameter_bytes;   /* bytes of the learnt parameters */
};

/* Counts the micro-batches that a batch is cut into, at most. */
static inline size_t ph__num_micro_batches(const struct ph_train_settings *settings)
{
    return settings->accumulation_steps > 1 ? (size_t)settings->accumulation_steps : 1;
}

/* Builds the program. Scalars to set: "learning_rate", "step" (updates, from 1). Outputs: "loss", "logits" of
 * the bound samples. With micro-batches there are also the scalars "num_before" (micro-batches of the step
 * before the bound one) and "batch_weight" (of the labels of the step's batch, on all ranks), and the output
 * "weight" (of the labels of the bound micro-batch, on all ranks): the sum of loss * weight / batch_weight is
 * the batch's loss. distribution: the ranks that the program is spread over (graph/distribution.h); NULL:
 * this rank alone. */
struct ph_distribution;
ph_status ph__training_program_build(const struct ph__train_job *job,
    const struct ph_model_features *features, const struct ph_distribution *distribution,
    struct ph__training_program *program_out);

#endif
