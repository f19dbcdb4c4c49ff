/* Workers: threads that take batches of any queue, in turn, and score them. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/thread/clock.h"
#include "base/thread/cpu.h"
#include "serve/queue/queue_state.h"

#define SMOOTHING (1.0 / 16) /* weight of the newest batch in a row's time */

/* ---- scoring ---- */

/* Encodes a part's rows behind those in the context. A bad row takes its part out of the batch. */
static void encode_part(const struct ph__queue *queue, struct ph__context *context, struct ph__part *part)
{
    struct ph__work *work = part->work;
    part->start = context->rows.num_rows;
    part->is_bad = atomic_load_explicit(&work->is_over, memory_order_relaxed);
    for (size_t i = 0; i < part->num_rows && !part->is_bad; i++) {
        const ph_status status =
            ph__tensor_rows_encode(&work->rows, queue->options.session, context, part->first + i);
        if (status == PH_OK)
            continue;
        pthread_mutex_lock(&queue->scheduler->lock);
        ph__work_fail(work, ph__oip_code_of(status), ph_error_text());
        pthread_mutex_unlock(&queue->scheduler->lock);
        part->is_bad = true;
    }
    if (part->is_bad)
        context->rows.num_rows = part->start;
}

/* Copies a part's rows of each wanted output. */
static ph_status take_outputs(
    const struct ph__queue *queue, const struct ph__context *context, const struct ph__part *part)
{
    const struct ph__wanted *wanted = &part->work->wanted;
    for (size_t i = 0; i < wanted->num_outputs; i++) {
        const size_t output = wanted->outputs[i];
        const size_t width = ph_session_output_width(queue->options.session, output);
        PH_TRY(ph__context_output(queue->options.session, context, output, part->start, part->num_rows,
            wanted->values[i] + part->first * width));
    }
    return PH_OK;
}

static void fail_parts(
    const struct ph__queue *queue, struct ph__part *parts, size_t num_parts, ph_status status)
{
    pthread_mutex_lock(&queue->scheduler->lock);
    for (size_t i = 0; i < num_parts; i++)
        ph__work_fail(parts[i].work, ph__oip_code_of(status), ph_error_text());
    pthread_mutex_unlock(&queue->scheduler->lock);
}

/* Scores a batch, and gives the times of its steps, of which the first begins at begun_ns. */
static struct ph__batch_figures score(struct ph__queue *queue, struct ph__context *context,
    struct ph__part *parts, size_t num_parts, uint64_t begun_ns)
{
    ph_status status = PH_OK;
    context->rows.num_rows = 0;
    for (size_t i = 0; i < num_parts; i++)
        encode_part(queue, context, &parts[i]);
    const uint64_t encoded_ns = ph__clock_ns();
    if (context->rows.num_rows > 0)
        status = ph__context_run(queue->options.session, context, parts[0].work->set);
    const uint64_t scored_ns = ph__clock_ns();
    for (size_t i = 0; i < num_parts && status == PH_OK; i++)
        if (!parts[i].is_bad)
            status = take_outputs(queue, context, &parts[i]);
    if (status != PH_OK)
        fail_parts(queue, parts, num_parts, status);
    return (struct ph__batch_figures){
        1, encoded_ns - begun_ns, scored_ns - encoded_ns, ph__clock_ns() - scored_ns};
}

/* ---- accounts ---- */

static void add_figures(struct ph__batch_figures *to, const struct ph__batch_figures *batch)
{
    to->count += batch->count;
    to->encode_ns += batch->encode_ns;
    to->score_ns += batch->score_ns;
    to->output_ns += batch->output_ns;
}

/* Books a batch, with the lock held. Requests whose last rows are done go to *over. */
static void book(struct ph__queue *queue, const struct ph__part *parts, size_t num_parts, uint64_t begun_ns,
    const struct ph__batch_figures *batch, struct ph__work **over)
{
    size_t num_rows = 0;
    for (size_t i = 0; i < num_parts; i++) {
        struct ph__work *work = parts[i].work;
        num_rows += parts[i].is_bad ? 0 : parts[i].num_rows;
        work->times.encoded = begun_ns + batch->encode_ns;
        work->times.scored = work->times.encoded + batch->score_ns;
        work->rows_left -= parts[i].num_rows;
        queue->figures.running_rows -= parts[i].num_rows;
        if (work->rows_left == 0) {
            work->next = *over;
            *over = work;
        }
    }
    if (num_rows == 0)
        return;
    struct ph__queue_figures *figures = &queue->figures;
    const double row_ns = (double)(batch->encode_ns + batch->score_ns + batch->output_ns) / (double)num_rows;
    figures->row_ns =
        figures->row_ns == 0 ? row_ns : figures->row_ns + SMOOTHING * (row_ns - figures->row_ns);
    figures->num_rows += num_rows;
    add_figures(&figures->batches, batch);
    add_figures(&queue->batches[num_rows], batch);
}

