#include "train/job_check.h"

#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/thread/stop.h"
#include "data/encode/encoder.h"
#include "data/source/dataset.h"
#include "tensor/row_format.h"
#include "train/config/schedule.h"
#include "train/measure/progressive.h"

ph_status ph__fail_stopped_early(ph_status status)
{
    return ph_fail(status, "stopped by a signal before the first step: there is nothing to save");
}

/* ---- settings ---- */

/* Checks that an online job can be measured progressively: rows in order, seen once, and none left out. */
static ph_status check_online(const struct ph__train_job *job)
{
    const struct ph_train_settings *train = job->train;
    if (!train->progressive)
        return PH_OK;
    if (train->progressive_rows < 1 || train->progressive_rows > PH_PROGRESSIVE_MAX_ROWS)
        return ph_fail(PH_ERROR_CONFIG, "train.progressive_rows is %lld; it must be from 1 to %d",
            (long long)train->progressive_rows, PH_PROGRESSIVE_MAX_ROWS);
    if (job->reading.is_shuffled)
        return ph_fail(PH_ERROR_CONFIG,
            "train.progressive requires data.shuffle: false: it measures rows in their order");
    if (train->epochs != 1)
        return ph_fail(PH_ERROR_CONFIG, "train.progressive requires train.epochs: 1: it measures rows that "
                                        "the model sees for the first time");
    if (job->reading.negative_rate > 0 && job->reading.negative_rate < 1)
        return ph_fail(
            PH_ERROR_CONFIG, "train.progressive requires data.negative_rate: 1: it measures every row");
    return PH_OK;
}

/* Checks that several ranks can read the rows: only one process can read a pipe, and only once. */
static ph_status check_ranks_can_read(const struct ph__train_job *job)
{
    const struct {
        const char *key;
        struct ph__rows_origin rows;
    } splits[] = {{"train", ph__job_train(job)}, {"valid", ph__job_valid(job)}, {"test", ph__job_test(job)}};
    if (job->options.comm == NULL || ph_comm_world_size(job->options.comm) == 1)
        return PH_OK;
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
        if (ph__job_rows_exist(splits[i].rows) && ph__job_rows_flow(splits[i].rows))
            return ph_fail(PH_ERROR_CONFIG,
                "data.%s is %s, which can be read only once, but each of the %zu ranks reads it: give a file "
                "or prepared data",
                splits[i].key, ph__pipe_name(splits[i].rows.path), ph_comm_world_size(job->options.comm));
    return PH_OK;
}

/* Refuses what is defined for labels that are numbers alone. */
static ph_status check_classes(const struct ph__train_job *job)
{
    const char *const rule = "a label with classes";
    if (job->train->selection != PH_SELECT_LOGLOSS)
        return ph_fail(PH_ERROR_CONFIG, "train.selection must be logloss for %s, which has no AUC", rule);
    if (job->train->progressive)
        return ph_fail(PH_ERROR_CONFIG, "train.progressive must be false for %s", rule);
    if (job->train->distill != PH_DISTILL_NONE)
        return ph_fail(PH_ERROR_CONFIG, "train.distill must be none for %s", rule);
    return PH_OK;
}

/* Refuses what would cut a graph: its nodes are one batch, and read each other. */
static ph_status check_graph(const struct ph__train_job *job)
{
    const size_t num_ranks = job->options.comm != NULL ? ph_comm_world_size(job->options.comm) : 1;
    if (num_ranks > 1)
        return ph_fail(PH_ERROR_CONFIG,
            "data.format is graph, whose nodes are one batch that %zu ranks cannot share: train on one rank",
            num_ranks);
    if (job->train->accumulation_steps > 1)
        return ph_fail(PH_ERROR_CONFIG,
            "train.accumulation_steps must be 1 for format graph, whose nodes are one batch");
    return PH_OK;
}

