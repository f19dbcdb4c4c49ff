/* DIR/metrics.jsonl: a line a report, an evaluation and a window of rows, written as training goes and, where
 * they are wanted, the same numbers as TensorBoard's events; and read back for curves, a row a line of each
 * kind, in the order of the file. */
#ifndef PH_TRAIN_METRICS_FILE_H
#define PH_TRAIN_METRICS_FILE_H

#include <stdio.h>

#include "base/format/json.h"
#include "phloem/status.h"
#include "phloem/train.h"
#include "train/measure/calibration.h"
#include "train/measure/event_file.h"
#include "train/measure/progressive.h"

/* ---- reading ---- */

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

/* Reads the file back. A missing file is empty; a line that is none of ours is passed over: the last may be
 * half written. PH_ERROR_DATA, PH_ERROR_MEMORY. */
ph_status ph__metrics_file_read(const char *path, struct ph__metrics_file *metrics_out);
void ph__metrics_file_fini(struct ph__metrics_file *metrics);

/* ---- writing ---- */

struct ph__metrics_log {
    FILE *file;
    char path[1024];
    struct ph__event_file events;
};

/* Opens DIR/metrics.jsonl to append to its first place.metrics_bytes (all, where it is shorter); what follows
 * them is cut, there and in event files. has_events: a new one is begun. */
ph_status ph__metrics_log_open(const char *folder, struct ph__event_place place, bool has_events,
    struct ph__metrics_log *metrics_log_out);
ph_status ph__metrics_log_progress(
    struct ph__metrics_log *metrics_log, const struct ph_train_progress *progress);
/* what: "valid" or "test". */
ph_status ph__metrics_log_evaluation(struct ph__metrics_log *metrics_log, const char *what, uint64_t epoch,
    uint64_t step, const struct ph_metrics *metrics);
ph_status ph__metrics_log_window(struct ph__metrics_log *metrics_log, uint64_t epoch, uint64_t step,
    const struct ph__progressive_window *window);
/* Logs how far the probabilities of the evaluation on `what` whose metrics were logged last can be believed.
 */
ph_status ph__metrics_log_calibration(struct ph__metrics_log *metrics_log, const char *what, uint64_t epoch,
    uint64_t step, const struct ph__calibration *calibration);
/* Makes what has been written durable, and gives its length. */
ph_status ph__metrics_log_sync(struct ph__metrics_log *metrics_log, uint64_t *bytes_out);
void ph__metrics_log_close(struct ph__metrics_log *metrics_log); /* a zeroed one is fine */

#endif
