
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/sizes.h"
#include "base/text/number.h"
#include "base/thread/clock.h"
#include "base/thread/parallel.h"
#include "serve/speculation/speculator_state.h"

#define MOST_WAITING 4096
#define MOST_WAITING_BYTES ((uint64_t)64 << 20)

double ph__speculator_seconds(const struct ph__speculator *speculator)
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
        .tensors = tensors, .num_tensors = num_tensors, .now = ph__speculator_seconds(speculator)};
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

void ph__notes_put(_Atomic(struct ph__note *) *list, struct ph__note *note)
{
    note->next = atomic_load(list);
    while (!atomic_compare_exchange_weak(list, &note->next, note))
        ;
}

static void take_back(struct ph__speculator *speculator)
{
    struct ph__note *done = atomic_exchange(&speculator->done, NULL);
    while (done != NULL) {
        struct ph__note *next = done->next;
        keep_spare(speculator, done);
        done = next;
    }
}

void ph__speculator_offer(struct ph__speculator *speculator, const struct ph__speculated *speculated,
    struct ph__bytes request, const float *probabilities, size_t stride)
{
    if (!atomic_load(&speculator->is_on) || atomic_load(&speculator->waiting) >= MOST_WAITING ||
        atomic_load(&speculator->waiting_bytes) >= MOST_WAITING_BYTES) {
        atomic_fetch_add(&speculator->dropped, 1);
        return;
    }
    take_back(speculator);
    struct ph__note *note = speculator->spare;
    if (note != NULL)
        speculator->spare = note->next;
    else
        note = calloc(1, sizeof *note);
    if (note != NULL && ph__note_fill(note, speculator->core, &speculator->columns, speculated, request,
                            probabilities, stride)) {
        atomic_fetch_add(&speculator->waiting, 1);
        atomic_fetch_add(&speculator->waiting_bytes, note->bytes);
        ph__notes_put(&speculator->notes, note);
        return;
    }
    atomic_fetch_add(&speculator->dropped, 1);
    if (note != NULL)
        keep_spare(speculator, note);
}

/* ---- orders ---- */

void ph__speculator_switch(struct ph__speculator *speculator, bool is_on)
{
    pthread_mutex_lock(&speculator->keeper_lock);
    atomic_store(&speculator->is_on, is_on);
    pthread_mutex_unlock(&speculator->keeper_lock);
    pthread_cond_signal(&speculator->has_change);
}

ph_status ph__speculator_forget(
    struct ph__speculator *speculator, struct ph__bytes user_or_item, bool is_item)
{
    struct ph__speculator_order *order = calloc(1, sizeof *order);
    if (order == NULL)
        return ph__out_of_memory("an order");
    order->key = ph__hash_bytes(user_or_item.bytes, user_or_item.size);
    order->is_item = is_item;
    atomic_fetch_add(&speculator->orders_waiting, 1);
    pthread_mutex_lock(&speculator->keeper_lock);
    order->next = speculator->orders;
    speculator->orders = order;
    pthread_mutex_unlock(&speculator->keeper_lock);
    pthread_cond_signal(&speculator->has_change);
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
    for (size_t k = 0; k < ph__speculation_columns(speculator->core)->count; k++)
        if (ph_session_find_column(
                student, ph__name_index_text(ph__speculation_columns(speculator->core), k)) != SIZE_MAX)
            return PH_OK;
    return ph_fail(PH_ERROR_CONFIG,
        "speculation.teacher: model '%s' reads none of the columns fm_1 ... fm_age; train it on what phloem "
        "replay writes",
        model);
}

bool ph__speculator_fills(const struct ph__speculator *speculator, const char *column)
{
    return ph__name_index_find(ph__speculation_columns(speculator->core), column) != PH_NO_NAME;
}

const struct ph__name_index *ph__speculator_columns(const struct ph__speculator *speculator)
{
    return &speculator->columns;
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
    PH_TRY(add_column(speculator, speculator->options.settings->user));
    return add_column(speculator, speculator->options.settings->item);
}

static ph_status start_keeper(struct ph__speculator *speculator)
{
    speculator->version = ph__speculation_teacher(speculator->core)->version;
    atomic_store(&speculator->is_on, true);
    if (ph__thread_start(&speculator->keeper, ph__speculator_keep, speculator) != 0)
        return ph__out_of_memory("the thread of a speculation");
    speculator->has_keeper = true;
    return PH_OK;
}

static ph_status open_all(struct ph__speculator *speculator)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&speculator->lock, NULL);
    pthread_mutex_init(&speculator->keeper_lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&speculator->has_order, &attributes);
    pthread_cond_init(&speculator->has_change, &attributes);
    pthread_condattr_destroy(&attributes);
    speculator->options.model = ph__arena_strdup(&speculator->arena, speculator->options.model);
    if (speculator->options.model == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__speculation_create(speculator->options.settings, NULL, &speculator->core));
    speculator->options.settings = ph__speculation_settings(speculator->core);
    PH_TRY(list_columns(speculator));
    PH_TRY(ph__feature_log_open(
        &speculator->features, speculator->options.settings->feature_log, speculator->core));
    return start_keeper(speculator);
}

ph_status ph__speculator_create(
    const struct ph__speculator_options *options, struct ph__speculator **speculator_out)
{
    struct ph__speculator *speculator = calloc(1, sizeof *speculator);
    if (speculator == NULL)
        return ph__out_of_memory("a speculation");
    speculator->options = *options;
    speculator->features.descriptor = -1;
    speculator->started_ns = ph__clock_ns();
    atomic_store(&speculator->num_holders, 1);
    const ph_status status = open_all(speculator);
    if (status == PH_OK)
        *speculator_out = speculator;
    else
        ph__speculator_release(speculator);
    return status;
}

struct ph__speculator *ph__speculator_share(
    struct ph__speculator *speculator, const struct ph_speculation_settings *settings)
{
    const struct ph_speculation_settings *own = speculator->options.settings;
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

static void end_keeper(struct ph__speculator *speculator)
{
    if (!speculator->has_keeper)
        return;
    pthread_mutex_lock(&speculator->keeper_lock);
    atomic_store(&speculator->is_on, false); /* the worker stops within its tick */
    speculator->must_end = true;
    pthread_mutex_unlock(&speculator->keeper_lock);
    pthread_cond_signal(&speculator->has_change);
    pthread_join(speculator->keeper, NULL);
}

void ph__speculator_release(struct ph__speculator *speculator)
{
    if (speculator == NULL || atomic_fetch_sub(&speculator->num_holders, 1) > 1)
        return;
    end_keeper(speculator);
    ph__pair_teacher_close(&speculator->fresh);
    ph__pair_teacher_close(&speculator->former);
    free_notes(speculator->notes);
    free_notes(speculator->done);
    free_notes(speculator->spare);
    ph__speculation_destroy(speculator->core);
    ph__name_index_fini(&speculator->columns);
    ph__feature_log_close(&speculator->features);
    pthread_cond_destroy(&speculator->has_order);
    pthread_cond_destroy(&speculator->has_change);
    pthread_mutex_destroy(&speculator->lock);
    pthread_mutex_destroy(&speculator->keeper_lock);
    ph__arena_fini(&speculator->scratch);
    ph__arena_fini(&speculator->arena);
    free(speculator);
}
