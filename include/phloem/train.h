/* Training: the loop over batches, its measurements, and the folder that holds the outcome.
 *
 * A training follows the BARS protocol: after each epoch the validation metric decides. When it did not rise
 * the learning rate is cut (schedule "plateau"); after `patience` such epochs in a row training stops, and
 * the best model is kept and restored. Used by one thread at a time. */
#ifndef PHLOEM_TRAIN_H
#define PHLOEM_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/comm.h"
#include "phloem/data.h"
#include "phloem/graph.h"
#include "phloem/kernel.h"
#include "phloem/model.h"
#include "phloem/options.h"
#include "phloem/serve.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ph_config; /* phloem/config.h */

enum ph_schedule_kind { PH_SCHEDULE_CONSTANT, PH_SCHEDULE_STEP, PH_SCHEDULE_COSINE, PH_SCHEDULE_PLATEAU };
enum ph_selection { PH_SELECT_AUC, PH_SELECT_LOGLOSS };
enum ph_non_finite { PH_NON_FINITE_STOP, PH_NON_FINITE_SKIP };
enum ph_table_scope { PH_SCOPE_TOUCHED, PH_SCOPE_WHOLE };

/* Optimizers of tables: the same as for all other parameters, or one of their own. */
enum ph_embedding_kind {
    PH_EMBEDDING_SAME,
    PH_EMBEDDING_SGD,
    PH_EMBEDDING_MOMENTUM,
    PH_EMBEDDING_ADAGRAD,
    PH_EMBEDDING_ROWWISE_ADAGRAD,
    PH_EMBEDDING_ADAM,
    PH_EMBEDDING_ADAMW
};

/* Settings of the parameters whose name matches a pattern; later groups win. */
struct ph_optimizer_group {
    const char *name;
    const char *pattern;         /* "deep.*": * and ? as in file names */
    double learning_rate_factor; /* multiplies the factor of the parameter */
    double l2;                   /* negative: as without the group */
    double weight_decay;         /* negative: as without the group */
};

/* The keys under "optimizer". */
struct ph_optimizer_settings {
    struct ph_update_rule rule;
    double learning_rate;
    double net_l2;
    enum ph_embedding_kind embedding_kind;
    double embedding_learning_rate_factor;
    double embedding_l2;
    enum ph_table_scope embedding_scope; /* rows that each step updates and decays */
    const struct ph_optimizer_group *groups;
    size_t num_groups;
};

/* The keys without a section. */
struct ph_run_settings {
    uint64_t seed;
    size_t num_threads;     /* at most 1024; 0: all processors that this process may use */
    enum ph_team_kind team; /* deterministic = false needs PH_TEAM_OPENMP */
};

/* The keys under "train". */
/* Ways to learn from a teacher's probabilities (docs/FOUNDATION.md). */
enum ph_distill {
    PH_DISTILL_NONE,
    PH_DISTILL_SINGLE, /* by the model's own logits */
    PH_DISTILL_HEAD,   /* by an auxiliary head */
    PH_DISTILL_ADAPTER /* by that, and by another head from what an adapter makes of the teacher */
};

struct ph_train_settings {
    int64_t epochs, batch_size;
    int64_t accumulation_steps; /* micro-batches that a step's batch is cut into, at most batch_size; 0: 1 */
    int64_t max_steps;          /* 0: no limit */
    enum ph_precision precision;
    enum ph_row_format row_format; /* format of all tables: one that can be learnt */
    bool deterministic;            /* the same bits for any number of threads; false needs PH_TEAM_OPENMP */
    int64_t evaluate_steps;        /* also evaluate every so many steps; 0: after epochs only */
    enum ph_selection selection;
    /* Evaluations in a row without improvement before training stops; 0: never stops. Evaluations with an
     * undefined metric (AUC of one class) are not counted. */
    int64_t patience;
    enum ph_schedule_kind schedule;
    int64_t warmup_steps;
    int64_t schedule_steps;   /* STEP: steps between cuts; COSINE: steps until the end (0: max_steps) */
    double schedule_factor;   /* STEP, PLATEAU: factor of a cut; COSINE: factor at the end */
    double min_learning_rate; /* schedules do not cut below this */
    double max_gradient_norm; /* 0: not clipped */
    enum ph_non_finite non_finite;
    double report_seconds;     /* between two reports */
    double checkpoint_seconds; /* between two checkpoints to resume from; 0: none by time */
    int64_t checkpoint_steps;  /* also one every so many steps; 0: none by steps */
    int64_t checkpoints_kept;  /* the latest ones, at least 1 */
    bool progressive; /* rows are scored before they are learnt from; needs all rows, in order, and once */
    int64_t progressive_rows; /* rows of one window: 1 .. 1000000 */
    enum ph_distill distill;
    double distill_weight;         /* of the loss by the teacher, beside the labels' */
    double distill_label_scale;    /* of the teacher's probabilities, for the auxiliary head */
    double distill_gradient_scale; /* of the heads' gradients into the model */
    int64_t distill_units;         /* of a head's hidden layer; 0: heads have none */
    const char *recipes;           /* file of recipes, as phloem precision writes it; "" or NULL: all fp32 */
    int64_t probe_steps;           /* steps between two looks at products, docs/CONFIG.md; 0: none */
    bool report;                   /* report.html at the end of each process's part: docs/REPORTS.md */
    bool tensorboard;              /* events.out.tfevents.*, written as training runs */
};

