/* The threads of a speculator. The worker computes, with the lowest priority: where it is kept from running,
 * it must hold nothing that the server's threads wait for. So what maps and frees much memory is done by the
 * keeper, which has the priority of the server: a thread that waits in the middle of it holds the lock of the
 * process's mappings.
 *
 *  keeper    off: nothing is open          switched on -> opens the teacher, starts the worker
 *            on: looks once a second       another teacher -> opens it, gives it to the worker, closes the
 * former switched off -> ends the worker, closes the teacher
 */
#include <stdlib.h>
#include <time.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "base/thread/parallel.h"
#include "serve/speculation/speculator_state.h"

#define TICK_NS 50000000ull
#define LOOK_NS 1000000000ull
#define PAUSE_NS 250000

static void wait_for(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t ns)
{
    const uint64_t until_ns = ph__clock_ns() + ns;
    const struct timespec until = {
        .tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000)};
    (void)pthread_cond_timedwait(condition, lock, &until);
}

static void log_failure(const struct ph__speculator *speculator, const char *event)
{
    PH_LOG(speculator->options.log, PH_LOG_ERROR, event, ph__log_text("model", speculator->options.model),
        ph__log_text("error", ph_error_text()));
}

static void obey(struct ph__speculator *speculator, struct ph__speculator_order *orders)
{
    while (orders != NULL) {
        struct ph__speculator_order *next = orders->next;
        (orders->is_item ? ph__speculation_forget_item : ph__speculation_forget_user)(
            speculator->core, orders->key);
        atomic_fetch_sub(&speculator->orders_waiting, 1);
        free(orders);
        orders = next;
    }
}

/* ---- the worker ---- */

struct tensor_request {
    struct ph__request base;
    struct ph__tensor_rows rows;
    const struct ph_session *session;
};

static ph_status encode_tensors(struct ph__request *base, struct ph__context *context, size_t row)
{
    const struct tensor_request *request = (const struct tensor_request *)base;
    return ph__tensor_rows_encode(&request->rows, request->session, context, row);
}

/* Waits while no thread of the server is free: one that waits for the processor beside them would get a share
 * of it, little in all, but several milliseconds at once. Returns whether the worker is still on and nobody
 * has given an order. */
static bool must_go_on(void *context)
{
    const struct ph__speculator *speculator = context;
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    bool is_wanted = true, is_busy = true;
    while (is_wanted && is_busy) {
        is_wanted = atomic_load(&speculator->is_on) && atomic_load(&speculator->orders_waiting) == 0;
        is_busy = speculator->options.is_busy(speculator->options.context);
        if (is_wanted && is_busy)
            nanosleep(&pause, NULL);
    }
    return is_wanted;
}

static ph_status learn(struct ph__speculator *speculator, const struct ph__note *note)
{
    struct ph_session *session = ph__speculation_teacher(speculator->core)->session;
    struct tensor_request request = {{note->count, encode_tensors}, {0}, session};
    size_t count = 0;
    if (session == NULL)
        return PH_OK;
    ph__arena_reset(&speculator->scratch);
    struct ph__tensor *tensors =
        ph__arena_alloc_array(&speculator->scratch, note->num_tensors, sizeof *tensors);
    if (tensors == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < note->num_tensors; i++) /* user and item need not be columns of the teacher */
        if (ph__tensor_rows_has(&session->inputs.index, note->tensors[i].name))
            tensors[count++] = note->tensors[i];
    PH_TRY(ph__tensor_rows_match(session, tensors, count, &speculator->scratch, &request.rows));
    if (request.rows.num_rows != note->count)
        return ph_fail(PH_ERROR_DATA, "the foundation model's inputs have %zu rows, the request %zu",
            request.rows.num_rows, note->count);
    const struct ph__asked asked = {
        note->count, note->users, note->items, note->scores, note->user_cells, &request.base};
    return ph__speculation_asked(speculator->core, note->now, &asked);
}

static void take_note(struct ph__speculator *speculator, struct ph__note *note)
{
    ph__feature_log_add(&speculator->features, note->request, note->count, note->features);
    if (learn(speculator, note) != PH_OK)
        PH_LOG(speculator->options.log, PH_LOG_WARNING, "speculation_refused",
            ph__log_text("model", speculator->options.model), ph__log_text("error", ph_error_text()));
    atomic_fetch_sub(&speculator->waiting, 1);
    atomic_fetch_sub(&speculator->waiting_bytes, note->bytes);
    ph__notes_put(&speculator->done, note);
}

