#include "train/measure/progressive.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "tensor/auc.h"

ph_status ph__progressive_init(struct ph__progressive *progressive, size_t window_rows)
{
    *progressive = (struct ph__progressive){
        .window_rows = window_rows,
        .scores = malloc(window_rows * sizeof(ph_real)),
        .labels = malloc(window_rows * sizeof(ph_real)),
    };
    if (progressive->scores != NULL && progressive->labels != NULL)
        return PH_OK;
    ph__progressive_fini(progressive);
    return ph__out_of_memory("a window of %zu rows", window_rows);
}

void ph__progressive_fini(struct ph__progressive *progressive)
{
    free(progressive->scores);
    free(progressive->labels);
    *progressive = (struct ph__progressive){0};
}

size_t ph__progressive_add(
    struct ph__progressive *progressive, const struct ph_batch *batch, const ph_real *logits, size_t first)
{
    size_t b = first;
    for (; b < batch->num_samples && !ph__progressive_is_full(progressive); b++) {
        size_t at = b * batch->num_tasks;
        progressive->num_rows++;
        if (batch->label_mask != NULL && batch->label_mask[at] == 0)
            continue;
        progressive->scores[progressive->count] = logits[at];
        progressive->labels[progressive->count] = batch->labels[at];
        progressive->count++;
    }
    return b;
}

ph_status ph__progressive_end_window(
    struct ph__progressive *progressive, struct ph__progressive_window *window_out)
{
    size_t count = progressive->count;
    struct ph__progressive_window window = {progressive->first_row, progressive->num_rows, {0}};
    PH_TRY(ph_metrics_compute(count, progressive->scores, progressive->labels, NULL, &window.metrics));
    for (size_t i = 0; i < count; i++)
        ph__metric_sums_add(&progressive->sums, progressive->scores[i], progressive->labels[i]);
    if (!isnan(window.metrics.auc)) {
        progressive->auc_sum += window.metrics.auc * (double)count;
        progressive->auc_samples += count;
    }
    progressive->first_row += progressive->num_rows;
    progressive->num_rows = progressive->count = 0;
    *window_out = window;
    return PH_OK;
}

struct ph_metrics ph__progressive_metrics(const struct ph__progressive *progressive)
{
    struct ph_metrics metrics = ph__metric_sums_metrics(&progressive->sums);
    if (progressive->auc_samples > 0)
        metrics.auc = progressive->auc_sum / (double)progressive->auc_samples;
    return metrics;
}

/* ---- the latest samples ---- */

ph_status ph__recent_init(struct ph__recent *recent)
{
    *recent = (struct ph__recent){
        .scores = malloc(PH_RECENT_SAMPLES * sizeof(ph_real)),
        .labels = malloc(PH_RECENT_SAMPLES * sizeof(ph_real)),
    };
    if (recent->scores != NULL && recent->labels != NULL)
        return PH_OK;
    ph__recent_fini(recent);
    return ph__out_of_memory("%d recent scores", PH_RECENT_SAMPLES);
}

void ph__recent_add(struct ph__recent *recent, const struct ph_batch *batch, const ph_real *logits)
{
    for (size_t b = 0; b < batch->num_samples; b++) {
        size_t at = b * batch->num_tasks;
        if (batch->label_mask != NULL && batch->label_mask[at] == 0)
            continue;
        recent->scores[recent->next] = logits[at];
        recent->labels[recent->next] = batch->labels[at];
        recent->next = (recent->next + 1) % PH_RECENT_SAMPLES;
        if (recent->count < PH_RECENT_SAMPLES)
            recent->count++;
    }
}

ph_status ph__recent_auc(const struct ph__recent *recent, double *auc_out)
{
    return ph__auc(recent->count, recent->scores, recent->labels, auc_out);
}

void ph__recent_fini(struct ph__recent *recent)
{
    free(recent->scores);
    free(recent->labels);
    *recent = (struct ph__recent){0};
}
