#include "serve/speculation/speculator.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/sizes.h"
#include "base/text/number.h"
#include "base/thread/clock.h"
#include "base/thread/parallel.h"
#include "serve/speculation/feature_log.h"

#define MOST_WAITING 4096
#define MOST_WAITING_BYTES ((uint64_t)64 << 20)
#define TICK_NS 50000000ull
#define LOOK_NS 1000000000ull

struct order {
    struct order *next;
    uint64_t key;
    bool is_item;
};

struct ph__speculator {
    struct ph_speculation_settings settings; /* those of the core */
    struct ph__speculation *core;
    struct ph__name_index columns; /* that a request may have beside the student's; constant */
    const char *model;
    struct ph__arena arena;
    struct ph__log *log;
    atomic_size_t num_holders;
    uint64_t started_ns;
    _Atomic uint64_t waiting, waiting_bytes, dropped, orders_waiting;
    atomic_bool is_on;
    struct ph__note *spare; /* the driving thread's */
    pthread_mutex_t lock;   /* guards the lists below and must_end */
    pthread_cond_t has_order;
    struct ph__note *notes, **notes_end, *done;
    struct order *orders, **orders_end;
    bool must_end;
    pthread_t thread; /* the driving thread's */
    bool has_thread;
    /* the worker's */
    struct ph__feature_log features;
    uint64_t next_tick_ns, next_look_ns;
    bool has_failed; /* the last look at the teacher: it is logged once */
};

static double seconds_of(const struct ph__speculator *speculator)
{
    return (double)(ph__clock_ns() - speculator->started_ns) * 1e-9;
}

/* ---- the driving thread ---- */

ph_status ph__speculator_prepare(struct ph__speculator *speculator, const struct ph_session *student,
    const struct ph__tensor *tensors, size_t num_tensors, struct ph__arena *arena,
    struct ph__tensor_rows *rows_out, struct ph__speculated **speculated_out)
{
    const struct ph__speculated_source source = {speculator->core, &speculator->columns, student};
    struct ph__speculated *speculated = ph__arena_alloc(arena, sizeof *speculated);
    if (speculated == NULL)
        return PH_ERROR_MEMORY;
    *speculated = (struct ph__speculated){
        .tensors = tensors, .num_tensors = num_tensors, .now = seconds_of(speculator)};
    PH_TRY(ph__speculated_look_up(&source, arena, speculated, rows_out));
    *speculated_out = speculated;
    return PH_OK;
}

static void keep_spare(struct ph__speculator *speculator, struct ph__note *note)
{
    ph__arena_reset(&note->arena);
    note->next = speculator->spare;
    speculator->spare = note;
}

/* Hands a note over, and takes back those that are done. Returns whether the lock was free. */
static bool put_note(struct ph__speculator *speculator, struct ph__note *note)
{
    if (pthread_mutex_trylock(&speculator->lock) != 0)
        return false;
    struct ph__note *done = speculator->done;
    speculator->done = NULL;
    note->next = NULL;
    *speculator->notes_end = note;
    speculator->notes_end = &note->next;
    pthread_mutex_unlock(&speculator->lock);
    while (done != NULL) {
        struct ph__note *next = done->next;
        keep_spare(speculator, done);
        done = next;
    }
    return true;
}

