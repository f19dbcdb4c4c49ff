/* Batches of one file or dataset for one pass, made ahead by a thread or on demand.
 *
 * Buffers form a ring of num_prefetched + 1. The maker fills them in order and waits while all are full or
 * lent. The consumer waits for the oldest full one, and gives it back with its next call. `num_made` and
 * `num_taken` count buffers since the start. With `must_stop` they are the only shared state: `lock` guards
 * them, and each change is signalled. The maker owns the buffers numbered num_made and above; the consumer
 * owns those below until it gives them back. The end and an error travel in a buffer too, so they arrive in
 * order. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/caller.h"
#include "base/memory/memory.h"
#include "data/batch/batch_buffer.h"
#include "data/batch/batches.h"
#include "data/batch/rank_rows.h"
#include "data/batch/shared_batches.h"
#include "data/encode/encoder.h"
#include "data/source/dataset.h"

#define MAX_PREFETCHED 1024

struct slot {
    struct ph__batch_buffer buffer;
    struct ph_position position; /* after its rows */
    struct ph__read_place read;  /* files read up to there, or to the end */
    uint64_t num_bad_rows;       /* up to there */
    char first_bad_row[512];     /* as far as this pass knows */
    bool is_end;
    ph_status status;
    char error[1024]; /* text of the maker's thread, when status is not PH_OK */
};

struct ph_batches {
    /* of the maker */
    const struct ph_encoder *encoder;
    size_t rank;
    struct ph__rank_rows rows;
    struct ph__shared_pass *shared;      /* in place of rows, or NULL */
    uint64_t num_shared;                 /* batches taken from it */
    struct ph__fingerprint *fingerprint; /* or NULL */
    /* shared */
    struct slot *slots;
    size_t num_slots;
    uint64_t num_made;  /* guarded by lock */
    uint64_t num_taken; /* buffers that the consumer gave back; guarded by lock */
    bool must_stop;     /* guarded by lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* of the consumer */
    bool has_thread;
    bool is_lent; /* buffer num_taken is with the caller */
    bool is_over; /* the end or an error was delivered: slot num_taken holds it */
    struct ph_position position;
    struct ph__read_place read;
    uint64_t num_bad_rows;   /* bad rows of the delivered batches */
    char first_bad_row[512]; /* written once */
    pthread_t thread;
};

/* ---- making ---- */

static ph_status fill_slot(struct ph_batches *batches, struct slot *slot)
{
    struct ph__rank_batch part;
    PH_TRY(ph__rank_rows_next(&batches->rows, &part));
    slot->is_end = part.num_global == 0;
    if (slot->is_end)
        return PH_OK;
    PH_TRY(ph__batch_buffer_fill(&slot->buffer, batches->encoder, part.rows, part.num_rows, part.first));
    slot->buffer.batch.num_global_samples = part.num_global;
    ph__rank_rows_tell(&batches->rows, &slot->position);
    return PH_OK;
}

static ph_status take_shared(struct ph_batches *batches, struct slot *slot)
{
    const struct ph__shared_batch *shared;
    PH_TRY(ph__shared_pass_take(batches->shared, batches->num_shared, &shared));
    batches->num_shared++;
    slot->is_end = shared->num_global == 0;
    slot->num_bad_rows = shared->num_bad_rows;
    if (slot->is_end)
        return PH_OK;
    slot->buffer.batch = shared->buffers[batches->rank].batch;
    slot->position = shared->position;
    return PH_OK;
}

static void note_bad_rows(struct ph_batches *batches, struct slot *slot)
{
    const bool is_shared = batches->shared != NULL;
    const char *first =
        is_shared ? ph__shared_pass_first_bad(batches->shared) : ph__rank_rows_first_bad(&batches->rows);
    if (!is_shared)
        slot->num_bad_rows = ph__rank_rows_num_bad(&batches->rows);
    snprintf(slot->first_bad_row, sizeof slot->first_bad_row, "%s", first);
}

/* Fills a slot, also with an error. Returns false when nothing can follow it. */
static bool make(struct ph_batches *batches, struct slot *slot)
{
    slot->status = batches->shared != NULL ? take_shared(batches, slot) : fill_slot(batches, slot);
    if (slot->status != PH_OK)
        snprintf(slot->error, sizeof slot->error, "%s", ph_error_text());
    if (batches->fingerprint != NULL)
        ph__fingerprint_tell(batches->fingerprint, &slot->read);
    note_bad_rows(batches, slot);
    return slot->status == PH_OK && !slot->is_end;
}

