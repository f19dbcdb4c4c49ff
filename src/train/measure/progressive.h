/* Metrics of rows that are learnt from, while training runs: progressive validation, and the latest samples.
 *
 * Progressive validation scores each row before it is learnt from (predict, then train), so that the whole
 * stream is held-out data once. Metrics come by windows of consecutive rows, and over all rows so far: sums
 * that take no memory, and an AUC that is the mean of the windows' (one AUC over all rows would need all
 * scores). Metrics are those of the first task. */
#ifndef PH_TRAIN_PROGRESSIVE_H
#define PH_TRAIN_PROGRESSIVE_H

#include "phloem/train.h"
#include "train/measure/metrics.h"

#define PH_PROGRESSIVE_MAX_ROWS 1000000

struct ph__progressive { /* zero-initialised: off */
    size_t window_rows;
    /* the current window */
    uint64_t first_row;       /* in the stream, from 0 */
    size_t num_rows;          /* so far */
    size_t count;             /* of them with a known label */
    ph_real *scores, *labels; /* (window_rows), the first `count` are set */
    /* over all rows so far */
    struct ph__metric_sums sums;
    double auc_sum; /* of windows with both classes: AUC times samples */
    uint64_t auc_samples;
};

struct ph__progressive_window {
    uint64_t first_row, num_rows;
    struct ph_metrics metrics; /* of the rows with a known label */
};

/* window_rows: 1 .. PH_PROGRESSIVE_MAX_ROWS */
ph_status ph__progressive_init(struct ph__progressive *progressive, size_t window_rows);
void ph__progressive_fini(struct ph__progressive *progressive);

/* Adds rows of the batch from `first` on until the window is full or the batch ends; returns the next row of
 * the batch. logits (B,T). Not to be called while the window is full. */
size_t ph__progressive_add(
    struct ph__progressive *progressive, const struct ph_batch *batch, const ph_real *logits, size_t first);
static inline bool ph__progressive_is_full(const struct ph__progressive *progressive)
{
    return progressive->num_rows == progressive->window_rows;
}

/* Ends the window, full or not, and begins the next one. */
ph_status ph__progressive_end_window(
    struct ph__progressive *progressive, struct ph__progressive_window *window_out);

/* Returns the metrics over all windows that have ended. grouped_auc is NaN. */
struct ph_metrics ph__progressive_metrics(const struct ph__progressive *progressive);

/* ---- the latest training samples' scores, for an AUC while training runs ---- */

#define PH_RECENT_SAMPLES 32768

struct ph__recent { /* a ring; zero-initialised is empty */
    size_t count, next;
    ph_real *scores, *labels; /* (PH_RECENT_SAMPLES) */
};

ph_status ph__recent_init(struct ph__recent *recent);
void ph__recent_add(
    struct ph__recent *recent, const struct ph_batch *batch, const ph_real *logits); /* task 0 */
ph_status ph__recent_auc(const struct ph__recent *recent, double *auc_out);          /* NaN while undefined */
void ph__recent_fini(struct ph__recent *recent);

#endif