ph_status ph__train_job_check(const struct ph__train_job *job)
{
    const struct ph_train_settings *train = job->train;
    if (!ph__job_rows_exist(ph__job_train(job)))
        return ph_fail(PH_ERROR_CONFIG, "data.train is missing: name the training data");
    if (train->epochs < 1 || train->batch_size < 1)
        return ph_fail(PH_ERROR_CONFIG,
            "train.epochs is %lld and train.batch_size is %lld; both must be at least 1",
            (long long)train->epochs, (long long)train->batch_size);
    if (train->accumulation_steps < 0 || train->accumulation_steps > train->batch_size)
        return ph_fail(PH_ERROR_CONFIG,
            "train.accumulation_steps is %lld; a batch of %lld samples (train.batch_size) can be cut into 1 "
            "to %lld micro-batches",
            (long long)train->accumulation_steps, (long long)train->batch_size, (long long)train->batch_size);
    if (ph__job_rows_flow(ph__job_train(job)) && train->epochs > 1)
        return ph_fail(PH_ERROR_CONFIG,
            "train.epochs is %lld, but %s can be read only once: set it to 1, or give a file",
            (long long)train->epochs, ph__pipe_name(job->paths.train));
    PH_TRY(check_ranks_can_read(job));
    if (!train->deterministic && job->run.team != PH_TEAM_OPENMP)
        return ph_fail(
            PH_ERROR_CONFIG, "train.deterministic=false requires team=openmp, but team is pthread");
    if (!ph__row_format_is_learnt(train->row_format))
        return ph_fail(PH_ERROR_CONFIG, "train.row_format is %s; it must be fp32, fp16, bf16 or bf16_split",
            ph_row_format_name(train->row_format));
    double rate = job->reading.negative_rate;
    size_t num_tasks = ph_encoder_num_tasks(job->encoder);
    if (!(rate >= 0 && rate <= 1))
        return ph_fail(PH_ERROR_CONFIG, "data.negative_rate is %g; it must be from 0 to 1", rate);
    if (rate > 0 && rate < 1 && num_tasks > 1)
        return ph_fail(PH_ERROR_CONFIG,
            "data.negative_rate is %g, but the data have %zu labels; it must be 1 unless there is a single "
            "label",
            rate, num_tasks);
    if (train->distill != PH_DISTILL_NONE && !ph_encoder_has_teacher(job->encoder))
        return ph_fail(PH_ERROR_CONFIG, "train.distill requires a teacher's probabilities, but no column of "
                                        "data.fields has kind: teacher");
    if (ph_encoder_num_classes(job->encoder) > 0)
        PH_TRY(check_classes(job));
    if (job->encoder->format == PH_DATA_GRAPH)
        PH_TRY(check_graph(job));
    PH_TRY(check_online(job));
    return ph__schedule_check(train);
}

/* ---- labels ---- */

ph_status ph__label_check_init(struct ph__label_check *check, size_t num_tasks)
{
    *check = (struct ph__label_check){
        .is_on = true, .is_known = calloc(num_tasks + 1, sizeof *check->is_known), .num_unknown = num_tasks};
    return check->is_known != NULL ? PH_OK : ph__out_of_memory("%zu labels", num_tasks);
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

static const struct ph__column *label_column(const struct ph_encoder *encoder, size_t task)
{
    for (size_t i = 0; i < encoder->num_columns; i++)
        if (encoder->columns[i].kind == PH_FIELD_LABEL && encoder->columns[i].slot == task)
            return &encoder->columns[i];
    return NULL;
}

ph_status ph__label_check_end(
    const struct ph__label_check *check, const struct ph_encoder *encoder, struct ph__rows_origin rows)
{
    size_t task = 0;
    if (check->num_unknown == 0)
        return PH_OK;
    while (check->is_known[task])
        task++;
    const struct ph__column *column = label_column(encoder, task);
    const char *place = rows.dataset != NULL ? rows.dataset->name : rows.path;
    return ph_fail(PH_ERROR_DATA,
        "%s: label '%s' (column '%s') is blank in every row: there is nothing to learn; fill the column in, "
        "or name another one in data.fields (kind: label)",
        ph__file_is_pipe(place) ? ph__pipe_name(place) : place, column->name, column->from);
}

static ph_status read_labels(struct ph__label_check *check, const struct ph__train_job *job,
    struct ph_batches *batches, const struct ph__meanwhile *meanwhile)
{
    while (check->num_unknown > 0) {
        const struct ph_batch *batch;
        PH_TRY(ph__meanwhile(meanwhile));
        const ph_status status = ph_batches_next(batches, &batch);
        if (status == PH_ERROR_INTERRUPTED || ph__is_stopped(job->options.stop_signal))
            return ph__fail_stopped_early(ph__stop_status(job->options.stop_signal));
        PH_TRY(status);
        if (batch == NULL)
            return PH_OK;
        ph__label_check_add(check, batch);
    }
    return PH_OK;
}

ph_status ph__label_check_look(const struct ph__train_job *job, const struct ph__meanwhile *meanwhile)
{
    const struct ph_batches_options options = {.size = sizeof options,
        .batch_size = (size_t)job->train->batch_size,
        .reading.max_bad_rows = job->reading.max_bad_rows,
        .stop_signal = job->options.stop_signal};
    const struct ph__rows_origin rows = ph__job_train(job);
    struct ph__label_check check = {0};
    struct ph_batches *batches;
    if (ph__job_rows_flow(rows))
        return PH_OK;
    PH_TRY(ph__batches_open(job->encoder, &rows, &options, &batches));
    ph_status status = ph__label_check_init(&check, ph_encoder_num_tasks(job->encoder));
    if (status == PH_OK)
        status = read_labels(&check, job, batches, meanwhile);
    if (status == PH_OK)
        status = ph__label_check_end(&check, job->encoder, rows);
    ph__label_check_fini(&check);
    ph_batches_close(batches);
    return status;
}