/* Waits for a free slot; NULL when the consumer has stopped. */
static struct slot *wait_free(struct ph_batches *batches)
{
    pthread_mutex_lock(&batches->lock);
    while (!batches->must_stop && batches->num_made - batches->num_taken == batches->num_slots)
        pthread_cond_wait(&batches->changed, &batches->lock);
    struct slot *slot = batches->must_stop ? NULL : &batches->slots[batches->num_made % batches->num_slots];
    pthread_mutex_unlock(&batches->lock);
    return slot;
}

static void *make_all(void *argument)
{
    struct ph_batches *batches = argument;
    for (bool may_follow = true; may_follow;) {
        struct slot *slot = wait_free(batches);
        if (slot == NULL)
            break;
        may_follow = make(batches, slot);
        pthread_mutex_lock(&batches->lock);
        batches->num_made++;
        pthread_cond_signal(&batches->changed);
        pthread_mutex_unlock(&batches->lock);
    }
    return NULL;
}

/* ---- opening ---- */

static ph_status start(struct ph_batches *batches)
{
    int error = pthread_create(&batches->thread, NULL, make_all, batches);
    if (error != 0)
        return ph_fail(PH_ERROR_MEMORY, "cannot start the prefetch thread: %s", strerror(error));
    batches->has_thread = true;
    return PH_OK;
}

/* Opens the rows, the rank's own or those that ranks share. */
static ph_status open_rows(struct ph_batches *batches, const struct ph__rows_origin *origin,
    const struct ph_batches_options *options)
{
    const char *name = origin->dataset != NULL ? origin->dataset->name : origin->path;
    if (origin->shared != NULL && origin->dataset == NULL && options->world_size > 1)
        return ph__shared_pass_open(
            origin->shared, batches->encoder, origin->path, options, &batches->shared);
    batches->fingerprint = origin->fingerprint;
    return ph__rank_rows_open(
        &batches->rows, batches->encoder, name, origin->dataset, origin->fingerprint, options);
}

static bool is_graph(const struct ph_encoder *encoder, const struct ph__rows_origin *origin)
{
    return encoder->format == PH_DATA_GRAPH && origin->dataset == NULL;
}

/* Makes the nodes of a graph one batch, in their order. */
static ph_status take_whole(const char *path, struct ph_batches_options *options)
{
    if (options->world_size > 1)
        return ph_fail(PH_ERROR_CONFIG,
            "%s: a graph is one batch, which %zu ranks cannot share: use one rank, with several threads",
            path, options->world_size);
    options->batch_size = SIZE_MAX;
    options->reading.is_shuffled = false;
    options->reading.max_bad_rows = 0;
    return PH_OK;
}

ph_status ph__batches_open(const struct ph_encoder *encoder, const struct ph__rows_origin *origin,
    const struct ph_batches_options *options, struct ph_batches **batches_out)
{
    if (options->batch_size == 0 || options->reading.num_prefetched > MAX_PREFETCHED)
        return ph_fail(PH_ERROR_USAGE,
            "batches: a batch size of %zu or a prefetch of %zu batches is out of range", options->batch_size,
            options->reading.num_prefetched);
    struct ph_batches *batches = calloc(1, sizeof *batches);
    struct slot *slots = calloc(options->reading.num_prefetched + 1, sizeof *slots);
    if (batches == NULL || slots == NULL) {
        free(batches);
        free(slots);
        return ph__out_of_memory("batches: %zu buffers", options->reading.num_prefetched + 1);
    }
    batches->encoder = encoder;
    batches->rank = options->rank;
    batches->slots = slots;
    batches->num_slots = options->reading.num_prefetched + 1;
    pthread_mutex_init(&batches->lock, NULL);
    pthread_cond_init(&batches->changed, NULL);
    struct ph_batches_options whole = *options;
    ph_status status = is_graph(encoder, origin) ? take_whole(origin->path, &whole) : PH_OK;
    if (status == PH_OK)
        status = open_rows(batches, origin, &whole);
    if (status == PH_OK && options->start != NULL)
        batches->position = *options->start;
    if (status == PH_OK && options->reading.num_prefetched > 0 && batches->shared == NULL)
        status = start(batches);
    if (status != PH_OK) {
        ph_batches_close(batches);
        return status;
    }
    *batches_out = batches;
    return PH_OK;
}

