#include "train/folder/label_check.h"

#include <stdlib.h>

#include "base/thread/stop.h"
#include "data/encode/encoder.h"
#include "data/source/dataset.h"
#include "train/folder/resume.h"

ph_status ph__label_check_init(struct ph__label_check *check, size_t num_tasks)
{
    *check = (struct ph__label_check){
        .is_on = true, .is_known = calloc(num_tasks + 1, sizeof *check->is_known), .num_unknown = num_tasks};
    return check->is_known != NULL ? PH_OK : ph_fail(PH_ERROR_MEMORY, "no memory for %zu labels", num_tasks);
}

void ph__label_check_fini(struct ph__label_check *check)
{
    free(check->is_known);
    *check = (struct ph__label_check){.is_on = false};
}

static bool is_known(const struct ph_batch *batch, size_t task)
{
    for (size_t b = 0; b < batch->num_samples; b++)
        if (batch->label_mask == NULL || batch->label_mask[b * batch->num_tasks + task] != 0)
            return true;
    return false;
}

void ph__label_check_add(struct ph__label_check *check, const struct ph_batch *batch)
{
    for (size_t task = 0; check->num_unknown > 0 && task < batch->num_tasks; task++)
        if (!check->is_known[task] && is_known(batch, task)) {
            check->is_known[task] = true;
            check->num_unknown--;
        }
}

/* Finds the column of a label. */
static const struct ph__column *label_column(const struct ph_encoder *encoder, size_t task)
{
    for (size_t i = 0; i < encoder->num_columns; i++)
        if (encoder->columns[i].kind == PH_FIELD_LABEL && encoder->columns[i].slot == task)
            return &encoder->columns[i];
    return NULL;
}

ph_status ph__label_check_end(
    const struct ph__label_check *check, const struct ph_encoder *encoder, struct ph__job_rows rows)
{
    size_t task = 0;
    if (check->num_unknown == 0)
        return PH_OK;
    while (check->is_known[task])
        task++;
    const struct ph__column *column = label_column(encoder, task);
    const char *place = rows.dataset != NULL ? PH_DATASET_NAME : rows.path;
    return ph_fail(PH_ERROR_DATA,
        "%s: label '%s' (column '%s') is blank in every row: there is nothing to learn; fill the column in, "
        "or name another one in data.fields (kind: label)",
        ph__file_is_pipe(place) ? ph__pipe_name(place) : place, column->name, column->from);
}

static ph_status read_labels(struct ph__label_check *check, const struct ph_train_job *job,
    struct ph_batches *batches, const struct ph_meanwhile *meanwhile)
{
    while (check->num_unknown > 0) {
        const struct ph_batch *batch;
        PH_TRY(ph__meanwhile(meanwhile));
        const ph_status status = ph_batches_next(batches, &batch);
        if (status == PH_ERROR_INTERRUPTED || ph__is_stopped(job->stop_signal))
            return ph__fail_stopped_early(ph__stop_status(job->stop_signal));
        PH_TRY(status);
        if (batch == NULL)
            return PH_OK;
        ph__label_check_add(check, batch);
    }
    return PH_OK;
}

ph_status ph__label_check_look(const struct ph_train_job *job, const struct ph_meanwhile *meanwhile)
{
    const struct ph_batches_options options = {.batch_size = (size_t)job->train->batch_size,
        .max_bad_rows = job->max_bad_rows,
        .stop_signal = job->stop_signal};
    const struct ph__job_rows rows = ph__job_train(job);
    struct ph__label_check check = {0};
    struct ph_batches *batches;
    if (ph__job_rows_flow(rows))
        return PH_OK;
    PH_TRY(ph__job_rows_open(rows, job->encoder, &options, &batches));
    ph_status status = ph__label_check_init(&check, ph_encoder_num_tasks(job->encoder));
    if (status == PH_OK)
        status = read_labels(&check, job, batches, meanwhile);
    if (status == PH_OK)
        status = ph__label_check_end(&check, job->encoder, rows);
    ph__label_check_fini(&check);
    ph_batches_close(batches);
    return status;
}
