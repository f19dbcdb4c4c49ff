/* DIR/metrics.jsonl: one line for each report, evaluation and window of rows, written as training goes, and,
 * where wanted, the same numbers as TensorBoard events. Reading it back gives curves: a point for each line
 * of a kind, in the order of the file. */
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

/* Columns of the same length; NaN where a line lacks the number. */
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

/* Reads the file back. A missing file is empty. Unknown and damaged lines are skipped: the last one may be
 * half written. PH_ERROR_DATA, PH_ERROR_MEMORY. */
ph_status ph__metrics_file_read(const char *path, struct ph__metrics_file *metrics_out);
void ph__metrics_file_fini(struct ph__metrics_file *metrics);

/* ---- writing ---- */

struct ph__metrics_log {
    FILE *file;
    char path[1024];
    struct ph__event_file events;
};

/* Opens DIR/metrics.jsonl to append behind its first place.metrics_bytes (behind all of it, if it is
 * shorter); cuts off what follows them, here and in event files. has_events: begins a new event file. */
ph_status ph__metrics_log_open(const char *folder, struct ph__event_place place, bool has_events,
    struct ph__metrics_log *metrics_log_out);
ph_status ph__metrics_log_progress(
    struct ph__metrics_log *metrics_log, const struct ph_train_progress *progress);
/* what: "valid" or "test". */
ph_status ph__metrics_log_evaluation(struct ph__metrics_log *metrics_log, const char *what, uint64_t epoch,
    uint64_t step, const struct ph_metrics *metrics);
ph_status ph__metrics_log_window(struct ph__metrics_log *metrics_log, uint64_t epoch, uint64_t step,
    const struct ph__progressive_window *window);
/* Logs the calibration of the evaluation on `what` whose metrics were logged last. */
ph_status ph__metrics_log_calibration(struct ph__metrics_log *metrics_log, const char *what, uint64_t epoch,
    uint64_t step, const struct ph__calibration *calibration);
/* Makes all that was written durable, and gives the file's length. */
ph_status ph__metrics_log_sync(struct ph__metrics_log *metrics_log, uint64_t *bytes_out);
void ph__metrics_log_close(struct ph__metrics_log *metrics_log); /* a zeroed log is fine */

#endif
