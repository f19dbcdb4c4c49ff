#include "serve/queue/queue_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/thread/clock.h"
#include "base/thread/parallel.h"

/* ---- schedulers ---- */

ph_status ph__scheduler_create(
    const struct ph__scheduler_options *options, struct ph__scheduler **scheduler_out)
{
    struct ph__scheduler *scheduler = calloc(1, sizeof *scheduler);
    if (scheduler == NULL)
        return ph__out_of_memory("a scheduler");
    scheduler->options = *options;
    scheduler->workers = calloc(options->num_workers, sizeof *scheduler->workers);
    pthread_mutex_init(&scheduler->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&scheduler->has_work, &attributes);
    pthread_condattr_destroy(&attributes);
    int error = scheduler->workers == NULL;
    for (size_t i = 0; i < options->num_workers && error == 0; i++) {
        struct ph__worker *worker = &scheduler->workers[i];
        *worker = (struct ph__worker){.scheduler = scheduler, .index = i};
        error = ph__thread_start(&worker->thread, ph__worker_run, worker);
        scheduler->num_started += error == 0;
    }
    if (error != 0) {
        ph__scheduler_destroy(scheduler);
        return ph__out_of_memory("%zu workers", options->num_workers);
    }
    *scheduler_out = scheduler;
    return PH_OK;
}

void ph__scheduler_destroy(struct ph__scheduler *scheduler)
{
    if (scheduler == NULL)
        return;
    pthread_mutex_lock(&scheduler->lock);
    scheduler->must_end = true;
    pthread_cond_broadcast(&scheduler->has_work);
    pthread_mutex_unlock(&scheduler->lock);
    for (size_t i = 0; i < scheduler->num_started; i++) {
        pthread_join(scheduler->workers[i].thread, NULL);
        free(scheduler->workers[i].parts);
    }
    pthread_cond_destroy(&scheduler->has_work);
    pthread_mutex_destroy(&scheduler->lock);
    free(scheduler->workers);
    free(scheduler);
}

void ph__scheduler_kick(struct ph__scheduler *scheduler)
{
    pthread_mutex_lock(&scheduler->lock);
    size_t wanted = ph__min(scheduler->num_put, atomic_load(&scheduler->num_idle));
    scheduler->num_put = 0;
    pthread_mutex_unlock(&scheduler->lock);
    for (; wanted > 0; wanted--)
        pthread_cond_signal(&scheduler->has_work);
}

bool ph__scheduler_is_busy(const struct ph__scheduler *scheduler)
{
    return atomic_load_explicit(&scheduler->num_idle, memory_order_relaxed) == 0;
}

bool ph__scheduler_is_saturated(struct ph__scheduler *scheduler)
{
    bool has_batch = false;
    pthread_mutex_lock(&scheduler->lock);
    const struct ph__queue *queue = scheduler->queues;
    if (queue != NULL && ph__scheduler_is_busy(scheduler))
        do {
            has_batch |= queue->figures.waiting_rows >= queue->options.max_batch;
            queue = queue->next;
        } while (queue != scheduler->queues);
    pthread_mutex_unlock(&scheduler->lock);
    return has_batch;
}

/* ---- queues ---- */

ph_status ph__queue_create(
    struct ph__scheduler *scheduler, const struct ph__queue_options *options, struct ph__queue **queue_out)
{
    struct ph__queue *queue = calloc(1, sizeof *queue);
    struct ph__batch_figures *batches = calloc(options->max_batch + 1, sizeof *batches);
    if (queue == NULL || batches == NULL) {
        free(queue);
        free(batches);
        return ph__out_of_memory("a queue");
    }
    *queue = (struct ph__queue){.scheduler = scheduler,
        .options = *options,
        .batches = batches,
        .is_of_graphs = options->session != NULL && ph__session_is_of_graphs(options->session)};
    pthread_mutex_lock(&scheduler->lock);
    if (scheduler->queues == NULL) {
        scheduler->queues = queue->next = queue->previous = queue;
    } else {
        queue->next = scheduler->queues;
        queue->previous = scheduler->queues->previous;
        queue->previous->next = queue->next->previous = queue;
    }
    pthread_mutex_unlock(&scheduler->lock);
    *queue_out = queue;
    return PH_OK;
}

void ph__queue_destroy(struct ph__queue *queue)
{
    if (queue == NULL)
        return;
    struct ph__scheduler *scheduler = queue->scheduler;
    pthread_mutex_lock(&scheduler->lock);
    queue->previous->next = queue->next;
    queue->next->previous = queue->previous;
    if (scheduler->queues == queue)
        scheduler->queues = queue->next != queue ? queue->next : NULL;
    pthread_mutex_unlock(&scheduler->lock);
    free(queue->batches);
    free(queue);
}

/* ---- the door ---- */

