#include "train/measure/evaluate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/thread/stop.h"
#include "serve/scorer.h"
#include "serve/session.h"
#include "train/measure/metrics.h"

/* ---- scores of all ranks ---- */

enum { LOGITS, LABELS, MASK, NUM_ARRAYS };

static size_t samples_of(const struct ph_batch *batch, const struct ph__group *world, size_t rank)
{
    return ph__range_start(batch->num_global_samples, rank + 1, world->size) -
           ph__range_start(batch->num_global_samples, rank, world->size);
}

static ph_status reserve(
    struct ph__gathered_scores *gathered, size_t own, size_t all, size_t num_samples, size_t world)
{
    PH_TRY(ph__array_reserve(
        (void **)&gathered->sent, &gathered->sent_capacity, own * NUM_ARRAYS + 1, sizeof *gathered->sent));
    PH_TRY(ph__array_reserve((void **)&gathered->received, &gathered->received_capacity, all * NUM_ARRAYS + 1,
        sizeof *gathered->received));
    PH_TRY(ph__array_reserve(
        (void **)&gathered->logits, &gathered->logits_capacity, all + 1, sizeof *gathered->logits));
    PH_TRY(ph__array_reserve(
        (void **)&gathered->labels, &gathered->labels_capacity, all + 1, sizeof *gathered->labels));
    PH_TRY(ph__array_reserve(
        (void **)&gathered->mask, &gathered->mask_capacity, all + 1, sizeof *gathered->mask));
    PH_TRY(ph__array_reserve(
        (void **)&gathered->bytes, &gathered->bytes_capacity, world, sizeof *gathered->bytes));
    return ph__array_reserve(
        (void **)&gathered->groups, &gathered->groups_capacity, num_samples + 1, sizeof *gathered->groups);
}

static ph_status gather(struct ph__gathered_scores *gathered, struct ph_comm *comm,
    const struct ph_batch *batch, const void *data, size_t sample_bytes, void *all)
{
    const struct ph__group *world = ph__comm_world(comm);
    for (size_t rank = 0; rank < world->size; rank++)
        gathered->bytes[rank] = samples_of(batch, world, rank) * sample_bytes;
    return (gathered->are_for_first ? ph__comm_collect_once : ph__comm_gather_varied_once)(
        comm, "scores of an evaluation", data, gathered->bytes, all);
}

/* Counts the samples that this rank receives. */
static size_t num_held(
    const struct ph__gathered_scores *gathered, const struct ph_batch *batch, const struct ph__group *world)
{
    return gathered->are_for_first && world->own > 0 ? 0 : batch->num_global_samples;
}

/* Fills this rank's three arrays, one behind the other. */
static void fill_sent(
    struct ph__gathered_scores *gathered, const struct ph_batch *batch, const ph_real *logits)
{
    const size_t count = batch->num_samples * batch->num_tasks;
    ph_real *mask = gathered->sent + MASK * count;
    if (count == 0)
        return;
    memcpy(gathered->sent + LOGITS * count, logits, count * sizeof *logits);
    memcpy(gathered->sent + LABELS * count, batch->labels, count * sizeof *logits);
    for (size_t i = 0; i < count; i++)
        mask[i] = batch->label_mask != NULL ? batch->label_mask[i] : 1;
}

static void take_apart(
    struct ph__gathered_scores *gathered, const struct ph_batch *batch, const struct ph__group *world)
{
    const ph_real *from = gathered->received;
    size_t at = 0;
    for (size_t rank = 0; rank < world->size; rank++) {
        const size_t count = samples_of(batch, world, rank) * batch->num_tasks;
        memcpy(gathered->logits + at, from + LOGITS * count, count * sizeof *from);
        memcpy(gathered->labels + at, from + LABELS * count, count * sizeof *from);
        memcpy(gathered->mask + at, from + MASK * count, count * sizeof *from);
        from += NUM_ARRAYS * count;
        at += count;
    }
}

/* Sends this rank's part of a batch and its logits (B,T) to the ranks that gather them. */
static ph_status gather_scores(struct ph__gathered_scores *gathered, struct ph_comm *comm,
    const struct ph_batch *batch, const ph_real *logits)
{
    const struct ph__group *world = ph__comm_world(comm);
    const size_t num_samples = num_held(gathered, batch, world), num_tasks = batch->num_tasks;
    PH_TRY(
        reserve(gathered, batch->num_samples * num_tasks, num_samples * num_tasks, num_samples, world->size));
    fill_sent(gathered, batch, logits);
    PH_TRY(gather(
        gathered, comm, batch, gathered->sent, NUM_ARRAYS * num_tasks * sizeof(ph_real), gathered->received));
    if (batch->groups != NULL)
        PH_TRY(gather(gathered, comm, batch, batch->groups, sizeof(int64_t), gathered->groups));
    if (num_samples > 0)
        take_apart(gathered, batch, world);
    gathered->batch = (struct ph_batch){.num_samples = num_samples,
        .num_tasks = num_tasks,
        .labels = gathered->labels,
        .label_mask = gathered->mask,
        .groups = batch->groups != NULL ? gathered->groups : NULL};
    return PH_OK;
}

