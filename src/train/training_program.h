/* The program that learns: entries "forward" (loss), "backward" (gradients), "clip" (their common factor, where
 * wanted) and "update". */
#ifndef PH_TRAIN_TRAINING_PROGRAM_H
#define PH_TRAIN_TRAINING_PROGRAM_H

#include "phloem/train.h"

struct ph__training_program {
    struct ph_program *program; /* owned */
    bool has_clip;              /* entry "clip" with the scalar "clip_factor" */
    uint64_t parameter_bytes;   /* of what it learns */
};

/* Scalars to set: "learning_rate", "step" (updates, from 1). Outputs: "loss", "logits". distribution: over which ranks the
 * program is spread (graph/distribution.h), NULL: this one has all of it. */
struct ph_distribution;
ph_status ph__training_program_build(const struct ph_train_job *job, const struct ph_model_features *features,
    const struct ph_distribution *distribution, struct ph__training_program *program_out);

#endif