void ph__speculator_offer(struct ph__speculator *speculator, const struct ph__speculated *speculated,
    struct ph__bytes request, const float *probabilities, size_t stride)
{
    struct ph__note *note = speculator->spare;
    bool is_put = false;
    if (!atomic_load(&speculator->is_on) || atomic_load(&speculator->waiting) >= MOST_WAITING ||
        atomic_load(&speculator->waiting_bytes) >= MOST_WAITING_BYTES) {
        atomic_fetch_add(&speculator->dropped, 1);
        return;
    }
    if (note != NULL)
        speculator->spare = note->next;
    else
        note = calloc(1, sizeof *note);
    if (note != NULL && ph__note_fill(note, speculator->core, &speculator->columns, speculated, request,
                            probabilities, stride)) {
        atomic_fetch_add(&speculator->waiting, 1);
        atomic_fetch_add(&speculator->waiting_bytes, note->bytes);
        is_put = put_note(speculator, note);
        if (!is_put) {
            atomic_fetch_sub(&speculator->waiting, 1);
            atomic_fetch_sub(&speculator->waiting_bytes, note->bytes);
        }
    }
    if (is_put)
        return;
    atomic_fetch_add(&speculator->dropped, 1);
    if (note != NULL)
        keep_spare(speculator, note);
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

static ph_status learn(struct ph__speculator *speculator, struct ph__note *note)
{
    struct ph_session *session = ph__speculation_teacher(speculator->core)->session;
    struct ph__tensor *tensors = ph__arena_alloc_array(&note->arena, note->num_tensors, sizeof *tensors);
    struct tensor_request request = {{note->count, encode_tensors}, {0}, session};
    size_t count = 0;
    if (session == NULL)
        return PH_OK;
    if (tensors == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < note->num_tensors; i++) /* user and item need not be columns of the teacher */
        if (ph__tensor_rows_has(&session->inputs.index, note->tensors[i].name))
            tensors[count++] = note->tensors[i];
    PH_TRY(ph__tensor_rows_match(session, tensors, count, &note->arena, &request.rows));
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
        PH_LOG(speculator->log, PH_LOG_WARNING, "speculation_refused",
            ph__log_text("model", speculator->model), ph__log_text("error", ph_error_text()));
    atomic_fetch_sub(&speculator->waiting, 1);
    atomic_fetch_sub(&speculator->waiting_bytes, note->bytes);
    pthread_mutex_lock(&speculator->lock);
    note->next = speculator->done;
    speculator->done = note;
    pthread_mutex_unlock(&speculator->lock);
}

static void obey(struct ph__speculator *speculator, struct order *orders)
{
    while (orders != NULL) {
        struct order *next = orders->next;
        (orders->is_item ? ph__speculation_forget_item : ph__speculation_forget_user)(
            speculator->core, orders->key);
        atomic_fetch_sub(&speculator->orders_waiting, 1);
        free(orders);
        orders = next;
    }
}

/* Takes what waits: notes first, since orders that came after them must reach what they bring. */
static void take_all(struct ph__speculator *speculator, struct ph__note **notes, struct order **orders)
{
    *notes = speculator->notes;
    *orders = speculator->orders;
    speculator->notes = NULL;
    speculator->notes_end = &speculator->notes;
    speculator->orders = NULL;
    speculator->orders_end = &speculator->orders;
}

static bool must_go_on(void *context)
{
    const struct ph__speculator *speculator = context;
    return atomic_load(&speculator->is_on) && atomic_load(&speculator->orders_waiting) == 0;
}

static void look_at_teacher(struct ph__speculator *speculator)
{
    bool has_changed;
    const ph_status status = ph__speculation_refresh(speculator->core, &has_changed);
    if (status != PH_OK && !speculator->has_failed)
        PH_LOG(speculator->log, PH_LOG_ERROR, "teacher_refused", ph__log_text("model", speculator->model),
            ph__log_text("error", ph_error_text()));
    if (has_changed)
        PH_LOG(speculator->log, PH_LOG_INFO, "teacher_loaded", ph__log_text("model", speculator->model),
            ph__log_text("teacher", speculator->settings.teacher));
    speculator->has_failed = status != PH_OK;
}

static void flush_log(struct ph__speculator *speculator)
{
    if (ph__feature_log_flush(&speculator->features) != PH_OK)
        PH_LOG(speculator->log, PH_LOG_ERROR, "feature_log_failed", ph__log_text("model", speculator->model),
            ph__log_text("error", ph_error_text()));
}

static void tick(struct ph__speculator *speculator)
{
    const uint64_t now_ns = ph__clock_ns();
    if (now_ns >= speculator->next_look_ns) {
        look_at_teacher(speculator);
        flush_log(speculator);
        speculator->next_look_ns = now_ns + LOOK_NS;
    }
    if (now_ns < speculator->next_tick_ns || ph__speculation_teacher(speculator->core)->session == NULL)
        return;
    if (ph__speculation_work(speculator->core, seconds_of(speculator), must_go_on, speculator) != PH_OK)
        PH_LOG(speculator->log, PH_LOG_ERROR, "speculation_failed", ph__log_text("model", speculator->model),
            ph__log_text("error", ph_error_text()));
    speculator->next_tick_ns = ph__clock_ns() + TICK_NS;
}

static void wait_for_tick(struct ph__speculator *speculator)
{
    const uint64_t until_ns = ph__clock_ns() + TICK_NS;
    const struct timespec until = {
        .tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000)};
    if (speculator->notes == NULL && speculator->orders == NULL && !speculator->must_end)
        (void)pthread_cond_timedwait(&speculator->has_order, &speculator->lock, &until);
}