/* Work that waits for the worker. Notes come first, since orders that came after them must reach what they
 * bring.
 */
struct taken {
    struct ph__note *notes;
    struct ph__speculator_order *orders;
    struct ph__pair_teacher teacher; /* closed: the one before stays */
    bool must_end;
};

/* Takes the notes, the oldest first. */
static struct ph__note *take_notes(struct ph__speculator *speculator)
{
    struct ph__note *notes = NULL, *last = atomic_exchange(&speculator->notes, NULL);
    while (last != NULL) {
        struct ph__note *before = last->next;
        last->next = notes;
        notes = last;
        last = before;
    }
    return notes;
}

/* Waits for a tick at most. */
static void take_all(struct ph__speculator *speculator, struct taken *taken)
{
    pthread_mutex_lock(&speculator->lock);
    if (atomic_load(&speculator->notes) == NULL && speculator->worker_orders == NULL &&
        !speculator->worker_must_end)
        wait_for(&speculator->has_order, &speculator->lock, TICK_NS);
    *taken = (struct taken){.orders = speculator->worker_orders,
        .teacher = speculator->fresh,
        .must_end = speculator->worker_must_end};
    speculator->worker_orders = NULL;
    speculator->fresh = (struct ph__pair_teacher){0};
    pthread_mutex_unlock(&speculator->lock);
    taken->notes =
        take_notes(speculator); /* behind the orders, so that those from before an order are here */
}

static void take_teacher(struct ph__speculator *speculator, struct ph__pair_teacher *teacher)
{
    if (ph__speculation_take_teacher(speculator->core, teacher))
        PH_LOG(speculator->options.log, PH_LOG_INFO, "teacher_loaded",
            ph__log_text("model", speculator->options.model),
            ph__log_text("teacher", speculator->options.settings->teacher));
    pthread_mutex_lock(&speculator->lock);
    speculator->former = *teacher;
    pthread_mutex_unlock(&speculator->lock);
}

static void flush_log(struct ph__speculator *speculator)
{
    if (ph__feature_log_flush(&speculator->features) != PH_OK)
        log_failure(speculator, "feature_log_failed");
}

static void tick(struct ph__speculator *speculator)
{
    const uint64_t now_ns = ph__clock_ns();
    if (now_ns >= speculator->next_flush_ns) {
        flush_log(speculator);
        speculator->next_flush_ns = now_ns + LOOK_NS;
    }
    if (now_ns < speculator->next_tick_ns || ph__speculation_teacher(speculator->core)->session == NULL)
        return;
    if (ph__speculation_work(speculator->core, ph__speculator_seconds(speculator), must_go_on, speculator) !=
        PH_OK)
        log_failure(speculator, "speculation_failed");
    speculator->next_tick_ns = ph__clock_ns() + TICK_NS;
}

static void *work(void *context)
{
    struct ph__speculator *speculator = context;
    struct taken taken = {.must_end = false};
    ph__thread_step_back();
    ph__speculation_own(speculator->core);
    while (!taken.must_end) {
        take_all(speculator, &taken);
        if (taken.teacher.session != NULL)
            take_teacher(speculator, &taken.teacher);
        while (taken.notes != NULL) {
            struct ph__note *next = taken.notes->next;
            (void)must_go_on(speculator);
            take_note(speculator, taken.notes);
            taken.notes = next;
        }
        obey(speculator, taken.orders);
        if (!taken.must_end)
            tick(speculator);
    }
    flush_log(speculator);
    return NULL;
}

/* ---- the keeper ---- */

/* Takes a teacher that nobody uses any more, to close it without the lock. */
static void close_teacher(struct ph__speculator *speculator, struct ph__pair_teacher *place)
{
    pthread_mutex_lock(&speculator->lock);
    struct ph__pair_teacher teacher = *place;
    *place = (struct ph__pair_teacher){0};
    pthread_mutex_unlock(&speculator->lock);
    ph__pair_teacher_close(&teacher);
}

