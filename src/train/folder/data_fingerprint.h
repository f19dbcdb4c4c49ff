/* Identifies the data that a training began with, so that --resume continues with the same: kept in each
 * checkpoint, compared before the first step after it. Only training rows and validation rows are compared,
 * for they alone decide what is learnt and kept; test rows are read at the end. */
#ifndef PH_TRAIN_DATA_FINGERPRINT_H
#define PH_TRAIN_DATA_FINGERPRINT_H

#include "base/format/json.h"
#include "data/source/fingerprint.h"
#include "train/job_rows.h"

struct ph__data_fingerprint { /* zero-initialised: no fingerprint is kept */
    struct ph__fingerprint train, valid;
    struct ph__read_place train_place; /* after the latest step */
    bool is_kept;
};

/* Looks at the files of the job's rows. Call fini also after a failure. */
ph_status ph__data_fingerprint_begin(
    struct ph__data_fingerprint *fingerprint, const struct ph__train_job *job);
void ph__data_fingerprint_fini(struct ph__data_fingerprint *fingerprint);

/* Return the job's rows with the fingerprint that reading them updates. */
struct ph__rows_origin ph__data_fingerprint_train(
    struct ph__data_fingerprint *fingerprint, const struct ph__train_job *job);
struct ph__rows_origin ph__data_fingerprint_valid(
    struct ph__data_fingerprint *fingerprint, const struct ph__train_job *job);

/* Gives the fingerprint as text, malloc'ed. Nothing may read validation rows meanwhile. */
ph_status ph__data_fingerprint_text(
    struct ph__data_fingerprint *fingerprint, const struct ph__train_job *job, char **text_out);

/* Compares a fingerprint that has begun with a checkpoint's text, and reads again the data that was read
 * before the checkpoint, unless job->options.stop_signal ends that. PH_ERROR_DATA names the file that has
 * changed. path: of the checkpoint, for errors in the text. */
ph_status ph__data_fingerprint_resume(struct ph__data_fingerprint *fingerprint,
    const struct ph__train_job *job, const char *text, const char *path,
    const struct ph__meanwhile *meanwhile);

#endif