static void *run(void *context)
{
    struct ph__speculator *speculator = context;
    struct ph__note *notes;
    struct order *orders;
    bool must_end = false;
    ph__thread_step_back();
    ph__speculation_own(speculator->core);
    while (!must_end) {
        pthread_mutex_lock(&speculator->lock);
        wait_for_tick(speculator);
        take_all(speculator, &notes, &orders);
        must_end = speculator->must_end;
        pthread_mutex_unlock(&speculator->lock);
        while (notes != NULL) {
            struct ph__note *next = notes->next;
            take_note(speculator, notes);
            notes = next;
        }
        obey(speculator, orders);
        if (!must_end)
            tick(speculator);
    }
    flush_log(speculator);
    ph__speculation_close_teacher(speculator->core);
    return NULL;
}

/* ---- orders ---- */

/* Tells the worker to end; it does after its batch. */
static void dismiss_worker(struct ph__speculator *speculator)
{
    if (!atomic_exchange(&speculator->is_on, false))
        return;
    pthread_mutex_lock(&speculator->lock);
    speculator->must_end = true;
    pthread_mutex_unlock(&speculator->lock);
    pthread_cond_signal(&speculator->has_order);
}

/* Waits for a worker that was told to end. */
static void await_worker(struct ph__speculator *speculator)
{
    if (speculator->has_thread)
        pthread_join(speculator->thread, NULL);
    speculator->has_thread = false;
}

static ph_status start_worker(struct ph__speculator *speculator)
{
    await_worker(speculator);
    speculator->must_end = false;
    speculator->next_look_ns = 0;
    atomic_store(&speculator->is_on, true);
    if (ph__thread_start(&speculator->thread, run, speculator) != 0) {
        atomic_store(&speculator->is_on, false);
        return ph__out_of_memory("the thread of a speculation");
    }
    speculator->has_thread = true;
    return PH_OK;
}

ph_status ph__speculator_switch(struct ph__speculator *speculator, bool is_on)
{
    if (!is_on)
        dismiss_worker(speculator);
    return is_on && !atomic_load(&speculator->is_on) ? start_worker(speculator) : PH_OK;
}

ph_status ph__speculator_forget(
    struct ph__speculator *speculator, struct ph__bytes user_or_item, bool is_item)
{
    struct order *order = calloc(1, sizeof *order);
    if (order == NULL)
        return ph__out_of_memory("an order");
    order->key = ph__hash_bytes(user_or_item.bytes, user_or_item.size);
    order->is_item = is_item;
    atomic_fetch_add(&speculator->orders_waiting, 1);
    if (!atomic_load(&speculator->is_on)) {
        await_worker(speculator); /* then nobody else writes */
        obey(speculator, order);
        return PH_OK;
    }
    pthread_mutex_lock(&speculator->lock);
    *speculator->orders_end = order;
    speculator->orders_end = &order->next;
    pthread_mutex_unlock(&speculator->lock);
    pthread_cond_signal(&speculator->has_order);
    return PH_OK;
}

void ph__speculator_figures(struct ph__speculator *speculator, struct ph__speculator_figures *figures_out)
{
    struct ph__speculation_figures core;
    ph__speculation_figures(speculator->core, &core);
    *figures_out = (struct ph__speculator_figures){.stale = core.stale,
        .teacher_rows = core.teacher_rows,
        .teacher_ns = core.teacher_ns,
        .num_rows = core.num_rows,
        .written = core.written,
        .never_read = core.never_read,
        .reloads = core.reloads,
        .request_rows = core.foreign_rows,
        .waiting = atomic_load(&speculator->waiting),
        .dropped = atomic_load(&speculator->dropped),
        .orders = atomic_load(&speculator->orders_waiting),
        .is_on = atomic_load(&speculator->is_on)};
    memcpy(figures_out->rungs, core.rungs, sizeof core.rungs);
}

/* ---- life ---- */

