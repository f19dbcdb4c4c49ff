/* metrics.jsonl read back, for curves: a row a line of each kind, in the order of the file. */
#ifndef PH_TRAIN_METRICS_FILE_H
#define PH_TRAIN_METRICS_FILE_H

#include "phloem/status.h"
#include "train/measure/calibration.h"

/* Columns of the same length; NaN where a line has no such number. */
enum ph__curve_column {
    PH_CURVE_STEP,
    PH_CURVE_EPOCH,
    PH_CURVE_LOSS, /* "loss" of a report, "logloss" of a measurement */
    PH_CURVE_AUC,
    PH_CURVE_NE,
    PH_CURVE_CALIBRATION,
    PH_CURVE_LEARNING_RATE,
    PH_CURVE_SAMPLES_PER_S,
    PH_CURVE_COLUMNS
};

struct ph__curve {
    size_t count;
    size_t capacities[PH_CURVE_COLUMNS];
    double *columns[PH_CURVE_COLUMNS]; /* (count) */
};

struct ph__metrics_file { /* zero-initialised is empty */
    struct ph__curve train, valid, test, progressive;
    bool has_calibration;
    struct ph__calibration calibration; /* of the best model so far */
    char calibrated_on[8];              /* "valid" or "test" */
};

/* A missing file is empty; a line that is none of ours is passed over: the last may be half written. PH_ERROR_DATA,
 * PH_ERROR_MEMORY. */
ph_status ph__metrics_file_read(const char *path, struct ph__metrics_file *metrics_out);
void ph__metrics_file_fini(struct ph__metrics_file *metrics);

#endif
