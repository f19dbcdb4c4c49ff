/* Checks of a job before its first step: its settings fit together, and each label has a value. */
#ifndef PH_TRAIN_JOB_CHECK_H
#define PH_TRAIN_JOB_CHECK_H

#include "train/job_rows.h"

/* PH_ERROR_CONFIG when the job's settings are invalid, or do not fit its data or its ranks. */
ph_status ph__train_job_check(const struct ph__train_job *job);

/* Reports that a signal ended the training before its first step; returns the signal's status. */
ph_status ph__fail_stopped_early(ph_status status);

/* ---- labels: a column that is blank in every training row teaches nothing, and its loss is 0 ---- */

struct ph__label_check { /* zero-initialised: off; fini is fine */
    bool is_on;
    bool *is_known; /* (T) */
    size_t num_unknown;
};

ph_status ph__label_check_init(struct ph__label_check *check, size_t num_tasks); /* PH_ERROR_MEMORY */
void ph__label_check_fini(struct ph__label_check *check);
void ph__label_check_add(struct ph__label_check *check, const struct ph_batch *batch);

/* PH_ERROR_DATA naming the first label that was blank in all added rows, and the place of these rows. */
ph_status ph__label_check_end(
    const struct ph__label_check *check, const struct ph_encoder *encoder, struct ph__rows_origin rows);

/* Reads the job's training rows until each label has a value, mostly within the first batch. Rows that can be
 * read only once are left to the training's own pass. */
ph_status ph__label_check_look(const struct ph__train_job *job, const struct ph__meanwhile *meanwhile);

#endif