/* Returns the time until all that waits and runs is scored. */
static double pending_ns(const struct ph__scheduler *scheduler)
{
    const struct ph__queue *queue = scheduler->queues;
    double sum_ns = 0;
    do {
        sum_ns += (double)(queue->figures.waiting_rows + queue->figures.running_rows) * queue->figures.row_ns;
        queue = queue->next;
    } while (queue != scheduler->queues);
    return sum_ns / (double)scheduler->options.num_workers;
}

static bool is_full(const struct ph__queue *queue, size_t num_rows, uint64_t bytes)
{
    const struct ph__queue_figures *figures = &queue->figures;
    if (figures->num_waiting == 0)
        return false;
    return figures->waiting_rows + num_rows > queue->options.max_rows ||
           figures->waiting_bytes + bytes > queue->options.max_bytes;
}

/* Tells whether a request that begins in begin_ns from now cannot be done by its deadline. A row's time is an
 * estimate: unless the deadline has passed, a request that is alone is tried, so that the estimate does not
 * stay wrong for want of batches. */
static bool is_too_late(const struct ph__queue *queue, size_t num_rows, uint64_t deadline_ns, uint64_t now_ns,
    double begin_ns, bool is_alone)
{
    if (deadline_ns == UINT64_MAX)
        return false;
    if (now_ns >= deadline_ns)
        return true;
    const double own_ns = (double)num_rows * queue->figures.row_ns;
    return !is_alone && begin_ns + own_ns > (double)(deadline_ns - now_ns);
}

static enum ph__oip_code refuse_full(void)
{
    return ph__oip_fail(PH_OIP_UNAVAILABLE, "the queue is full: try again later");
}

static enum ph__oip_code refuse_large(size_t num_rows, size_t max_batch)
{
    return ph__oip_fail(PH_OIP_INVALID,
        "a graph of %zu nodes cannot be cut into batches of %zu rows: raise max_batch", num_rows, max_batch);
}

static enum ph__oip_code refuse_late(void)
{
    return ph__oip_fail(PH_OIP_DEADLINE, "the deadline cannot be met: too much waits already");
}

enum ph__oip_code ph__queue_admit(struct ph__queue *queue, uint64_t bytes, uint64_t deadline_ns)
{
    pthread_mutex_lock(&queue->scheduler->lock);
    const double begin_ns = pending_ns(queue->scheduler);
    const bool is_late = is_too_late(queue, 0, deadline_ns, ph__clock_ns(), begin_ns, begin_ns == 0);
    const bool must_wait = is_full(queue, 1, bytes);
    pthread_mutex_unlock(&queue->scheduler->lock);
    return must_wait ? refuse_full() : is_late ? refuse_late() : PH_OIP_OK;
}

/* Links a request behind those of its priority and of lower numbers. */
static void insert(struct ph__queue *queue, struct ph__work *work)
{
    struct ph__work **place = &queue->first;
    if (queue->last != NULL && queue->last->priority <= work->priority)
        place = &queue->last->next;
    while (*place != NULL && (*place)->priority <= work->priority)
        place = &(*place)->next;
    work->next = *place;
    *place = work;
    if (work->next == NULL)
        queue->last = work;
    queue->figures.num_waiting++;
    queue->figures.waiting_rows += work->rows_left;
    queue->figures.waiting_bytes += work->bytes;
}

enum ph__oip_code ph__queue_put(struct ph__queue *queue, struct ph__work *work)
{
    struct ph__scheduler *scheduler = queue->scheduler;
    const uint64_t now_ns = ph__clock_ns();
    if (queue->is_of_graphs && work->rows.num_rows > queue->options.max_batch)
        return refuse_large(work->rows.num_rows, queue->options.max_batch);
    work->queue = queue;
    work->set = ph__session_output_set(work->wanted.num_outputs, work->wanted.outputs);
    work->code = PH_OIP_OK;
    work->times = (struct ph__work_times){.queued = now_ns};
    work->next_row = 0;
    work->rows_left = work->rows.num_rows;
    work->next = NULL;
    atomic_store_explicit(&work->is_over, false, memory_order_relaxed);
    if (work->rows_left == 0) {
        ph__work_done(scheduler, work);
        return PH_OIP_OK;
    }
    pthread_mutex_lock(&scheduler->lock);
    const bool must_wait = is_full(queue, work->rows_left, work->bytes);
    const double begin_ns = pending_ns(scheduler);
    const bool is_late =
        !must_wait && is_too_late(queue, work->rows_left, work->deadline_ns, now_ns, begin_ns, begin_ns == 0);
    if (!must_wait && !is_late) {
        insert(queue, work);
        scheduler->num_put += 1 + (work->rows_left - 1) / queue->options.max_batch;
    }
    pthread_mutex_unlock(&scheduler->lock);
    if (must_wait)
        return refuse_full();
    return is_late ? refuse_late() : PH_OIP_OK;
}

/* ---- ends ---- */

