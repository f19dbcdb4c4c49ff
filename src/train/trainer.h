/* Everything that one training holds while it runs: where it is, what it uses, and what it reports of that to
 * metrics.jsonl and to its observer. Made and torn down by training_setup.c, driven by loop.c. */
#ifndef PH_TRAIN_TRAINER_H
#define PH_TRAIN_TRAINER_H

#include "base/memory/arena.h"
#include "phloem/train.h"
#include "serve/scorer.h"
#include "train/config/schedule.h"
#include "train/config/training_program.h"
#include "train/folder/data_fingerprint.h"
#include "train/folder/metrics_file.h"
#include "train/folder/run_statistics.h"
#include "train/folder/summary.h"
#include "train/job_check.h"
#include "train/loop/micro_batch.h"
#include "train/measure/evaluate.h"
#include "train/measure/progressive.h"
#include "train/ranks/rank_figures.h"
#include "train/ranks/rank_trace.h"
#include "train/ranks/ranks.h"

/* What has happened since the last report. */
struct ph__tally {
    double started; /* ph__clock_seconds */
    double seconds; /* since then, when a checkpoint is written or has been read */
    double loss_sum;
    uint64_t steps, samples;
};

/* What a checkpoint says of the job that it belongs to, besides what must be the same. */
struct ph__resumed {
    char library[32];
    uint64_t max_steps, patience, max_bad_rows;
    bool has_valid, is_prepared; /* the training had data.valid; its data.train was prepared */
};

/* A copy of the state from before a step, so that a step that is skipped leaves nothing behind (batch norm
 * writes its running statistics on the way forward). */
struct ph__state_snapshot { /* zero-initialised is empty */
    size_t size;
    unsigned char *bytes;
};

struct ph__trainer {
    const struct ph_train_job *job;
    struct ph__ranks ranks;
    struct ph_model_features features;
    struct ph_backend *backend;
    struct ph_store *store;
    struct ph_state *state;
    struct ph__training_program learning;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
    struct ph__micro_batch micro_batch; /* that is bound */
    struct ph_scorer *scorer;           /* NULL when there is nothing to evaluate on */
    struct ph_metrics *metrics;         /* (T) of the evaluation at hand */
    struct ph__metrics_log metrics_log;
    struct ph__state_snapshot snapshot;
    char model_path[PH_MODEL_PATH_BYTES]; /* DIR/model.safetensors */
    char encoder_sha256[65];              /* of DIR/encoder.json */
    int lock;                             /* of the folder */
    struct ph__arena arena;
    const char *identity; /* serve/model_identity.h; in the arena */
    const char *values;   /* those that a resumed training keeps: train/config/job_config.h; in the arena */

    /* What is carried from step to step: saved in checkpoints by the table of resume_file.c. */
    struct ph__recent recent;
    struct ph__progressive progressive;
    struct ph__gathered_scores scored_ahead; /* of all ranks, for it */
    ph_real *own_scores;                     /* of this one, of a batch that is scored in parts */
    size_t own_scores_capacity;
    struct ph__protocol protocol;
    struct ph__tally tally;
    uint64_t epoch;
    bool is_in_epoch;                 /* false: the next step begins epoch + 1 */
    struct ph_position position;      /* in the epoch, behind the latest step */
    struct ph__data_fingerprint data; /* kept by the first rank */
    struct ph__label_check labels;    /* on while rows that can be read only once are learnt from */
    bool has_noted_incomparable;      /* that evaluations compare nothing */
    uint64_t epoch_first_step;        /* steps before the epoch */
    uint64_t steps_per_epoch;         /* 0 in the first epoch */
    uint64_t num_updates;             /* steps less those that were skipped */
    uint64_t evaluated_step;          /* of the latest evaluation */
    uint64_t reported_step;           /* of the latest report */
    uint64_t best_step;               /* that model.safetensors is of; 0: there is none yet */
    char best_seal[65];               /* that model.safetensors carries */
    uint64_t report_bytes;            /* of metrics.jsonl */
    double learning_rate;             /* of the latest step */
    struct ph_train_summary summary;  /* in part */
    struct ph__split_bad_rows bad_rows;

    /* checkpoints */
    bool has_checkpoint;        /* one was there when this process began: it resumes */
    uint64_t saved_step;        /* of the latest checkpoint, 0: none */
    double saved_seconds;       /* ph__clock_seconds at its end */
    struct ph__resumed resumed; /* of the checkpoint that was resumed from */

    /* measurements of this process alone */
    double former_seconds;      /* of training, by those before it */
    double reader_wait_seconds; /* that steps waited for their batches */
    struct ph__run_statistics statistics;
    struct ph__rank_figures figures;
    struct ph__rank_clock clock; /* before the first step, where there is to be a trace */
};

/* ---- where it is ---- */

/* Tells whether train.max_steps, or anything in the settings, wants no further step. */
bool ph__trainer_is_out_of_steps(const struct ph__trainer *trainer);
bool ph__trainer_is_over(const struct ph__trainer *trainer);

/* ---- what it uses ---- */

/* Takes what the process uses now into the peak. */
void ph__trainer_observe_memory(struct ph__trainer *trainer);
/* Takes the plans of both workspaces as they are now, grown or not, into the summary. */
void ph__trainer_observe_plans(struct ph__trainer *trainer);

/* ---- what it reports ---- */

/* Begins a new tally: nothing has happened since the last report. */
void ph__trainer_restart_tally(struct ph__trainer *trainer);

/* Logs the tally, counts its seconds as training, and begins a new one. */
ph_status ph__trainer_log_progress(struct ph__trainer *trainer);

/* Logs trainer->metrics, which have just been measured on data.valid. */
ph_status ph__trainer_log_evaluation(struct ph__trainer *trainer, bool is_best);

/* Logs how far the probabilities of the latest evaluation, which was on `what`, can be believed. */
ph_status ph__trainer_log_calibration(struct ph__trainer *trainer, const char *what);

/* Tells the observer something that does not stop the training. */
void ph__trainer_note(const struct ph__trainer *trainer, const char *text);

#endif