ph_status ph__speculator_check(
    const struct ph__speculator *speculator, const struct ph_session *student, const char *model)
{
    for (size_t k = 0; k < ph__speculation_num_columns(speculator->core); k++)
        if (ph_session_find_column(student, ph__speculation_column(speculator->core, k)) != SIZE_MAX)
            return PH_OK;
    return ph_fail(PH_ERROR_CONFIG,
        "speculation.teacher: model '%s' reads none of the columns fm_1 ... fm_age; train it on what phloem "
        "replay writes",
        model);
}

static ph_status add_column(struct ph__speculator *speculator, const char *name)
{
    if (ph__name_index_find(&speculator->columns, name) != PH_NO_NAME)
        return PH_OK;
    const char *own = ph__arena_strdup(&speculator->arena, name);
    return own != NULL ? ph__name_index_add(&speculator->columns, own) : PH_ERROR_MEMORY;
}

/* Lists the columns of the teacher, and those of user and item; the teacher may be closed before us. */
static ph_status list_columns(struct ph__speculator *speculator)
{
    const struct ph_session *session = ph__speculation_teacher(speculator->core)->session;
    for (size_t i = 0; i < ph_session_num_columns(session); i++)
        PH_TRY(add_column(speculator, ph_session_column_name(session, i)));
    PH_TRY(add_column(speculator, speculator->settings.user));
    return add_column(speculator, speculator->settings.item);
}

static ph_status open_all(
    struct ph__speculator *speculator, const struct ph_speculation_settings *settings, const char *model)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&speculator->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&speculator->has_order, &attributes);
    pthread_condattr_destroy(&attributes);
    speculator->notes_end = &speculator->notes;
    speculator->orders_end = &speculator->orders;
    speculator->model = ph__arena_strdup(&speculator->arena, model);
    if (speculator->model == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__speculation_create(settings, NULL, &speculator->core));
    speculator->settings = *ph__speculation_settings(speculator->core);
    PH_TRY(list_columns(speculator));
    PH_TRY(ph__feature_log_open(&speculator->features, speculator->settings.feature_log, speculator->core));
    return start_worker(speculator);
}

ph_status ph__speculator_create(const struct ph_speculation_settings *settings, const char *model,
    struct ph__log *log, struct ph__speculator **speculator_out)
{
    struct ph__speculator *speculator = calloc(1, sizeof *speculator);
    if (speculator == NULL)
        return ph__out_of_memory("a speculation");
    speculator->features.descriptor = -1;
    speculator->log = log;
    speculator->started_ns = ph__clock_ns();
    atomic_store(&speculator->num_holders, 1);
    const ph_status status = open_all(speculator, settings, model);
    if (status == PH_OK)
        *speculator_out = speculator;
    else
        ph__speculator_release(speculator);
    return status;
}

struct ph__speculator *ph__speculator_share(
    struct ph__speculator *speculator, const struct ph_speculation_settings *settings)
{
    const struct ph_speculation_settings *own = &speculator->settings;
    if (strcmp(own->teacher, settings->teacher) != 0 || strcmp(own->user, settings->user) != 0 ||
        strcmp(own->item, settings->item) != 0 || strcmp(own->feature_log, settings->feature_log) != 0 ||
        own->seconds != settings->seconds || own->rows_per_second != settings->rows_per_second ||
        own->cache_bytes != settings->cache_bytes || own->max_users != settings->max_users ||
        own->num_neighbours != settings->num_neighbours)
        return NULL;
    atomic_fetch_add(&speculator->num_holders, 1);
    return speculator;
}

static void free_notes(struct ph__note *notes)
{
    while (notes != NULL) {
        struct ph__note *next = notes->next;
        ph__arena_fini(&notes->arena);
        free(notes);
        notes = next;
    }
}

void ph__speculator_release(struct ph__speculator *speculator)
{
    if (speculator == NULL || atomic_fetch_sub(&speculator->num_holders, 1) > 1)
        return;
    dismiss_worker(speculator);
    await_worker(speculator);
    free_notes(speculator->notes);
    free_notes(speculator->done);
    free_notes(speculator->spare);
    ph__speculation_destroy(speculator->core);
    ph__name_index_fini(&speculator->columns);
    ph__feature_log_close(&speculator->features);
    pthread_cond_destroy(&speculator->has_order);
    pthread_mutex_destroy(&speculator->lock);
    ph__arena_fini(&speculator->arena);
    free(speculator);
}
