/* summary.json: how a training ended. */
#ifndef PH_TRAIN_SUMMARY_H
#define PH_TRAIN_SUMMARY_H

#include "base/format/json.h"
#include "train/job.h"
#include "train/measure/evaluate.h"

#define PH_MODEL_PATH_BYTES 1024 /* for DIR/model.safetensors, which summary.json names */

/* Writes the file. ranks: the costs of a training on several ranks (train/ranks/rank_figures.h), of which it
 * takes ownership; else NULL. */
ph_status ph__summary_write(const struct ph__train_job *job, const struct ph_train_summary *summary,
    const struct ph__split_bad_rows *bad_rows, const char *backend, struct ph__json *ranks, const char *path);
/* Reads what ph__summary_write wrote. backend_out is cut to fit; it and bad_rows_out may be NULL.
 * PH_ERROR_CHECKPOINT naming the path and what is missing. */
ph_status ph__summary_read(const char *path, struct ph_train_summary *summary_out,
    struct ph__split_bad_rows *bad_rows_out, char *backend_out, size_t backend_size);

void ph__summary_count_bad_rows(struct ph_train_summary *summary, const struct ph__split_bad_rows *bad_rows);

/* Returns "epochs", "max_steps" or "patience", which is the name in summary.json and the key under "train";
 * "" for PH_ENDED_BY_UNKNOWN. */
const char *ph__train_end_name(enum ph_train_end end);

struct ph__json *ph__metrics_json(const struct ph_metrics *metrics);
/* Sets the members of ph__metrics_json. */
void ph__metrics_set(struct ph__json *object, const struct ph_metrics *metrics);

#endif
