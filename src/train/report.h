/* What a training leaves for others to read: metrics.jsonl, a line a report and an evaluation, and summary.json. */
#ifndef PH_TRAIN_REPORT_H
#define PH_TRAIN_REPORT_H

#include <stdio.h>

#include "base/json.h"
#include "phloem/train.h"

/* metrics.jsonl, opened anew. */
struct ph__report {
    FILE *file;
    char path[1024];
};
ph_status ph__report_open(const char *folder, struct ph__report *report_out);
ph_status ph__report_progress(struct ph__report *report, const struct ph_train_progress *progress);
/* what: "valid" or "test". */
ph_status ph__report_metrics(struct ph__report *report, const char *what, uint64_t epoch, uint64_t step,
    const struct ph_metrics *metrics);
void ph__report_close(struct ph__report *report); /* a zeroed one is fine */

struct ph_json *ph__metrics_json(const struct ph_metrics *metrics);

ph_status ph__summary_write(const struct ph_train_job *job, const struct ph_train_summary *summary,
    const char *backend, const char *path);

#endif
