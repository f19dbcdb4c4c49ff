/* The program that learns: entries "forward" (loss), "backward" (gradients), "clip" (their common factor,
 * where wanted) and "update".
 *
 * Where a batch is cut into micro-batches, forward and backward are run for each of them, and entry "combine"
 * once behind them: it makes the gradients of the batch of what backward has kept. Ranks reduce gradients
 * there, once a step. */
#ifndef PH_TRAIN_TRAINING_PROGRAM_H
#define PH_TRAIN_TRAINING_PROGRAM_H

#include "phloem/train.h"

struct ph__training_program {
    struct ph_program *program; /* owned */
    size_t num_micro_batches;   /* of a batch, at most; 1: there is no entry "combine" */
    bool has_clip;              /* entry "clip" with the scalar "clip_factor" */
    uint64_t parameter_bytes;   /* of what it learns */
};

/* Counts the micro-batches that a batch is cut into, at most. */
static inline size_t ph__num_micro_batches(const struct ph_train_settings *settings)
{
    return settings->accumulation_steps > 1 ? (size_t)settings->accumulation_steps : 1;
}

/* Scalars to set: "learning_rate", "step" (updates, from 1). Outputs: "loss", "logits" of what is bound. Of
 * micro-batches also, to set: "num_before" (those of the step before the one that is bound), "batch_weight"
 * (of the labels of the step's batch, on all ranks); output: "weight" (of the labels of the one that is
 * bound, on all ranks). The batch's loss is the sum of loss * weight / batch_weight. distribution: over which
 * ranks the program is spread (graph/distribution.h), NULL: this one has all of it. */
struct ph_distribution;
ph_status ph__training_program_build(const struct ph_train_job *job, const struct ph_model_features *features,
    const struct ph_distribution *distribution, struct ph__training_program *program_out);

#endif
