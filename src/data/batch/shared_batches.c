#include "data/batch/shared_batches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"

struct ph__shared_pass {
    struct ph__shared_batches *shared;
    struct ph__shared_pass *next;
    /* what ranks that join must have asked for, too */
    const char *path;
    struct ph_batches_options options; /* of one rank that has all rows; start is not read */
    uint64_t start_words[PH_POSITION_WORDS];
    const struct ph_encoder *encoder;
    struct ph__rank_rows rows;
    size_t num_joined, num_left; /* ranks */
    /* batches that not all ranks have given back: number first_kept and those behind it */
    struct ph__shared_batch *first, *last;
    uint64_t first_kept, num_made;
    ph_status status; /* of the reading, with its text */
    char error[1024];
};

struct ph__shared_batches {
    size_t world_size;
    struct ph__shared_pass *passes;
    struct ph__shared_batch *spare; /* batches to use again */
};

ph_status ph__shared_batches_create(size_t world_size, struct ph__shared_batches **shared_out)
{
    struct ph__shared_batches *shared = calloc(1, sizeof *shared);
    if (shared == NULL)
        return ph__out_of_memory("batches of %zu ranks", world_size);
    shared->world_size = world_size;
    *shared_out = shared;
    return PH_OK;
}

static void destroy_batches(struct ph__shared_batch *batch, size_t world_size)
{
    while (batch != NULL) {
        struct ph__shared_batch *next = batch->next;
        for (size_t i = 0; i < world_size; i++)
            ph__batch_buffer_fini(&batch->buffers[i]);
        free(batch->buffers);
        free(batch);
        batch = next;
    }
}

static void destroy_pass(struct ph__shared_pass *pass)
{
    destroy_batches(pass->first, pass->shared->world_size);
    ph__rank_rows_close(&pass->rows);
    free(pass);
}

void ph__shared_batches_destroy(struct ph__shared_batches *shared)
{
    if (shared == NULL)
        return;
    while (shared->passes != NULL) {
        struct ph__shared_pass *pass = shared->passes;
        shared->passes = pass->next;
        destroy_pass(pass);
    }
    destroy_batches(shared->spare, shared->world_size);
    free(shared);
}

uint64_t ph__shared_batches_row_bytes(const struct ph__shared_batches *shared)
{
    uint64_t bytes = 0;
    for (const struct ph__shared_pass *pass = shared->passes; pass != NULL; pass = pass->next)
        bytes += ph__rank_rows_bytes(&pass->rows);
    return bytes;
}

/* ---- passes ---- */

/* Returns true when a rank that asks for this pass now would get the batches of that one. */
static bool is_same(const struct ph__shared_pass *pass, const struct ph__shared_pass *other)
{
    const struct ph_batches_options *a = &pass->options, *b = &other->options;
    return strcmp(pass->path, other->path) == 0 && a->batch_size == b->batch_size && a->seed == b->seed &&
           a->epoch == b->epoch && a->needs_no_labels == b->needs_no_labels &&
           a->reading.is_shuffled == b->reading.is_shuffled &&
           a->reading.negative_rate == b->reading.negative_rate &&
           memcmp(pass->start_words, other->start_words, sizeof pass->start_words) == 0;
}

static ph_status open_pass(struct ph__shared_pass *wanted, const struct ph_position *start)
{
    struct ph__shared_pass *pass = malloc(sizeof *pass);
    if (pass == NULL)
        return ph__out_of_memory("%s: batches of all ranks", wanted->path);
    *pass = *wanted;
    pass->options.start = start;
    const ph_status status =
        ph__rank_rows_open(&pass->rows, pass->encoder, pass->path, NULL, NULL, &pass->options);
    if (status != PH_OK) {
        destroy_pass(pass);
        return status;
    }
    pass->next = pass->shared->passes;
    pass->shared->passes = pass;
    return PH_OK;
}

ph_status ph__shared_pass_open(struct ph__shared_batches *shared, const struct ph_encoder *encoder,
    const char *path, const struct ph_batches_options *options, struct ph__shared_pass **pass_out)
{
    struct ph__shared_pass wanted = {.shared = shared, .encoder = encoder, .path = path, .options = *options};
    wanted.options.rank = 0;
    wanted.options.world_size = 1;
    if (options->start != NULL)
        memcpy(wanted.start_words, options->start->words, sizeof wanted.start_words);
    struct ph__shared_pass *pass = shared->passes;
    while (pass != NULL && (pass->num_joined == shared->world_size || !is_same(pass, &wanted)))
        pass = pass->next;
    if (pass == NULL) {
        PH_TRY(open_pass(&wanted, options->start));
        pass = shared->passes;
    }
    pass->num_joined++;
    *pass_out = pass;
    return PH_OK;
}

