#include "train/measure/progressive.h"

#include <math.h>
#include <stdlib.h>

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
    return ph_fail(PH_ERROR_MEMORY, "no memory for a window of %zu rows", window_rows);
}

void ph__progressive_fini(struct ph__progressive *progressive)
{
    free(progressive->scores);
    free(progressive->labels);
    *progressive = (struct ph__progressive){0};
}

bool ph__progressive_is_full(const struct ph__progressive *progressive)
{
    return progressive->num_rows == progressive->window_rows;
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
