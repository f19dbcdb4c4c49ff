/* Predictions collected over a data set, and measured at its end. */
#ifndef PH_TRAIN_METRICS_H
#define PH_TRAIN_METRICS_H

#include "phloem/train.h"
#include "tensor/auc.h"

/* Sums, row by row, for the metrics that need no order. Zero-initialised is empty. */
struct ph__metric_sums {
    uint64_t count;
    double loss, predicted, positive;
    bool is_classes;      /* only count, loss and what follows are of use */
    uint64_t num_correct; /* rows whose largest score is their class's */
};

void ph__metric_sums_add(struct ph__metric_sums *sums, ph_real score, ph_real label);
/* Computes the metrics of the sums; auc and grouped_auc are NaN. */
struct ph_metrics ph__metric_sums_metrics(const struct ph__metric_sums *sums);

/* Most scores and labels of a task that are kept for an exact AUC; with more, it is counted in bins. A
 * grouped AUC needs all. */
#define PH_EXACT_SAMPLES ((size_t)1 << 20)

/* Predictions of one task, in bounded memory unless there are groups. Zero-initialised is empty. */
struct ph__predictions {
    struct ph__metric_sums sums;
    size_t count; /* of scores and labels kept */
    size_t scores_capacity, labels_capacity, groups_capacity;
    ph_real *scores, *labels;
    int64_t *groups;
    bool has_groups;
    struct ph__score_bins *bins; /* NULL while all scores are kept */
    size_t max_exact;            /* 0: PH_EXACT_SAMPLES */
};

/* Adds the known labels of task `task` of a batch; logits (B,T). */
ph_status ph__predictions_add(
    struct ph__predictions *predictions, const struct ph_batch *batch, const ph_real *logits, size_t task);
/* Adds the rows with a known class; logits (B,T) are log odds of the classes' probabilities. */
void ph__predictions_add_classes(
    struct ph__predictions *predictions, const struct ph_batch *batch, const ph_real *logits);
ph_status ph__predictions_measure(struct ph__predictions *predictions, struct ph_metrics *metrics_out);
void ph__predictions_fini(struct ph__predictions *predictions);

#endif
