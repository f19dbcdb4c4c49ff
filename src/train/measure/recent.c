#include "train/measure/recent.h"

#include <stdlib.h>

#include "tensor/rank.h"

ph_status ph__recent_init(struct ph__recent *recent)
{
    *recent = (struct ph__recent){
        .scores = malloc(PH_RECENT_SAMPLES * sizeof(ph_real)),
        .labels = malloc(PH_RECENT_SAMPLES * sizeof(ph_real)),
    };
    if (recent->scores != NULL && recent->labels != NULL)
        return PH_OK;
    ph__recent_fini(recent);
    return ph_fail(PH_ERROR_MEMORY, "no memory for %d recent scores", PH_RECENT_SAMPLES);
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