void ph__work_done(struct ph__scheduler *scheduler, struct ph__work *work)
{
    work->times.done = ph__clock_ns();
    scheduler->options.done(scheduler->options.context, work);
}

void ph__work_fail(struct ph__work *work, enum ph__oip_code code, const char *error)
{
    if (work->code == PH_OIP_OK) {
        work->code = code;
        snprintf(work->error, sizeof work->error, "%s", error);
    }
    atomic_store(&work->is_over, true);
}

/* Takes a request out of its queue, with the rows that nobody has taken. */
static void take_out(struct ph__queue *queue, struct ph__work **place)
{
    struct ph__work *work = *place;
    const size_t num_rows = work->rows.num_rows - work->next_row;
    *place = work->next;
    if (work->next == NULL) {
        queue->last = NULL;
        for (struct ph__work *left = queue->first; left != NULL; left = left->next)
            queue->last = left;
    }
    work->next = NULL;
    work->rows_left -= num_rows;
    work->next_row += num_rows;
    queue->figures.num_waiting--;
    queue->figures.waiting_rows -= num_rows;
    queue->figures.waiting_bytes -= work->bytes;
}

void ph__work_cancel(struct ph__work *work)
{
    struct ph__queue *queue = work->queue;
    struct ph__scheduler *scheduler = queue->scheduler;
    bool is_done = false;
    pthread_mutex_lock(&scheduler->lock);
    if (work->rows_left == 0) { /* done, though the owner may not know yet */
        pthread_mutex_unlock(&scheduler->lock);
        return;
    }
    ph__work_fail(work, PH_OIP_CANCELLED, "the client has cancelled the request");
    for (struct ph__work **place = &queue->first; *place != NULL; place = &(*place)->next)
        if (*place == work) {
            take_out(queue, place);
            is_done = work->rows_left == 0;
            break;
        }
    pthread_mutex_unlock(&scheduler->lock);
    if (is_done)
        ph__work_done(scheduler, work);
}

/* ---- batches ---- */

/* Takes the first request out when it is over or too late. Returns false when it may be scored. */
static bool drop_first(struct ph__queue *queue, uint64_t now_ns, struct ph__work **over)
{
    struct ph__work *work = queue->first;
    if (work->next_row == 0 &&
        is_too_late(queue, work->rows_left, work->deadline_ns, now_ns, 0, work->next == NULL))
        ph__work_fail(work, PH_OIP_DEADLINE, "the deadline cannot be met: the request waited too long");
    if (!atomic_load_explicit(&work->is_over, memory_order_relaxed))
        return false;
    take_out(queue, &queue->first);
    if (work->rows_left == 0) {
        work->next = *over;
        *over = work;
    }
    return true;
}

static void take_rows(struct ph__queue *queue, struct ph__part *part, size_t num_rows, uint64_t now_ns)
{
    struct ph__work *work = queue->first;
    *part = (struct ph__part){.work = work, .first = work->next_row, .num_rows = num_rows};
    if (work->next_row == 0)
        work->times.begun = now_ns;
    work->next_row += num_rows;
    queue->figures.waiting_rows -= num_rows;
    queue->figures.running_rows += num_rows;
    if (work->next_row < work->rows.num_rows)
        return;
    queue->figures.num_waiting--;
    queue->figures.waiting_bytes -= work->bytes;
    queue->first = work->next;
    if (queue->first == NULL)
        queue->last = NULL;
    work->next = NULL;
}

size_t ph__queue_take(
    struct ph__queue *queue, struct ph__part *parts, uint64_t now_ns, struct ph__work **over)
{
    const size_t max_batch = queue->options.max_batch;
    size_t num_parts = 0, num_rows = 0;
    while (queue->first != NULL && num_rows < max_batch) {
        if (drop_first(queue, now_ns, over))
            continue;
        const struct ph__work *work = queue->first;
        const size_t left = work->rows.num_rows - work->next_row, room = max_batch - num_rows;
        if (num_parts > 0 && (queue->is_of_graphs || left > room || work->set != parts[0].work->set))
            break;
        const size_t taken = ph__min(left, room);
        take_rows(queue, &parts[num_parts++], taken, now_ns);
        num_rows += taken;
    }
    return num_parts;
}

/* ---- figures ---- */

void ph__queue_figures(struct ph__queue *queue, struct ph__queue_figures *figures_out)
{
    pthread_mutex_lock(&queue->scheduler->lock);
    *figures_out = queue->figures;
    pthread_mutex_unlock(&queue->scheduler->lock);
}

void ph__queue_batch_figures(struct ph__queue *queue, struct ph__batch_figures *figures_out)
{
    pthread_mutex_lock(&queue->scheduler->lock);
    memcpy(figures_out, queue->batches, (queue->options.max_batch + 1) * sizeof *figures_out);
    pthread_mutex_unlock(&queue->scheduler->lock);
}
