#include "train/metrics.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "serve/probability.h"
#include "tensor/rank.h"

#define MIN_PROBABILITY 1e-7

static double cross_entropy(double label, double probability)
{
    double p = fmin(fmax(probability, MIN_PROBABILITY), 1 - MIN_PROBABILITY);
    return -(label * log(p) + (1 - label) * log1p(-p));
}

ph_status ph_metrics_compute(size_t n, const ph_real *scores, const ph_real *labels, const int64_t *groups,
    struct ph_metrics *metrics_out)
{
    double auc = (double)NAN, grouped_auc = (double)NAN;
    PH_TRY(ph__auc(n, scores, labels, &auc));
    if (groups != NULL)
        PH_TRY(ph__grouped_auc(n, scores, labels, groups, &grouped_auc));
    double loss = 0, predicted = 0, positive = 0;
    for (size_t i = 0; i < n; i++) {
        double p = ph__sigmoid((double)scores[i]);
        loss += cross_entropy((double)labels[i], p);
        predicted += p;
        positive += (double)labels[i];
    }
    double base_rate = n > 0 ? positive / (double)n : (double)NAN;
    double logloss = n > 0 ? loss / (double)n : (double)NAN;
    bool has_entropy = base_rate > 0 && base_rate < 1;
    *metrics_out = (struct ph_metrics){
        .num_samples = n,
        .auc = auc,
        .grouped_auc = grouped_auc,
        .logloss = logloss,
        .ne = has_entropy ? logloss / cross_entropy(base_rate, base_rate) : (double)NAN,
        .calibration = positive > 0 ? predicted / positive : (double)NAN,
        .base_rate = base_rate,
    };
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

ph_status ph__predictions_add(
    struct ph__predictions *predictions, const struct ph_batch *batch, const ph_real *logits, size_t task)
{
    predictions->has_groups = batch->groups != NULL;
    PH_TRY(reserve(predictions, predictions->count + batch->num_samples));
    for (size_t b = 0; b < batch->num_samples; b++) {
        size_t at = b * batch->num_tasks + task;
        if (batch->label_mask != NULL && batch->label_mask[at] == 0)
            continue;
        size_t next = predictions->count++;
        predictions->scores[next] = logits[at];
        predictions->labels[next] = batch->labels[at];
        if (predictions->has_groups)
            predictions->groups[next] = batch->groups[b];
    }
    return PH_OK;
}

void ph__predictions_fini(struct ph__predictions *predictions)
{
    free(predictions->scores);
    free(predictions->labels);
    free(predictions->groups);
    *predictions = (struct ph__predictions){0};
}