enum ph_sync { PH_SYNC_NONE, PH_SYNC_ALLREDUCE, PH_SYNC_HUB };

/* Ways in which ranks hold dense parameters (docs/PARALLEL.md). AUTO: as the plan file says or, where ranks
 * make a plan, replicated unless memory forbids it. */
enum ph_dense_sharding {
    PH_DENSE_SHARDING_AUTO,
    PH_DENSE_SHARDING_REPLICATED,
    PH_DENSE_SHARDING_ZERO1,
    PH_DENSE_SHARDING_KEEP_AFTER_FORWARD,
    PH_DENSE_SHARDING_FULL,
    PH_DENSE_SHARDING_HYBRID
};

/* The keys under "parallel". */
struct ph_parallel_settings {
    const char *plan; /* a file, "auto" or "none" */
    enum ph_dense_sharding dense_mode;
    const char *topology; /* a file that "auto" takes the machines' figures from; NULL: nominal ones */
    enum ph_sync sync;
    enum ph_collective collective; /* by which ranks sum and gather what all of them take part in */
    bool collective_retry;         /* PH_COLLECTIVE_AUTO: choose again when sums take longer than expected */
    const char *transport;
    int64_t ranks_per_host;
    double timeout_seconds;
    int64_t memory_bytes; /* bytes of a rank for tables and their slots; 0: no limit */
    enum ph_wire_format forward, backward,
        dense; /* formats of pooled vectors, their gradients, and dense gradients */
    int64_t bucket_bytes;
    bool overlap;
    const char *hub; /* PH_SYNC_HUB: addresses, as ph_hub_options of phloem/hub.h takes them; "": none */
    const char *hub_secret_file; /* a file; NULL: none */
    const char *hub_job;         /* "": a name that no other job has */
};

/* Quality of one task's predictions; NaN where undefined (AUC of one class). Samples count alike. Of a label
 * with classes only logloss, that of the softmax, and accuracy are defined, of all tasks together. */
struct ph_metrics {
    uint64_t num_samples; /* with a known label */
    double auc; /* ties count half; exact for up to 2^20 samples of a file, and wherever there are groups */
    double auc_error;   /* the exact area is within this distance; 0: auc is exact. Beyond 2^20 samples scores
                           are counted in bins */
    double logloss;     /* natural logarithm, probabilities kept 1e-7 away from 0 and 1 */
    double ne;          /* logloss / entropy of the base rate */
    double calibration; /* sum of predictions / sum of labels */
    double grouped_auc; /* mean over groups by size, one-class groups left out; NaN without groups */
    double base_rate;
    double accuracy; /* of classes: share of the samples whose largest logit is their label's; else NaN */
};

/* Measures scores: logits (n); labels (n) in [0,1], above .5 positive for AUC; groups (n) or NULL.
 * PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_metrics_compute(size_t n, const ph_real *scores, const ph_real *labels,
    const int64_t *groups, struct ph_metrics *metrics_out);

/* Measure each task, metrics_out (T; with classes the first one is of all), over a path, as ph_batches_open
 * takes it, or over a dataset; the same rows give the same bits. Bad rows are left out up to max_bad_rows of
 * the scorer's options; one more is PH_ERROR_DATA, naming it. Called by one thread at a time, which scores;
 * where num_prefetched is set, another makes the batches. Other errors: those of ph_batches_open and
 * ph_batches_next, PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_scorer_evaluate(
    struct ph_scorer *scorer, const char *path, struct ph_metrics *metrics_out);
PH_MUST_CHECK ph_status ph_scorer_evaluate_dataset(
    struct ph_scorer *scorer, const struct ph_dataset *dataset, struct ph_metrics *metrics_out);

/* Do the same with the model of a session, in the session's formats, on as many threads as the session serves
 * calls at once: the figures of phloem eval, to the bit. Bad rows and batches made ahead are as the folder's
 * config.yaml says. Any number of threads may evaluate and score at once; each evaluation has memory and
 * threads of its own. */
