#include "train/measure/metrics.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "serve/scorer.h"

#define MIN_PROBABILITY 1e-7

/* Returns the cross-entropy; NaN for NaN, which fmin and fmax alone would take for a probability. */
static double cross_entropy(double label, double probability)
{
    double p =
        isnan(probability) ? probability : fmin(fmax(probability, MIN_PROBABILITY), 1 - MIN_PROBABILITY);
    return -(label * log(p) + (1 - label) * log1p(-p));
}

void ph__metric_sums_add(struct ph__metric_sums *sums, ph_real score, ph_real label)
{
    double p = ph__sigmoid((double)score);
    sums->count++;
    sums->loss += cross_entropy((double)label, p);
    sums->predicted += p;
    sums->positive += (double)label;
}

struct ph_metrics ph__metric_sums_metrics(const struct ph__metric_sums *sums)
{
    double count = (double)sums->count;
    double base_rate = count > 0 && !sums->is_classes ? sums->positive / count : (double)NAN;
    double logloss = count > 0 ? sums->loss / count : (double)NAN;
    bool has_entropy = base_rate > 0 && base_rate < 1;
    return (struct ph_metrics){
        .num_samples = sums->count,
        .auc = (double)NAN,
        .grouped_auc = (double)NAN,
        .logloss = logloss,
        .ne = has_entropy ? logloss / cross_entropy(base_rate, base_rate) : (double)NAN,
        .calibration = sums->positive > 0 ? sums->predicted / sums->positive : (double)NAN,
        .base_rate = base_rate,
        .accuracy = count > 0 && sums->is_classes ? (double)sums->num_correct / count : (double)NAN,
    };
}

ph_status ph_metrics_compute(size_t n, const ph_real *scores, const ph_real *labels, const int64_t *groups,
    struct ph_metrics *metrics_out)
{
    double auc = (double)NAN, grouped_auc = (double)NAN;
    PH_TRY(ph__auc(n, scores, labels, &auc));
    if (groups != NULL)
        PH_TRY(ph__grouped_auc(n, scores, labels, groups, &grouped_auc));
    struct ph__metric_sums sums = {0};
    for (size_t i = 0; i < n; i++)
        ph__metric_sums_add(&sums, scores[i], labels[i]);
    *metrics_out = ph__metric_sums_metrics(&sums);
    metrics_out->auc = auc;
    metrics_out->grouped_auc = grouped_auc;
    return PH_OK;
}

static ph_status reserve(struct ph__predictions *predictions, size_t count)
{
    PH_TRY(ph__array_reserve(
        (void **)&predictions->scores, &predictions->scores_capacity, count, sizeof *predictions->scores));
    PH_TRY(ph__array_reserve(
        (void **)&predictions->labels, &predictions->labels_capacity, count, sizeof *predictions->labels));
    if (!predictions->has_groups)
        return PH_OK;
    return ph__array_reserve(
        (void **)&predictions->groups, &predictions->groups_capacity, count, sizeof *predictions->groups);
}

/* Counts the kept scores in bins, and empties them. */
static ph_status move_to_bins(struct ph__predictions *predictions)
{
    if (predictions->bins == NULL)
        PH_TRY(ph__score_bins_create(&predictions->bins));
    ph__score_bins_add(predictions->bins, predictions->count, predictions->scores, predictions->labels);
    predictions->count = 0;
    return PH_OK;
}

ph_status ph__predictions_add(
    struct ph__predictions *predictions, const struct ph_batch *batch, const ph_real *logits, size_t task)
{
    size_t max_exact = predictions->max_exact != 0 ? predictions->max_exact : PH_EXACT_SAMPLES;
    predictions->has_groups = batch->groups != NULL;
    PH_TRY(reserve(predictions, predictions->count + batch->num_samples));
    for (size_t b = 0; b < batch->num_samples; b++) {
        size_t at = b * batch->num_tasks + task;
        if (batch->label_mask != NULL && batch->label_mask[at] == 0)
            continue;
        size_t next = predictions->count++;
        predictions->scores[next] = logits[at];
        predictions->labels[next] = batch->labels[at];
        ph__metric_sums_add(&predictions->sums, logits[at], batch->labels[at]);
        if (predictions->has_groups)
            predictions->groups[next] = batch->groups[b];
    }
    bool is_full = predictions->count > max_exact && !predictions->has_groups;
    return is_full ? move_to_bins(predictions) : PH_OK;
}

/* Adds a row of scores and labels, of which the largest label is the row's class. */
static void add_class(
    struct ph__metric_sums *sums, size_t num_classes, const ph_real *scores, const ph_real *labels)
{
    size_t label = 0, best = 0;
    for (size_t i = 1; i < num_classes; i++) {
        label = labels[i] > labels[label] ? i : label;
        best = scores[i] > scores[best] ? i : best;
    }
    sums->count++;
    sums->num_correct += best == label;
    sums->loss += cross_entropy(1, ph__sigmoid((double)scores[label]));
}

void ph__predictions_add_classes(
    struct ph__predictions *predictions, const struct ph_batch *batch, const ph_real *logits)
{
    const size_t width = batch->num_tasks;
    predictions->sums.is_classes = true;
    for (size_t at = 0; at < batch->num_samples * width; at += width)
        if (batch->label_mask == NULL || batch->label_mask[at] != 0)
            add_class(&predictions->sums, width, logits + at, batch->labels + at);
}

ph_status ph__predictions_measure(struct ph__predictions *predictions, struct ph_metrics *metrics_out)
{
    struct ph_metrics metrics = ph__metric_sums_metrics(&predictions->sums);
    if (predictions->bins != NULL) {
        PH_TRY(move_to_bins(predictions));
        ph__score_bins_auc(predictions->bins, &metrics.auc, &metrics.auc_error);
    } else {
        PH_TRY(ph__auc(predictions->count, predictions->scores, predictions->labels, &metrics.auc));
    }
    if (predictions->has_groups)
        PH_TRY(ph__grouped_auc(predictions->count, predictions->scores, predictions->labels,
            predictions->groups, &metrics.grouped_auc));
    *metrics_out = metrics;
    return PH_OK;
}

void ph__predictions_fini(struct ph__predictions *predictions)
{
    free(predictions->scores);
    free(predictions->labels);
    free(predictions->groups);
    ph__score_bins_destroy(predictions->bins);
    *predictions = (struct ph__predictions){0};
}
