/* The state of one training while it runs: its progress, its resources, and its reports to metrics.jsonl and
 * to its observer. training_setup.c creates and destroys it, loop.c drives it. */
#ifndef PH_TRAIN_TRAINER_H
#define PH_TRAIN_TRAINER_H

#include "base/memory/arena.h"
#include "serve/scorer.h"
#include "train/config/schedule.h"
#include "train/config/training_program.h"
#include "train/folder/data_fingerprint.h"
#include "train/folder/metrics_file.h"
#include "train/folder/run_statistics.h"
#include "train/folder/summary.h"
#include "train/job.h"
#include "train/job_check.h"
#include "train/loop/micro_batch.h"
#include "train/measure/evaluate.h"
#include "train/measure/progressive.h"
#include "train/probe/probing.h"
#include "train/ranks/rank_costs.h"
#include "train/ranks/rank_figures.h"
#include "train/ranks/rank_trace.h"
#include "train/ranks/ranks.h"

/* Counts since the last report. */
struct ph__tally {
    double started; /* ph__clock_seconds */
    double seconds; /* since then, when a checkpoint is written or was read */
    double loss_sum;
    uint64_t steps, samples;
};

/* Facts that a checkpoint keeps about its job, besides those that may not change. */
struct ph__resumed {
    char library[32];
    uint64_t max_steps, patience, max_bad_rows;
    bool has_valid, is_prepared; /* the training had data.valid; its data.train was prepared */
};

/* A copy of the state before a step, to undo a skipped step: batch norm writes its running statistics in the
 * forward pass. */
struct ph__state_snapshot { /* zero-initialised is empty */
    size_t size;
    unsigned char *bytes;
};

struct ph__trainer {
    const struct ph__train_job *job;
    struct ph__ranks ranks;
    struct ph_model_features features;
    struct ph_backend *backend;
    struct ph_store *store;
    struct ph_state *state;
    struct ph__training_program learning;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
    struct ph__micro_batch micro_batch; /* the bound one */
    struct ph__probing probing;         /* of the first rank */
    struct ph_scorer *scorer;           /* NULL when there is nothing to evaluate on */
    struct ph_metrics *metrics;         /* (T) of the current evaluation */
    struct ph__metrics_log metrics_log;
    struct ph__state_snapshot snapshot;
    char model_path[PH_MODEL_PATH_BYTES]; /* DIR/model.safetensors */
    char encoder_sha256[65];              /* of DIR/encoder.json */
    int lock;                             /* of the folder */
    struct ph__arena arena;
    const char *identity; /* serve/model_identity.h; in the arena */
    const char *values; /* settings that a resumed training keeps: train/config/job_config.h; in the arena */

    /* Carried from step to step: saved in checkpoints by the table of resume_file.c. */
    struct ph__recent recent;
    struct ph__progressive progressive;
    struct ph__gathered_scores scored_ahead; /* of all ranks, for progressive */
    ph_real *own_scores;                     /* of this rank, for a batch that is scored in parts */
    size_t own_scores_capacity;
    struct ph__protocol protocol;
    struct ph__tally tally;
    uint64_t epoch;
    bool is_in_epoch;                 /* false: the next step begins epoch + 1 */
    struct ph_position position;      /* in the epoch, after the latest step */
    struct ph__data_fingerprint data; /* kept by the first rank */
    struct ph__label_check labels;    /* on while rows that can be read only once are learnt from */
    bool has_noted_incomparable;      /* the note about incomparable evaluations was given */
    uint64_t epoch_first_step;        /* steps before the epoch */
    uint64_t steps_per_epoch;         /* 0 in the first epoch */
    uint64_t num_updates;             /* steps less those that were skipped */
    uint64_t evaluated_step;          /* of the latest evaluation */
    uint64_t reported_step;           /* of the latest report */
    uint64_t best_step;               /* step of model.safetensors; 0: none yet */
    char best_seal[65];               /* seal of model.safetensors */
    uint64_t report_bytes;            /* of metrics.jsonl */
    double learning_rate;             /* of the latest step */
    struct ph_train_summary summary;  /* in part */
    struct ph__split_bad_rows bad_rows;

    /* checkpoints */
    bool has_checkpoint;        /* the folder had one when this process began: it resumes */
    uint64_t saved_step;        /* of the latest checkpoint, 0: none */
    double saved_seconds;       /* ph__clock_seconds at its end */
    struct ph__resumed resumed; /* of the checkpoint that was read */

    /* measurements of this process alone */
    double former_seconds;      /* of training, in former processes */
    double reader_wait_seconds; /* waiting for batches */
    struct ph__run_statistics statistics;
    struct ph__rank_figures figures;
    struct ph__rank_costs costs;
    struct ph__rank_clock clock; /* before the first step, if a trace is wanted */
};

/* Returns true when the training has no numbers: its backend simulates operators. */
bool ph__trainer_is_simulated(const struct ph__trainer *trainer);

/* ---- progress ---- */

/* Return true when no further step follows, by train.max_steps or by any setting. */
bool ph__trainer_is_out_of_steps(const struct ph__trainer *trainer);
bool ph__trainer_is_over(const struct ph__trainer *trainer);

/* ---- memory ---- */

/* Raises the peak to the memory that the process uses now. */
void ph__trainer_observe_memory(struct ph__trainer *trainer);
/* Sets the summary's figures of plans to those of both workspaces, as they have grown so far. */
void ph__trainer_observe_plans(struct ph__trainer *trainer);

/* ---- reports ---- */

/* Zeroes the tally and starts its clock. */
void ph__trainer_restart_tally(struct ph__trainer *trainer);

/* Logs the tally, counts its seconds as training, and begins a new one. */
ph_status ph__trainer_log_progress(struct ph__trainer *trainer);

/* Logs trainer->metrics, just measured on data.valid. */
ph_status ph__trainer_log_evaluation(struct ph__trainer *trainer, bool is_best);

/* Logs the calibration of the latest evaluation, which was on `what`. */
ph_status ph__trainer_log_calibration(struct ph__trainer *trainer, const char *what);

/* Tells the observer something that does not stop the training. */
void ph__trainer_note(const struct ph__trainer *trainer, const char *text);

#endif
