#include "train/evaluate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stop.h"
#include "serve/scorer.h"
#include "train/gathered_scores.h"
#include "train/metrics.h"

static void clear_details(const struct ph__evaluation_details *details)
{
    if (details->calibration != NULL)
        *details->calibration = (struct ph__calibration){0};
    if (details->coverage != NULL)
        memset(details->id_counts, 0, details->coverage->num_features * sizeof *details->id_counts);
}

/* logits (B,T). Ids are counted as far as PH_COVERAGE_IDS of them, which is enough for a share. */
static void add_details(const struct ph__evaluation_details *details, const struct ph_batch *batch,
    const struct ph_batch *own, const ph_real *logits, uint64_t num_ids_before)
{
    for (size_t b = 0; details->calibration != NULL && b < batch->num_samples; b++) {
        size_t at = b * batch->num_tasks;
        if (batch->label_mask == NULL || batch->label_mask[at] != 0)
            ph__calibration_add(details->calibration, logits[at], batch->labels[at]);
    }
    if (details->coverage != NULL && num_ids_before < PH_COVERAGE_IDS)
        ph__id_coverage_count(details->coverage, own, details->id_counts);
}

/* Where several ranks score, what they all have scored: a batch and logits that are all ranks'. */
static ph_status gather(struct ph__gathered_scores *gathered, struct ph_comm *comm,
    const struct ph_batch **batch, const ph_real **logits)
{
    if (comm == NULL)
        return PH_OK;
    PH_TRY(ph__gathered_scores_gather(gathered, comm, *batch, *logits));
    *batch = &gathered->batch;
    *logits = gathered->logits;
    return PH_OK;
}

/* Until the end of the file or a signal, of any rank; predictions (T). */
static ph_status score_all(struct ph_scorer *scorer, struct ph_batches *batches, size_t num_tasks,
    const volatile int *stop_signal, struct ph__predictions *predictions,
    const struct ph__evaluation_details *details, struct ph__gathered_scores *gathered)
{
    struct ph_comm *comm = ph__scorer_options(scorer)->comm;
    uint64_t num_ids = 0;
    while (!ph__is_stopped(stop_signal)) {
        const struct ph_batch *batch, *own;
        PH_TRY(ph_batches_next(batches, &own));
        if (own == NULL)
            return PH_OK;
        const ph_real *logits;
        PH_TRY(ph_scorer_score(scorer, own, &logits));
        batch = own;
        PH_TRY(gather(gathered, comm, &batch, &logits));
        for (size_t task = 0; task < num_tasks; task++)
            PH_TRY(ph__predictions_add(&predictions[task], batch, logits, task));
        if (details != NULL)
            add_details(details, batch, own, logits, num_ids);
        num_ids += own->num_ids;
    }
    return PH_OK;
}

void ph__bad_rows_update(struct ph_bad_rows *bad_rows, struct ph_batches *batches)
{
    bad_rows->count = ph_batches_num_bad_rows(batches);
    if (bad_rows->first[0] == '\0')
        snprintf(bad_rows->first, sizeof bad_rows->first, "%s", ph_batches_first_bad_row(batches));
}

static ph_status score_rows(struct ph_scorer *scorer, struct ph__job_rows rows, size_t num_tasks,
    const volatile int *stop_signal, struct ph__predictions *predictions, struct ph_bad_rows *bad_rows,
    const struct ph__evaluation_details *details)
{
    const struct ph_scorer_options *scorer_options = ph__scorer_options(scorer);
    struct ph_batches_options options = {.batch_size = scorer_options->batch_size,
        .num_prefetched = scorer_options->num_prefetched,
        .max_bad_rows = scorer_options->max_bad_rows,
        .stop_signal = stop_signal,
        .rank = scorer_options->comm != NULL ? ph_comm_rank(scorer_options->comm) : 0,
        .world_size = scorer_options->comm != NULL ? ph_comm_world_size(scorer_options->comm) : 1};
    struct ph__gathered_scores gathered = {0};
    struct ph_batches *batches;
    ph_status status = ph__job_rows_open(rows, scorer_options->encoder, &options, &batches);
    if (status == PH_OK) {
        status = score_all(scorer, batches, num_tasks, stop_signal, predictions, details, &gathered);
        ph__gathered_scores_fini(&gathered);
        ph__bad_rows_update(bad_rows, batches);
        ph_batches_close(batches);
    }
    return status == PH_ERROR_INTERRUPTED && ph__is_stopped(stop_signal) ? PH_OK : status;
}

ph_status ph__scorer_evaluate(struct ph_scorer *scorer, struct ph__job_rows rows,
    const volatile int *stop_signal, bool *is_stopped_out, struct ph_metrics *metrics_out,
    struct ph_bad_rows *bad_rows_out, const struct ph__evaluation_details *details)
{
    struct ph_bad_rows bad_rows = {0};
    size_t num_tasks = ph_encoder_num_tasks(ph__scorer_options(scorer)->encoder);
    struct ph__predictions *predictions = calloc(num_tasks, sizeof *predictions);
    if (predictions == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu tasks", num_tasks);
    if (details != NULL)
        clear_details(details);
    ph_status status = score_rows(scorer, rows, num_tasks, stop_signal, predictions, &bad_rows, details);
    bool has_stopped = ph__is_stopped(stop_signal);
    for (size_t task = 0; task < num_tasks; task++) {
        if (status == PH_OK && !has_stopped)
            status = ph__predictions_measure(&predictions[task], &metrics_out[task]);
        ph__predictions_fini(&predictions[task]);
    }
    free(predictions);
    *is_stopped_out = has_stopped;
    if (bad_rows_out != NULL)
        *bad_rows_out = bad_rows;
    return status;
}

ph_status ph_scorer_evaluate(struct ph_scorer *scorer, const char *path, struct ph_metrics *metrics_out)
{
    bool is_stopped_ever;
    struct ph__job_rows rows = {.path = path};
    return ph__scorer_evaluate(scorer, rows, NULL, &is_stopped_ever, metrics_out, NULL, NULL);
}

ph_status ph_scorer_evaluate_dataset(
    struct ph_scorer *scorer, const struct ph_dataset *dataset, struct ph_metrics *metrics_out)
{
    bool is_stopped_ever;
    struct ph__job_rows rows = {.dataset = dataset};
    return ph__scorer_evaluate(scorer, rows, NULL, &is_stopped_ever, metrics_out, NULL, NULL);
}