ph_status ph__gathered_scores_replace(struct ph__gathered_scores *gathered, struct ph_comm *comm,
    const struct ph_batch **batch, const ph_real **logits)
{
    if (comm == NULL)
        return PH_OK;
    PH_TRY(gather_scores(gathered, comm, *batch, *logits));
    *batch = &gathered->batch;
    *logits = gathered->logits;
    return PH_OK;
}

void ph__gathered_scores_fini(struct ph__gathered_scores *gathered)
{
    void *const all[] = {gathered->logits, gathered->sent, gathered->received, gathered->groups,
        gathered->bytes, gathered->labels, gathered->mask};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    *gathered = (struct ph__gathered_scores){0};
}

/* ---- evaluations ---- */

static void clear_details(const struct ph__evaluation_details *details)
{
    if (details->calibration != NULL)
        *details->calibration = (struct ph__calibration){0};
    if (details->coverage != NULL)
        memset(details->id_counts, 0, details->coverage->num_features * sizeof *details->id_counts);
}

/* Adds a batch with logits (B,T). Counts ids only up to PH_COVERAGE_IDS, which is enough for a share. */
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

/* An evaluation in progress. */
struct evaluation {
    struct ph_scorer *scorer;
    struct ph_comm *comm; /* NULL: this process scores alone */
    const volatile int *stop_signal;
    const struct ph__evaluation_details *details; /* NULL: none */
    size_t num_tasks;
    bool is_classes;                     /* all tasks are measured together, as the first */
    struct ph__predictions *predictions; /* (T); with several ranks, the first rank's have all scores */
    struct ph__gathered_scores gathered;
    uint64_t num_ids;
    int signal; /* the signal that ended the evaluation; 0: none */
};

/* Takes the signal that this process or any rank has received: all ranks stop at the same batch, else they
 * would wait for each other. */
static ph_status look_for_signal(struct evaluation *evaluation)
{
    evaluation->signal = evaluation->stop_signal != NULL ? *evaluation->stop_signal : 0;
    return evaluation->comm != NULL
               ? ph__comm_largest(evaluation->comm, evaluation->signal, &evaluation->signal)
               : PH_OK;
}

static ph_status score(struct evaluation *evaluation, const struct ph_batch *own)
{
    const struct ph_batch *batch = own;
    const ph_real *logits;
    PH_TRY(ph_scorer_score(evaluation->scorer, own, &logits));
    PH_TRY(ph__gathered_scores_replace(&evaluation->gathered, evaluation->comm, &batch, &logits));
    if (evaluation->is_classes)
        ph__predictions_add_classes(&evaluation->predictions[0], batch, logits);
    for (size_t task = 0; task < evaluation->num_tasks && !evaluation->is_classes; task++)
        PH_TRY(ph__predictions_add(&evaluation->predictions[task], batch, logits, task));
    if (evaluation->details != NULL)
        add_details(evaluation->details, batch, own, logits, evaluation->num_ids);
    evaluation->num_ids += own->num_ids;
    return PH_OK;
}

/* Scores batches until the end of the file or a signal. */
static ph_status score_all(struct evaluation *evaluation, struct ph_batches *batches)
{
    for (;;) {
        const struct ph_batch *batch;
        PH_TRY(look_for_signal(evaluation));
        if (evaluation->signal != 0)
            return PH_OK;
        PH_TRY(ph_batches_next(batches, &batch));
        if (batch == NULL)
            return look_for_signal(evaluation);
        PH_TRY(score(evaluation, batch));
    }
}

void ph__bad_rows_update(struct ph__bad_rows *bad_rows, struct ph_batches *batches)
{
    bad_rows->count = ph_batches_num_bad_rows(batches);
    if (bad_rows->first[0] == '\0')
        snprintf(bad_rows->first, sizeof bad_rows->first, "%s", ph_batches_first_bad_row(batches));
}

/* Scores all rows. A signal interrupts the reader only in a process that scores alone: ranks read files,
 * which never make them wait. */
static ph_status score_rows(
    struct evaluation *evaluation, struct ph__rows_origin rows, struct ph__bad_rows *bad_rows)
{
    const struct ph_scorer_options *scorer_options = ph__scorer_options(evaluation->scorer);
    const size_t world_size = evaluation->comm != NULL ? ph_comm_world_size(evaluation->comm) : 1;
    struct ph_batches_options options = {.size = sizeof options,
        .batch_size = scorer_options->batch_size,
        .reading.num_prefetched = scorer_options->num_prefetched,
        .reading.max_bad_rows = scorer_options->max_bad_rows,
        .stop_signal = world_size == 1 ? evaluation->stop_signal : NULL,
        .rank = evaluation->comm != NULL ? ph_comm_rank(evaluation->comm) : 0,
        .world_size = world_size};
    struct ph_batches *batches;
    ph_status status = ph__batches_open(scorer_options->encoder, &rows, &options, &batches);
    if (status == PH_OK) {
        status = score_all(evaluation, batches);
        ph__gathered_scores_fini(&evaluation->gathered);
        ph__bad_rows_update(bad_rows, batches);
        ph_batches_close(batches);
    }
    if (status == PH_ERROR_INTERRUPTED && ph__is_stopped(options.stop_signal)) {
        evaluation->signal = *options.stop_signal;
        return PH_OK;
    }
    return status;
}

