/* The rows of a job's splits: at a path, or in a dataset that a program has handed over. */
#ifndef PH_TRAIN_JOB_ROWS_H
#define PH_TRAIN_JOB_ROWS_H

#include "base/file/file.h"
#include "data/batch/batches.h"
#include "data/source/input_file.h"
#include "train/job.h"

static inline struct ph__rows_origin ph__job_train(const struct ph__train_job *job)
{
    return (struct ph__rows_origin){
        .path = job->paths.train, .dataset = job->options.train_dataset, .shared = job->shared_batches};
}

static inline struct ph__rows_origin ph__job_valid(const struct ph__train_job *job)
{
    return (struct ph__rows_origin){.path = job->paths.valid, .dataset = job->options.valid_dataset};
}

static inline struct ph__rows_origin ph__job_test(const struct ph__train_job *job)
{
    return (struct ph__rows_origin){.path = job->paths.test, .dataset = job->options.test_dataset};
}

static inline bool ph__job_rows_exist(struct ph__rows_origin rows)
{
    return rows.path != NULL || rows.dataset != NULL;
}

/* Returns true when the rows come from a pipe, and so can be read only once. */
static inline bool ph__job_rows_flow(struct ph__rows_origin rows)
{
    return rows.dataset == NULL && ph__file_is_pipe(rows.path);
}

static inline bool ph__job_rows_are_prepared(struct ph__rows_origin rows)
{
    return rows.dataset == NULL && ph__input_is_prepared(rows.path);
}

#endif
