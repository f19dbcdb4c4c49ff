/* The program that learns: entries "forward" (loss), "backward" (gradients), "clip" (their common factor, where
 * wanted) and "update". A job's reducer is called between backward and clip. */
#ifndef PH_TRAIN_TRAINING_PROGRAM_H
#define PH_TRAIN_TRAINING_PROGRAM_H

#include "phloem/train.h"

struct ph__training_program {
    struct ph_program *program; /* owned */
    bool has_clip;              /* entry "clip" with the scalar "clip_factor" */
    uint64_t parameter_bytes;   /* of what it learns */
};

/* Scalars to set: "learning_rate", "step" (updates, from 1). Outputs: "loss", "logits". */
ph_status ph__training_program_build(const struct ph_train_job *job, const struct ph_model_features *features,
    struct ph__training_program *program_out);

#endif
