/* metrics.jsonl: a line a report, an evaluation and a window of rows, as training goes; and, where they are wanted, the same
 * numbers as TensorBoard's events. */
#ifndef PH_TRAIN_REPORT_H
#define PH_TRAIN_REPORT_H

#include <stdio.h>

#include "base/format/json.h"
#include "phloem/train.h"
#include "train/measure/calibration.h"
#include "train/measure/event_file.h"
#include "train/measure/progressive.h"

struct ph__report {
    FILE *file;
    char path[1024];
    struct ph__event_file events;
};

/* Opens DIR/metrics.jsonl to append to its first place.metrics_bytes (all, where it is shorter); what follows them is cut,
 * there and in event files. has_events: a new one is begun. */
ph_status ph__report_open(
    const char *folder, struct ph__event_place place, bool has_events, struct ph__report *report_out);
ph_status ph__report_progress(struct ph__report *report, const struct ph_train_progress *progress);
/* what: "valid" or "test". */
ph_status ph__report_metrics(struct ph__report *report, const char *what, uint64_t epoch, uint64_t step,
    const struct ph_metrics *metrics);
ph_status ph__report_window(
    struct ph__report *report, uint64_t epoch, uint64_t step, const struct ph__progressive_window *window);
/* Of the evaluation on `what` whose metrics were reported last. */
ph_status ph__report_calibration(struct ph__report *report, const char *what, uint64_t epoch, uint64_t step,
    const struct ph__calibration *calibration);
/* Makes what has been written durable; its length. */
ph_status ph__report_sync(struct ph__report *report, uint64_t *bytes_out);
void ph__report_close(struct ph__report *report); /* a zeroed one is fine */

#endif
