/* metrics.jsonl: a line a report, an evaluation and a window of rows, as training goes. */
#ifndef PH_TRAIN_REPORT_H
#define PH_TRAIN_REPORT_H

#include <stdio.h>

#include "base/json.h"
#include "phloem/train.h"
#include "train/progressive.h"

struct ph__report {
    FILE *file;
    char path[1024];
};

/* Opens DIR/metrics.jsonl to append to its first kept_bytes (all, where it is shorter); what follows them is cut. */
ph_status ph__report_open(const char *folder, uint64_t kept_bytes, struct ph__report *report_out);
ph_status ph__report_progress(struct ph__report *report, const struct ph_train_progress *progress);
/* what: "valid" or "test". */
ph_status ph__report_metrics(struct ph__report *report, const char *what, uint64_t epoch, uint64_t step,
    const struct ph_metrics *metrics);
ph_status ph__report_window(
    struct ph__report *report, uint64_t epoch, uint64_t step, const struct ph__progressive_window *window);
/* Makes what has been written durable; its length. */
ph_status ph__report_sync(struct ph__report *report, uint64_t *bytes_out);
void ph__report_close(struct ph__report *report); /* a zeroed one is fine */

#endif