PH_MUST_CHECK ph_status ph_session_evaluate(
    struct ph_session *session, const char *path, struct ph_metrics *metrics_out);
PH_MUST_CHECK ph_status ph_session_evaluate_dataset(
    struct ph_session *session, const struct ph_dataset *dataset, struct ph_metrics *metrics_out);

/* ---- training ---- */

/* State of a running training: a report of the steps since the last one, or an evaluation, which no step has
 * followed yet. NaN: unknown. */
struct ph_train_progress {
    uint64_t epoch, epochs; /* from 1 */
    uint64_t step;          /* from 1, over all epochs */
    uint64_t total_steps;   /* expected, 0 while unknown */
    double samples_per_s;   /* since the last report; NaN for an evaluation */
    double loss;            /* mean since the last report; NaN for an evaluation */
    double auc;             /* of the latest training samples, first task; NaN while undefined */
    size_t num_ranks; /* ranks that train together: auc is of the first one's own samples, the other figures
                         of all */
    double learning_rate;
    double seconds_left;            /* at the speed since the last report; NaN for an evaluation */
    const struct ph_metrics *valid; /* (T) for an evaluation, borrowed during the call; otherwise NULL */
    bool is_best;                   /* this evaluation was the best so far */
};

/* Callbacks of a training, called by the thread that trains. A status other than PH_OK stops the training
 * with it. Functions may be NULL. */
struct ph_train_observer {
    size_t size; /* sizeof the struct: phloem/options.h */
    void *context;
    ph_status (*on_progress)(void *context, const struct ph_train_progress *progress);
    /* Called when the job fits and is about to write into its folder for the first time; not when a resumed
     * training has nothing left to do. */
    ph_status (*on_start)(void *context);
    /* Called with one line, borrowed, that users should know although the training goes on. */
    void (*on_note)(void *context, const char *text);
    /* Called with true when there is something to save: from then on the program leaves a signal in
     * *stop_signal. Before, and after a call with false, a signal may end the process at once; a call with
     * false ends it for a signal that was left but not handled. */
    void (*on_watch)(void *context, bool is_on);
};

/* Gives a progress as JSON: its members by name, null for what is unknown, `valid` an object with the metrics
 * of the first task, or null. The caller frees the text with ph_text_free. PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_train_progress_json(const struct ph_train_progress *progress, char **text_out);

/* Buffers for the first bad row of each file: its place and the reason; "": there is none. */
struct ph_first_bad_rows {
    struct ph_buffer train, valid, test;
};

/* Options for ph_train_config. Pointers are borrowed during the call. */
struct ph_train_options {
    size_t size;        /* sizeof the struct: phloem/options.h */
    const char *folder; /* made if missing; gets the files below */
    bool is_resumed;    /* set to continue in a folder that is not empty */
    /* NULL, or used in the place of data.train, data.valid and data.test. A training that is resumed needs
     * the same rows: it compares files, but cannot compare datasets. */
    const struct ph_dataset *train_dataset, *valid_dataset, *test_dataset;
    const struct ph_train_observer *observer; /* NULL: none */
    const volatile int *stop_signal;          /* NULL, or set by a signal handler: SIGINT or SIGTERM */
    /* NULL: this process alone; otherwise all its ranks train together, with equal configs: an error on one
     * of them is an error on all, and comm is unusable afterwards. */
    struct ph_comm *comm;
    const struct ph_reducer *reducer; /* for several ranks with parallel.sync hub; NULL: none */
    const char
        *profile_path;      /* NULL: none; otherwise gets rank 0's table of operators; "-": standard output */
    const char *trace_path; /* NULL: no trace; either all ranks want one or none */
    struct ph_first_bad_rows first_bad_rows;
    char **summary_json; /* NULL, or gets the text of summary.json, on rank 0; freed with ph_text_free */
};

/* Peak anonymous memory of the process is promised to stay within baseline + parameters + slots + plan +
 * PH_TRAIN_ALLOWANCE_BYTES. */
