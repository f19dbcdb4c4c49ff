/* Everything that one training holds while it runs. Made and torn down by trainer.c, driven by loop.c. */
#ifndef PH_TRAIN_TRAINER_H
#define PH_TRAIN_TRAINER_H

#include "phloem/train.h"
#include "serve/features.h"
#include "train/recent.h"
#include "train/report.h"
#include "train/schedule.h"
#include "train/state_snapshot.h"
#include "train/training_program.h"

/* What has happened since the last report. */
struct ph__tally {
    double started; /* ph__clock_seconds */
    double loss_sum;
    uint64_t steps, samples;
};

struct ph__trainer {
    const struct ph_train_job *job;
    struct ph_model_features features;
    struct ph_backend *backend;
    struct ph_store *store;
    struct ph_state *state;
    struct ph__training_program learning;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
    struct ph_scorer *scorer;   /* NULL when there is nothing to evaluate on */
    struct ph_metrics *metrics; /* (T) of the evaluation at hand */
    struct ph__report report;
    struct ph__recent recent;
    struct ph__state_snapshot snapshot;
    struct ph__protocol protocol;
    struct ph__tally tally;
    uint64_t epoch, steps_per_epoch; /* the latter 0 in the first epoch */
    uint64_t num_updates;
    uint64_t evaluated_step; /* of the latest evaluation */
    double learning_rate;    /* of the latest step */
    struct ph_train_summary summary;
};

/* Builds the programs, checks that the job fits, and makes the folder with encoder.json and an empty metrics.jsonl. */
ph_status ph__trainer_create(const struct ph_train_job *job, struct ph__trainer **trainer_out);
void ph__trainer_destroy(struct ph__trainer *trainer);

/* Takes what the process uses now into the peak. */
void ph__trainer_observe_memory(struct ph__trainer *trainer);
/* Takes the plans of both workspaces as they are now, grown or not, into the summary. */
void ph__trainer_observe_plans(struct ph__trainer *trainer);

#endif
