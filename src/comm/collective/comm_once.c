/* Operations that start and wait in one. All messages lie in staging memory, which outlives a failure while
 * messages may still arrive or be read: the caller's memory is free again in any case. */
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "comm/collective/comm_inside.h"

static ph_status finish(struct ph_comm *comm, struct ph__operation *operation)
{
    uint64_t ticket;
    PH_TRY(ph__operation_launch(comm, operation, &ticket));
    return ph__comm_wait(comm, ticket);
}

/* ---- all ranks' bytes to all ranks ---- */

struct sizes {
    const uint64_t *bytes_of; /* by rank; NULL: all are `same` */
    uint64_t same;
    size_t world_size;
};

static uint64_t size_at(const struct sizes *sizes, size_t rank)
{
    return sizes->bytes_of != NULL ? sizes->bytes_of[rank] : sizes->same;
}

/* Returns the offset of a rank's bytes: the sum over all ranks before it. */
static size_t place_of(const struct sizes *sizes, size_t rank)
{
    size_t place = 0;
    if (sizes->bytes_of == NULL)
        return rank * (size_t)sizes->same;
    for (size_t before = 0; before < rank; before++)
        place += (size_t)size_at(sizes, before);
    return place;
}

static size_t count_requests(const struct ph_comm *comm, const struct sizes *sizes)
{
    const size_t own = comm->transport.rank;
    size_t num_requests = 0;
    for (size_t rank = 0; rank < sizes->world_size; rank++)
        num_requests += rank == own ? 0
                                    : ph__operation_num_cuts(comm, size_at(sizes, rank)) +
                                          ph__operation_num_cuts(comm, size_at(sizes, own));
    return num_requests;
}

static ph_status exchange_all(
    struct ph_comm *comm, struct ph__operation *operation, const struct sizes *sizes)
{
    const size_t own = comm->transport.rank, world_size = sizes->world_size;
    const unsigned char *sent = operation->staging + place_of(sizes, own);
    for (size_t k = 1; k < world_size; k++) {
        const size_t other = (own + k) % world_size;
        unsigned char *to = operation->staging + place_of(sizes, other);
        if (size_at(sizes, other) > 0)
            PH_TRY(ph__operation_receive(comm, operation, other, to, size_at(sizes, other)));
    }
    for (size_t k = 1; size_at(sizes, own) > 0 && k < world_size; k++)
        PH_TRY(ph__operation_send(comm, operation, (own + k) % world_size, sent, size_at(sizes, own)));
    return finish(comm, operation);
}

static ph_status gather(
    struct ph_comm *comm, const char *what, const void *own, const struct sizes *sizes, void *all_out)
{
    const struct ph__comm_call call = {PH_COMM_OWN_CHANNEL, what};
    const size_t rank = comm->transport.rank, total = place_of(sizes, sizes->world_size);
    struct ph__operation *operation;
    PH_TRY(ph__operation_take(comm, &call, count_requests(comm, sizes), total, &operation));
    if (size_at(sizes, rank) > 0)
        memcpy(operation->staging + place_of(sizes, rank), own, (size_t)size_at(sizes, rank));
    PH_TRY(exchange_all(comm, operation, sizes));
    if (total > 0)
        memcpy(all_out, operation->staging, total);
    return PH_OK;
}

ph_status ph__comm_gather_once(
    struct ph_comm *comm, const char *what, const void *own, size_t size, void *all_out)
{
    const struct sizes sizes = {.same = size, .world_size = comm->transport.world_size};
    return gather(comm, what, own, &sizes, all_out);
}

ph_status ph__comm_gather_varied_once(
    struct ph_comm *comm, const char *what, const void *own, const uint64_t *bytes_of, void *all_out)
{
    const struct sizes sizes = {.bytes_of = bytes_of, .world_size = comm->transport.world_size};
    return gather(comm, what, own, &sizes, all_out);
}

static ph_status receive_all(struct ph_comm *comm, struct ph__operation *operation, const struct sizes *sizes)
{
    for (size_t rank = 1; rank < sizes->world_size; rank++)
        if (size_at(sizes, rank) > 0)
            PH_TRY(ph__operation_receive(
                comm, operation, rank, operation->staging + place_of(sizes, rank), size_at(sizes, rank)));
    return finish(comm, operation);
}