/* Tells whether the worker has not taken the last teacher yet. */
static bool is_teacher_waiting(struct ph__speculator *speculator)
{
    pthread_mutex_lock(&speculator->lock);
    const bool is_waiting = speculator->fresh.session != NULL;
    pthread_mutex_unlock(&speculator->lock);
    return is_waiting;
}

static void look_at_teacher(struct ph__speculator *speculator)
{
    struct ph__pair_teacher teacher;
    close_teacher(speculator, &speculator->former);
    if (is_teacher_waiting(speculator))
        return;
    const ph_status status = ph__speculation_find_teacher(speculator->core, speculator->version, &teacher);
    if (status != PH_OK && !speculator->has_failed)
        log_failure(speculator, "teacher_refused");
    speculator->has_failed = status != PH_OK;
    if (status != PH_OK || teacher.session == NULL)
        return;
    speculator->version = teacher.version;
    pthread_mutex_lock(&speculator->lock);
    speculator->fresh = teacher;
    pthread_mutex_unlock(&speculator->lock);
}

static void start_worker(struct ph__speculator *speculator)
{
    speculator->worker_must_end = false;
    speculator->has_worker = ph__thread_start(&speculator->worker, work, speculator) == 0;
    if (speculator->has_worker)
        return;
    (void)ph__out_of_memory("the thread of a speculation");
    log_failure(speculator, "speculation_failed");
}

/* Ends the worker after its batch; then nobody else uses the core's teacher. */
static void end_worker(struct ph__speculator *speculator)
{
    struct ph__pair_teacher teacher = {0};
    pthread_mutex_lock(&speculator->lock);
    speculator->worker_must_end = true;
    pthread_mutex_unlock(&speculator->lock);
    pthread_cond_signal(&speculator->has_order);
    pthread_join(speculator->worker, NULL);
    speculator->has_worker = false;
    (void)ph__speculation_take_teacher(speculator->core, &teacher);
    ph__pair_teacher_close(&teacher);
    close_teacher(speculator, &speculator->fresh);
    close_teacher(speculator, &speculator->former);
    speculator->version = 0;
}

/* Gives orders to the worker, which alone writes; without one they are done here. */
static void pass_orders(struct ph__speculator *speculator, struct ph__speculator_order *orders)
{
    struct ph__speculator_order **end = &orders;
    if (!speculator->has_worker) {
        obey(speculator, orders);
        return;
    }
    while (*end != NULL)
        end = &(*end)->next;
    pthread_mutex_lock(&speculator->lock);
    *end = speculator->worker_orders;
    speculator->worker_orders = orders;
    pthread_mutex_unlock(&speculator->lock);
    pthread_cond_signal(&speculator->has_order);
}

/* Looks whether the worker shall run, and at the teacher once in a while. */
static void attend(struct ph__speculator *speculator, bool is_on)
{
    const uint64_t now_ns = ph__clock_ns();
    speculator->is_seen_on = is_on;
    if (!is_on && speculator->has_worker)
        end_worker(speculator);
    if (is_on && (!speculator->has_worker || now_ns >= speculator->next_look_ns)) {
        look_at_teacher(speculator);
        speculator->next_look_ns = now_ns + LOOK_NS;
    }
    if (is_on && !speculator->has_worker)
        start_worker(speculator);
}

/* Tells whether there is something to do before the next look, with the keeper's lock. */
static bool has_change(const struct ph__speculator *speculator)
{
    return speculator->must_end || atomic_load(&speculator->is_on) != speculator->is_seen_on ||
           speculator->orders != NULL;
}

void *ph__speculator_keep(void *context)
{
    struct ph__speculator *speculator = context;
    bool must_end = false;
    while (!must_end) {
        pthread_mutex_lock(&speculator->keeper_lock);
        if (!has_change(speculator))
            wait_for(&speculator->has_change, &speculator->keeper_lock, LOOK_NS);
        struct ph__speculator_order *orders = speculator->orders;
        speculator->orders = NULL;
        must_end = speculator->must_end;
        pthread_mutex_unlock(&speculator->keeper_lock);
        attend(speculator, !must_end && atomic_load(&speculator->is_on));
        if (orders != NULL)
            pass_orders(speculator, orders);
    }
    return NULL;
}
