/* A training as the rest of this room runs it: settings, an encoder and rows from wherever they come.
 * Programs train by ph_train_config of phloem/train.h. */
#ifndef PH_TRAIN_JOB_H
#define PH_TRAIN_JOB_H

#include "phloem/train.h"

struct ph__fabric;
struct ph__shared_batches;
struct ph__shared_plan;

/* A training to run. Pointers are borrowed. */
struct ph__train_job {
    struct ph_run_settings run;
    const struct ph_model_settings *model;
    const struct ph_train_settings *train;
    const struct ph_optimizer_settings *optimizer;
    const struct ph_parallel_settings *parallel; /* NULL only if comm is NULL */
    const struct ph_encoder *encoder;
    struct ph_data_paths paths; /* valid and test may be NULL */
    /* For the training rows; max_bad_rows for each split. Predictions are corrected for negative_rate
     * wherever the model scores: docs/ONLINE.md. */
    struct ph_reading reading;
    /* Shared by ranks of one process that run one at a time, as simulated ones do. NULL: each rank reads its
     * rows, and makes its plan, itself. */
    struct ph__shared_batches *shared_batches;
    struct ph__shared_plan *shared_plan;
    const struct ph__fabric *fabric; /* the cluster for parallel.collective; NULL: parallel.topology's */
    /* NULL: one of its own. One that simulates (graph/op.h) has no numbers: nothing is evaluated or saved. */
    struct ph_backend *backend;
    struct ph_train_options
        options; /* of comm all ranks have equal jobs; sizes and summary_json are not read */
};

/* Checks that a training may begin or resume in the folder, which is made when it is missing.
 * has_checkpoint_out: there is a checkpoint to resume from, and `encoder` of the job must then be that of the
 * folder's encoder.json. A folder of a training that was stopped before its first checkpoint begins anew.
 * Errors: PH_ERROR_USAGE for a folder that is not empty unless is_resumed, PH_ERROR_CHECKPOINT for one that
 * holds no training that could be resumed, PH_ERROR_DISK. */
ph_status ph__train_check_folder(const char *folder, bool is_resumed, bool *has_checkpoint_out);

/* Trains, and leaves in the folder what ph_train_config of phloem/train.h says, but no config.yaml: the
 * caller writes it, from on_start. The job's observer needs no size.
 *
 * Errors: those of ph_train_config; a job that differs from that of the checkpoint where it may not is
 * PH_ERROR_CHECKPOINT, naming a setting. */
ph_status ph__train(const struct ph__train_job *job, struct ph_train_summary *summary_out);

#endif