/* ---- the loop ---- */

/* Tells when a queue's batch is due: when it is full, or its first request has waited long enough or
 * expires. */
static uint64_t due_ns(const struct ph__queue *queue)
{
    if (queue->first == NULL)
        return UINT64_MAX;
    const struct ph__queue_options *options = &queue->options;
    if (options->max_delay_us == 0 || queue->figures.waiting_rows >= options->max_batch)
        return 0;
    const uint64_t delayed_ns = queue->first->times.queued + options->max_delay_us * 1000;
    return delayed_ns < queue->first->deadline_ns ? delayed_ns : queue->first->deadline_ns;
}

/* Returns the first queue of the ring whose batch is due, and makes the one behind it the next to be served;
 * NULL: none, until *until_ns_out. */
static struct ph__queue *next_queue(struct ph__scheduler *scheduler, uint64_t now_ns, uint64_t *until_ns_out)
{
    struct ph__queue *queue = scheduler->queues;
    *until_ns_out = UINT64_MAX;
    if (queue == NULL)
        return NULL;
    do {
        const uint64_t due = due_ns(queue);
        if (due <= now_ns) {
            scheduler->queues = queue->next;
            return queue;
        }
        *until_ns_out = due < *until_ns_out ? due : *until_ns_out;
        queue = queue->next;
    } while (queue != scheduler->queues);
    return NULL;
}

static void wait_until(struct ph__scheduler *scheduler, uint64_t until_ns)
{
    const struct timespec until = {
        .tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000)};
    scheduler->num_idle++;
    if (until_ns == UINT64_MAX)
        pthread_cond_wait(&scheduler->has_work, &scheduler->lock);
    else
        pthread_cond_timedwait(&scheduler->has_work, &scheduler->lock, &until);
    scheduler->num_idle--;
}

static void tell_done(struct ph__scheduler *scheduler, struct ph__work *over)
{
    if (over == NULL)
        return;
    while (over != NULL) {
        struct ph__work *work = over;
        over = work->next;
        ph__work_done(scheduler, work);
    }
    scheduler->options.batch_done(scheduler->options.context);
}

/* Makes room for a batch of as many parts as rows. Without memory the worker tries again. */
static bool reserve_parts(struct ph__worker *worker, const struct ph__queue *queue)
{
    return ph__array_reserve((void **)&worker->parts, &worker->parts_capacity, queue->options.max_batch,
               sizeof *worker->parts) == PH_OK;
}

/* Scores a batch of a queue. Called with the lock, and returns with it. */
static void serve(struct ph__worker *worker, struct ph__queue *queue)
{
    struct ph__scheduler *scheduler = worker->scheduler;
    struct ph__work *over = NULL;
    struct ph__batch_figures batch = {0};
    if (!reserve_parts(worker, queue))
        return;
    const size_t num_parts = ph__queue_take(queue, worker->parts, ph__clock_ns(), &over);
    pthread_mutex_unlock(&scheduler->lock);
    tell_done(scheduler, over);
    over = NULL;
    if (num_parts > 0) {
        struct ph__context *context = &queue->options.session->contexts[worker->index];
        const uint64_t begun_ns = ph__clock_ns();
        batch = score(queue, context, worker->parts, num_parts, begun_ns);
        pthread_mutex_lock(&scheduler->lock);
        book(queue, worker->parts, num_parts, begun_ns, &batch, &over);
        pthread_mutex_unlock(&scheduler->lock);
        tell_done(scheduler, over); /* without requests the queue may be destroyed from here on */
    }
    pthread_mutex_lock(&scheduler->lock);
}

void *ph__worker_run(void *context)
{
    struct ph__worker *worker = context;
    struct ph__scheduler *scheduler = worker->scheduler;
    fenv_t former;
    uint64_t until_ns;
    ph__cpu_float_enter(false, &former);
    pthread_mutex_lock(&scheduler->lock);
    while (!scheduler->must_end) {
        struct ph__queue *queue = next_queue(scheduler, ph__clock_ns(), &until_ns);
        if (queue != NULL)
            serve(worker, queue);
        else
            wait_until(scheduler, until_ns);
    }
    pthread_mutex_unlock(&scheduler->lock);
    ph__cpu_float_leave(&former);
    return NULL;
}
