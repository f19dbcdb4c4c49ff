/* The rows of a job's splits: at a path, or in a dataset that a program has handed over. */
#ifndef PH_TRAIN_JOB_ROWS_H
#define PH_TRAIN_JOB_ROWS_H

#include "base/file/file.h"
#include "data/batch/batches.h"
#include "data/source/input_file.h"
#include "train/job.h"

/* path and dataset NULL: the job lacks the split. */
struct ph__job_rows {
    const char *path;
    const struct ph_dataset *dataset;    /* takes precedence over the path */
    struct ph__fingerprint *fingerprint; /* of the path's files, updated while they are read; NULL: none */
};

static inline struct ph__job_rows ph__job_train(const struct ph__train_job *job)
{
    return (struct ph__job_rows){.path = job->paths.train, .dataset = job->options.train_dataset};
}

static inline struct ph__job_rows ph__job_valid(const struct ph__train_job *job)
{
    return (struct ph__job_rows){.path = job->paths.valid, .dataset = job->options.valid_dataset};
}

static inline struct ph__job_rows ph__job_test(const struct ph__train_job *job)
{
    return (struct ph__job_rows){.path = job->paths.test, .dataset = job->options.test_dataset};
}

static inline bool ph__job_rows_exist(struct ph__job_rows rows)
{
    return rows.path != NULL || rows.dataset != NULL;
}

/* Returns true when the rows come from a pipe, and so can be read only once. */
static inline bool ph__job_rows_flow(struct ph__job_rows rows)
{
    return rows.dataset == NULL && ph__file_is_pipe(rows.path);
}

static inline bool ph__job_rows_are_prepared(struct ph__job_rows rows)
{
    return rows.dataset == NULL && ph__input_is_prepared(rows.path);
}

static inline ph_status ph__job_rows_open(struct ph__job_rows rows, const struct ph_encoder *encoder,
    const struct ph_batches_options *options, struct ph_batches **batches_out)
{
    if (rows.dataset != NULL)
        return ph_dataset_batches_open(rows.dataset, encoder, options, batches_out);
    return ph__batches_open_fingerprinted(encoder, rows.path, rows.fingerprint, options, batches_out);
}

#endif