static ph_status measure(struct evaluation *evaluation, struct ph_metrics *metrics_out)
{
    const bool is_first = evaluation->comm == NULL || ph_comm_rank(evaluation->comm) == 0;
    for (size_t task = 0; is_first && task < evaluation->num_tasks; task++)
        PH_TRY(ph__predictions_measure(&evaluation->predictions[task], &metrics_out[task]));
    return evaluation->comm != NULL ? ph__comm_broadcast_once(evaluation->comm, "metrics of an evaluation", 0,
                                          metrics_out, evaluation->num_tasks * sizeof *metrics_out)
                                    : PH_OK;
}

ph_status ph__scorer_evaluate(struct ph_scorer *scorer, struct ph__rows_origin rows,
    const volatile int *stop_signal, int *signal_out, struct ph_metrics *metrics_out,
    struct ph__bad_rows *bad_rows_out, const struct ph__evaluation_details *details)
{
    const struct ph_scorer_options *options = ph__scorer_options(scorer);
    struct ph__bad_rows bad_rows = {0};
    struct evaluation evaluation = {.scorer = scorer,
        .comm = options->comm,
        .stop_signal = stop_signal,
        .details = details,
        .gathered = {.are_for_first = true},
        .num_tasks = ph_encoder_num_tasks(options->encoder),
        .is_classes = ph_encoder_num_classes(options->encoder) > 0};
    evaluation.predictions = calloc(evaluation.num_tasks, sizeof *evaluation.predictions);
    if (evaluation.predictions == NULL)
        return ph__out_of_memory("%zu tasks", evaluation.num_tasks);
    if (details != NULL)
        clear_details(details);
    ph_status status = score_rows(&evaluation, rows, &bad_rows);
    if (status == PH_OK && evaluation.signal == 0)
        status = measure(&evaluation, metrics_out);
    for (size_t task = 0; task < evaluation.num_tasks; task++)
        ph__predictions_fini(&evaluation.predictions[task]);
    free(evaluation.predictions);
    *signal_out = evaluation.signal;
    if (bad_rows_out != NULL)
        *bad_rows_out = bad_rows;
    return status;
}

ph_status ph_scorer_evaluate(struct ph_scorer *scorer, const char *path, struct ph_metrics *metrics_out)
{
    int no_signal;
    struct ph__rows_origin rows = {.path = path};
    return ph__scorer_evaluate(scorer, rows, NULL, &no_signal, metrics_out, NULL, NULL);
}

ph_status ph_scorer_evaluate_dataset(
    struct ph_scorer *scorer, const struct ph_dataset *dataset, struct ph_metrics *metrics_out)
{
    int no_signal;
    struct ph__rows_origin rows = {.dataset = dataset};
    return ph__scorer_evaluate(scorer, rows, NULL, &no_signal, metrics_out, NULL, NULL);
}

/* ---- sessions ---- */

#define SESSION_BATCH_SIZE 4096

/* Measures with a scorer like those of the session's contexts, but for files. */
static ph_status evaluate_with(const struct ph_session *session, struct ph_backend *backend,
    struct ph__rows_origin rows, struct ph_metrics *metrics_out)
{
    const struct ph_reading *reading = &session->config.data.reading;
    struct ph_scorer_options options = *ph__scorer_options(session->contexts[0].scorers->scorer);
    struct ph_scorer *scorer;
    int no_signal;
    options.backend = backend;
    options.batch_size = SESSION_BATCH_SIZE;
    options.num_ids = 0;
    options.num_prefetched = reading->num_prefetched;
    options.max_bad_rows = reading->max_bad_rows;
    PH_TRY(ph_scorer_create(&options, &scorer));
    const ph_status status = ph__scorer_evaluate(scorer, rows, NULL, &no_signal, metrics_out, NULL, NULL);
    ph_scorer_destroy(scorer);
    return status;
}

static ph_status evaluate_session(
    const struct ph_session *session, struct ph__rows_origin rows, struct ph_metrics *metrics_out)
{
    const struct ph_backend_options options = {.size = sizeof options, .num_threads = session->num_contexts};
    struct ph_backend *backend;
    PH_TRY(ph_backend_create(&options, &backend));
    const ph_status status = evaluate_with(session, backend, rows, metrics_out);
    ph_backend_destroy(backend);
    return status;
}

ph_status ph_session_evaluate(struct ph_session *session, const char *path, struct ph_metrics *metrics_out)
{
    return evaluate_session(session, (struct ph__rows_origin){.path = path}, metrics_out);
}

ph_status ph_session_evaluate_dataset(
    struct ph_session *session, const struct ph_dataset *dataset, struct ph_metrics *metrics_out)
{
    return evaluate_session(session, (struct ph__rows_origin){.dataset = dataset}, metrics_out);
}
