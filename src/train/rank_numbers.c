/* Some numbers at a time, so that many of many ranks take little memory. */
#include "train/rank_numbers.h"

#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "train/rank_channels.h"

enum { BLOCK_NUMBERS = 1 << 16 };

/* What is borrowed while numbers travel: kept where that fails. */
struct gathering {
    struct ph_comm *comm;
    uint64_t *bytes; /* (world) */
    uint64_t *all;   /* (world, BLOCK_NUMBERS) at most */
};

typedef void join_function(size_t count, const uint64_t *from, uint64_t *into);

static void add(size_t count, const uint64_t *from, uint64_t *into)
{
    for (size_t i = 0; i < count; i++)
        into[i] += from[i];
}

static void unite(size_t count, const uint64_t *from, uint64_t *into)
{
    for (size_t i = 0; i < count; i++)
        into[i] |= from[i];
}

static ph_status join_block(
    const struct gathering *gathering, size_t count, uint64_t *numbers, join_function *join)
{
    static const struct ph_comm_call call = {PH_CHANNEL_COUNTS, "counts of all ranks"};
    const struct ph_group *world = ph__comm_world(gathering->comm);
    uint64_t ticket;
    for (size_t rank = 0; rank < world->size; rank++)
        gathering->bytes[rank] = count * sizeof *numbers;
    PH_TRY(ph__comm_all_gather_start(
        gathering->comm, &call, world, numbers, gathering->bytes, gathering->all, &ticket));
    PH_TRY(ph__comm_wait(gathering->comm, ticket));
    memcpy(numbers, gathering->all, count * sizeof *numbers);
    for (size_t rank = 1; rank < world->size; rank++)
        join(count, gathering->all + rank * count, numbers);
    return PH_OK;
}

static ph_status join_all(struct ph_comm *comm, size_t count, uint64_t *numbers, join_function *join)
{
    if (comm == NULL || count == 0)
        return PH_OK;
    const size_t world_size = ph_comm_world_size(comm);
    struct gathering gathering = {.comm = comm,
        .bytes = calloc(world_size, sizeof *gathering.bytes),
        .all = calloc(ph__min(count, BLOCK_NUMBERS) * world_size, sizeof *gathering.all)};
    ph_status status = PH_OK;
    if (gathering.bytes == NULL || gathering.all == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for the counts of %zu ranks", world_size);
    for (size_t at = 0; at < count && status == PH_OK; at += BLOCK_NUMBERS)
        status = join_block(&gathering, ph__min(BLOCK_NUMBERS, count - at), numbers + at, join);
    if (status == PH_OK) {
        free(gathering.bytes);
        free(gathering.all);
    }
    return status;
}

ph_status ph__rank_numbers_sum(struct ph_comm *comm, size_t count, uint64_t *counts)
{
    return join_all(comm, count, counts, add);
}

ph_status ph__rank_numbers_unite(struct ph_comm *comm, size_t num_words, uint64_t *words)
{
    return join_all(comm, num_words, words, unite);
}
