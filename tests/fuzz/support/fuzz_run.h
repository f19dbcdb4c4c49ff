/* Targets that need a trained model: a small training in a folder in memory. */
#ifndef PH_FUZZ_RUN_H
#define PH_FUZZ_RUN_H

#include "phloem/data.h"
#include "support/fuzz_support.h"
#include "train/config/job_config.h"

struct fuzz_run { /* stays where it is, until the process ends */
    struct ph_config *config;
    struct ph_encoder *encoder;
    char folder[64]; /* of the training: not made yet */
};

/* A job over a few rows of every kind of column, for a model of this kind. */
void fuzz_run_init(struct fuzz_run *run, const char *model_kind);

/* All pointers are the run's. */
struct ph__train_job fuzz_run_job(const struct fuzz_run *run);

/* Trains, and leaves in the folder what a session opens. */
void fuzz_run_train(struct fuzz_run *run);

#endif