static void give_back(struct ph__shared_pass *pass, uint64_t number)
{
    struct ph__shared_batch *batch = pass->first;
    for (uint64_t i = pass->first_kept; i < number; i++)
        batch = batch->next;
    batch->num_users--;
    while (pass->first != NULL && pass->first->num_users == 0) {
        batch = pass->first;
        pass->first = batch->next;
        pass->first_kept++;
        batch->next = pass->shared->spare;
        pass->shared->spare = batch;
    }
}

/* Gives back the rank's last batch, and those that it will not take. */
void ph__shared_pass_close(struct ph__shared_pass *pass, uint64_t number)
{
    if (pass == NULL)
        return;
    struct ph__shared_batches *shared = pass->shared;
    for (uint64_t i = number > 0 ? number - 1 : 0; i < pass->num_made; i++)
        give_back(pass, i);
    if (++pass->num_left < shared->world_size)
        return;
    struct ph__shared_pass **link = &shared->passes;
    while (*link != pass)
        link = &(*link)->next;
    *link = pass->next;
    destroy_pass(pass);
}

/* ---- batches ---- */

static ph_status new_batch(struct ph__shared_batches *shared, struct ph__shared_batch **batch_out)
{
    struct ph__shared_batch *batch = shared->spare;
    if (batch != NULL) {
        shared->spare = batch->next;
    } else {
        batch = calloc(1, sizeof *batch);
        if (batch != NULL)
            batch->buffers = calloc(shared->world_size, sizeof *batch->buffers);
        if (batch == NULL || batch->buffers == NULL) {
            free(batch);
            return ph__out_of_memory("batches of %zu ranks", shared->world_size);
        }
    }
    batch->next = NULL;
    *batch_out = batch;
    return PH_OK;
}

static ph_status fill(struct ph__shared_pass *pass, struct ph__shared_batch *batch)
{
    const size_t world_size = pass->shared->world_size;
    struct ph__rank_batch whole;
    PH_TRY(ph__rank_rows_next(&pass->rows, &whole));
    ph__rank_rows_tell(&pass->rows, &batch->position);
    batch->num_global = whole.num_global;
    batch->num_bad_rows = ph__rank_rows_num_bad(&pass->rows);
    batch->num_users = world_size - pass->num_left;
    for (size_t rank = 0; rank < world_size && whole.num_global > 0; rank++) {
        const size_t first = ph__range_start(whole.num_global, rank, world_size);
        const size_t end = ph__range_start(whole.num_global, rank + 1, world_size);
        PH_TRY(ph__batch_buffer_fill(
            &batch->buffers[rank], pass->encoder, whole.rows + first, end - first, whole.first + first));
        batch->buffers[rank].batch.num_global_samples = whole.num_global;
    }
    return PH_OK;
}

static ph_status make(struct ph__shared_pass *pass)
{
    struct ph__shared_batch *batch;
    PH_TRY(new_batch(pass->shared, &batch));
    const ph_status status = fill(pass, batch);
    if (status != PH_OK) {
        batch->next = pass->shared->spare;
        pass->shared->spare = batch;
        return status;
    }
    if (pass->first == NULL)
        pass->first = batch;
    else
        pass->last->next = batch;
    pass->last = batch;
    pass->num_made++;
    return PH_OK;
}

ph_status ph__shared_pass_take(
    struct ph__shared_pass *pass, uint64_t number, const struct ph__shared_batch **batch_out)
{
    if (number == pass->num_made && pass->status == PH_OK) {
        pass->status = make(pass);
        snprintf(pass->error, sizeof pass->error, "%s", pass->status != PH_OK ? ph_error_text() : "");
    }
    if (number == pass->num_made)
        return ph_fail(pass->status, "%s", pass->error);
    struct ph__shared_batch *batch = pass->first;
    for (uint64_t i = pass->first_kept; i < number; i++)
        batch = batch->next;
    if (number > 0)
        give_back(pass, number - 1);
    *batch_out = batch;
    return PH_OK;
}

const char *ph__shared_pass_first_bad(const struct ph__shared_pass *pass)
{
    return ph__rank_rows_first_bad(&pass->rows);
}
