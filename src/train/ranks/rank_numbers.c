/* Some numbers at a time, so that many of many ranks take little memory. */
#include "train/ranks/rank_numbers.h"

#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"

enum { BLOCK_NUMBERS = 1 << 16 };

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

/* all: (world, count) at least. */
static ph_status join_block(
    struct ph_comm *comm, size_t count, uint64_t *numbers, uint64_t *all, join_function *join)
{
    PH_TRY(ph__comm_gather_once(comm, "counts of all ranks", numbers, count * sizeof *numbers, all));
    memcpy(numbers, all, count * sizeof *numbers);
    for (size_t rank = 1; rank < ph_comm_world_size(comm); rank++)
        join(count, all + rank * count, numbers);
    return PH_OK;
}

static ph_status join_all(struct ph_comm *comm, size_t count, uint64_t *numbers, join_function *join)
{
    if (comm == NULL || count == 0)
        return PH_OK;
    const size_t world_size = ph_comm_world_size(comm);
    uint64_t *all = calloc(ph__min(count, BLOCK_NUMBERS) * world_size, sizeof *all);
    ph_status status = PH_OK;
    if (all == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for the counts of %zu ranks", world_size);
    for (size_t at = 0; at < count && status == PH_OK; at += BLOCK_NUMBERS)
        status = join_block(comm, ph__min(BLOCK_NUMBERS, count - at), numbers + at, all, join);
    free(all);
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