#define PH_TRAIN_ALLOWANCE_BYTES (64ull << 20)
struct ph_train_memory {
    uint64_t baseline_bytes;  /* anonymous memory before the graph was built */
    uint64_t parameter_bytes; /* parameters and carried state */
    uint64_t slot_bytes;
    uint64_t plan_bytes;           /* workspaces of training and evaluation, buffers reused */
    uint64_t no_reuse_bytes;       /* plan without reuse */
    uint64_t probe_bytes;          /* of distributions, with train.probe_steps */
    uint64_t peak_anonymous_bytes; /* the most seen */
    uint64_t num_growths;          /* batches that outgrew the capacity */
};

/* Reasons why a training took no further step. */
enum ph_train_end {
    PH_ENDED_BY_UNKNOWN, /* summary.json is of a version that did not record the reason */
    PH_ENDED_BY_EPOCHS,
    PH_ENDED_BY_MAX_STEPS,
    PH_ENDED_BY_PATIENCE
};

struct ph_train_summary {
    uint64_t epochs, best_epoch, steps, skipped_steps, samples;
    size_t num_threads;
    double train_seconds,
        samples_per_s;        /* over the steps and their data, without evaluations and checkpoints */
    double reader_wait_share; /* share of this process's part of train_seconds that steps waited for their
                                 batches */
    double probe_share;       /* share of the same that looks at products took; 0: there were none */
    double flops_per_sample;  /* forward, backward and update, by the operators' cost rules */
    uint64_t parameters;      /* weights learnt */
    uint64_t peak_rss_bytes;
    struct ph_train_memory memory;
    bool has_valid, has_test;
    struct ph_metrics valid, test; /* of the best model, first task */
    bool has_progressive;
    /* Metrics of all rows, each scored before it was learnt from, first task; auc: the mean over windows by
     * size, one-class windows left out. */
    struct ph_metrics progressive;
    uint64_t train_bad_rows, valid_bad_rows, test_bad_rows; /* left out, in the latest pass over each */
    /* Sum over the parameters and state of FOLDER/model.safetensors by name, not over the file, which has
     * more. */
    char checkpoint_sha256[65];
    uint64_t resumed_step; /* step that this process resumed at; 0: it began the training */
    bool was_finished;     /* nothing was left to do: the other members are from summary.json */
    enum ph_train_end ended_by;
};

/* Trains by a config, and leaves in the folder: config.yaml, model.safetensors (the best model),
 * encoder.json, metrics.jsonl (a line for each report and evaluation, written as training runs), checkpoints/
 * (docs/RESUME.md) and summary.json; with train.report a report.html, which a process that is stopped or
 * fails leaves as well, and with train.tensorboard event files. ph_session_open opens the folder, and so do
 * the verbs of the program phloem.
 *
 * With is_resumed, and a folder that has a checkpoint, the training goes on from the newest valid one, and
 * ends in the same bits as if it had not been stopped. These may differ from the training that was stopped:
 * threads, observer, num_prefetched, report and checkpoint settings; the paths, of the same files byte for
 * byte, text or prepared as they were, where valid may neither appear nor disappear; patience (0: without
 * end) and max_bad_rows upwards; epochs and max_steps, but not below the checkpoint's, and max_steps not at
 * all where the cosine schedule ends with it. docs/RESUME.md has the whole list. A training that has nothing
 * left to do leaves its folder unchanged; one that was stopped before its first checkpoint begins anew.
 *
 * Errors: PH_ERROR_USAGE for a folder that is not empty unless is_resumed, or while another training works in
 * it; those of ph_encoder_create; PH_ERROR_MEMORY before the first step when the training cannot fit, with
 * the sum; PH_ERROR_DATA for the data, also for files of train or valid that have changed since the training
 * was begun, and for a label that is blank in every training row; PH_ERROR_DIVERGED for losses, weights or
 * scores that are not finite (policy "stop"); PH_ERROR_CHECKPOINT when no checkpoint is valid, or it is of
 * another training; PH_ERROR_CONFIG without data.train, for settings that contradict one another, that differ
 * from those in the folder though they may not change, or that are not the same on all ranks; PH_ERROR_DISK;
 * PH_ERROR_INTERRUPTED and PH_ERROR_TERMINATED after *stop_signal: once a checkpoint is saved or, before the
 * first step, at once. The last good checkpoint survives them all. summary_out may be NULL. */
PH_MUST_CHECK ph_status ph_train_config(const struct ph_config *config,
    const struct ph_train_options *options, struct ph_train_summary *summary_out);

#ifdef __cplusplus
}
#endif
#endif