static ph_status collect(
    struct ph_comm *comm, const struct ph__comm_call *call, const struct sizes *sizes, void *all_out)
{
    const size_t total = place_of(sizes, sizes->world_size), own = (size_t)size_at(sizes, 0);
    size_t num_requests = 0;
    struct ph__operation *operation;
    for (size_t rank = 1; rank < sizes->world_size; rank++)
        num_requests += ph__operation_num_cuts(comm, size_at(sizes, rank));
    PH_TRY(ph__operation_take(comm, call, num_requests, total, &operation));
    PH_TRY(receive_all(comm, operation, sizes));
    if (total > own)
        memcpy((unsigned char *)all_out + own, operation->staging + own, total - own);
    return PH_OK;
}

static ph_status give(
    struct ph_comm *comm, const struct ph__comm_call *call, const void *data, uint64_t bytes)
{
    struct ph__operation *operation;
    if (bytes == 0)
        return PH_OK;
    PH_TRY(ph__operation_take(comm, call, ph__operation_num_cuts(comm, bytes), bytes, &operation));
    memcpy(operation->staging, data, (size_t)bytes);
    PH_TRY(ph__operation_send(comm, operation, 0, operation->staging, bytes));
    return finish(comm, operation);
}

ph_status ph__comm_collect_once(
    struct ph_comm *comm, const char *what, const void *own, const uint64_t *bytes_of, void *all_out)
{
    const struct ph__comm_call call = {PH_COMM_OWN_CHANNEL, what};
    const struct sizes sizes = {.bytes_of = bytes_of, .world_size = comm->transport.world_size};
    if (comm->transport.rank > 0)
        return give(comm, &call, own, bytes_of[comm->transport.rank]);
    if (bytes_of[0] > 0)
        memmove(all_out, own, (size_t)bytes_of[0]);
    return collect(comm, &call, &sizes, all_out);
}

/* ---- one rank's bytes ---- */

ph_status ph__comm_broadcast_once(
    struct ph_comm *comm, const char *what, size_t root, void *data, size_t bytes)
{
    const struct ph__comm_call call = {PH_COMM_OWN_CHANNEL, what};
    const size_t own = comm->transport.rank, world_size = comm->transport.world_size;
    const size_t num_others = own == root ? world_size - 1 : 1;
    struct ph__operation *operation;
    PH_TRY(
        ph__operation_take(comm, &call, num_others * ph__operation_num_cuts(comm, bytes), bytes, &operation));
    if (own == root)
        memcpy(operation->staging, data, bytes);
    else
        PH_TRY(ph__operation_receive(comm, operation, root, operation->staging, bytes));
    for (size_t k = 1; own == root && k < world_size; k++)
        PH_TRY(ph__operation_send(comm, operation, (root + k) % world_size, operation->staging, bytes));
    PH_TRY(finish(comm, operation));
    if (own != root)
        memcpy(data, operation->staging, bytes);
    explicit_bzero(operation->staging, bytes); /* may be a secret */
    return PH_OK;
}

ph_status ph__comm_pass_once(
    struct ph_comm *comm, const char *what, size_t from, size_t to, void *data, size_t bytes)
{
    const struct ph__comm_call call = {PH_COMM_OWN_CHANNEL, what};
    const bool is_sender = comm->transport.rank == from;
    struct ph__operation *operation;
    PH_TRY(ph__operation_take(comm, &call, ph__operation_num_cuts(comm, bytes), bytes, &operation));
    if (is_sender && bytes > 0)
        memcpy(operation->staging, data, bytes);
    PH_TRY(is_sender ? ph__operation_send(comm, operation, to, operation->staging, bytes)
                     : ph__operation_receive(comm, operation, from, operation->staging, bytes));
    PH_TRY(finish(comm, operation));
    if (!is_sender && bytes > 0)
        memcpy(data, operation->staging, bytes);
    return PH_OK;
}

/* ---- counts of all ranks joined, block by block, which bounds the memory ---- */

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

/* Joins `count` numbers of all ranks. all: (world, count) at least. */
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
        return ph__out_of_memory("the counts of %zu ranks", world_size);
    for (size_t at = 0; at < count && status == PH_OK; at += BLOCK_NUMBERS)
        status = join_block(comm, ph__min(BLOCK_NUMBERS, count - at), numbers + at, all, join);
    free(all);
    return status;
}

ph_status ph__comm_sum_once(struct ph_comm *comm, size_t count, uint64_t *counts)
{
    return join_all(comm, count, counts, add);
}

ph_status ph__comm_unite_once(struct ph_comm *comm, size_t num_words, uint64_t *words)
{
    return join_all(comm, num_words, words, unite);
}