ph_status ph_batches_open(const struct ph_encoder *encoder, const char *path,
    const struct ph_batches_options *options, struct ph_batches **batches_out)
{
    struct ph_batches_options own;
    const struct ph__rows_origin origin = {.path = path};
    PH_TRY(ph__options_copy(&own, sizeof own, options, "ph_batches_options"));
    return ph__batches_open(encoder, &origin, &own, batches_out);
}

ph_status ph_dataset_batches_open(const struct ph_dataset *dataset, const struct ph_encoder *encoder,
    const struct ph_batches_options *options, struct ph_batches **batches_out)
{
    struct ph_batches_options own;
    const struct ph__rows_origin origin = {.dataset = dataset};
    PH_TRY(ph__options_copy(&own, sizeof own, options, "ph_batches_options"));
    return ph__batches_open(encoder, &origin, &own, batches_out);
}

void ph_batches_close(struct ph_batches *batches)
{
    if (batches == NULL)
        return;
    if (batches->has_thread) {
        pthread_mutex_lock(&batches->lock);
        batches->must_stop = true;
        pthread_cond_signal(&batches->changed);
        pthread_mutex_unlock(&batches->lock);
        pthread_join(batches->thread, NULL);
    }
    ph__shared_pass_close(batches->shared, batches->num_shared);
    ph__rank_rows_close(&batches->rows);
    for (size_t i = 0; i < batches->num_slots; i++)
        ph__batch_buffer_fini(&batches->slots[i].buffer);
    free(batches->slots);
    pthread_cond_destroy(&batches->changed);
    pthread_mutex_destroy(&batches->lock);
    free(batches);
}

/* ---- taking ---- */

/* Gives the lent buffer back and waits for the next full one. */
static struct slot *wait_made(struct ph_batches *batches)
{
    pthread_mutex_lock(&batches->lock);
    if (batches->is_lent) {
        batches->num_taken++;
        pthread_cond_signal(&batches->changed);
    }
    while (batches->num_made == batches->num_taken)
        pthread_cond_wait(&batches->changed, &batches->lock);
    struct slot *slot = &batches->slots[batches->num_taken % batches->num_slots];
    pthread_mutex_unlock(&batches->lock);
    return slot;
}

/* Counts bad rows up to the slot only: how far the maker reads ahead depends on threads and time. */
static void take_bad_rows(struct ph_batches *batches, const struct slot *slot)
{
    batches->num_bad_rows = slot->num_bad_rows;
    if (batches->first_bad_row[0] == '\0')
        memcpy(batches->first_bad_row, slot->first_bad_row, sizeof batches->first_bad_row);
}

ph_status ph_batches_next(struct ph_batches *batches, const struct ph_batch **batch_out)
{
    struct slot *slot = &batches->slots[0];
    if (batches->has_thread && batches->is_over)
        slot = &batches->slots[batches->num_taken % batches->num_slots];
    else if (batches->has_thread)
        slot = wait_made(batches);
    else if (!batches->is_over)
        make(batches, slot);
    batches->is_over = slot->status != PH_OK || slot->is_end;
    batches->is_lent = !batches->is_over;
    take_bad_rows(batches, slot);
    if (slot->status != PH_OK)
        return ph_fail(slot->status, "%s", slot->error);
    batches->read = slot->read;
    if (!slot->is_end)
        batches->position = slot->position;
    *batch_out = slot->is_end ? NULL : &slot->buffer.batch;
    return PH_OK;
}

void ph_batches_position(const struct ph_batches *batches, struct ph_position *position_out)
{
    *position_out = batches->position;
}

void ph__batches_read_place(const struct ph_batches *batches, struct ph__read_place *place_out)
{
    *place_out = batches->read;
}

uint64_t ph_batches_num_bad_rows(const struct ph_batches *batches)
{
    return batches->num_bad_rows;
}

const char *ph_batches_first_bad_row(const struct ph_batches *batches)
{
    return batches->first_bad_row;
}
