/* Collectives that reduce. */
#include <stdlib.h>
#include <string.h>

#include "preload/sim/sim_collective.h"

enum allreduce { ALLREDUCE_RING, ALLREDUCE_DOUBLING, ALLREDUCE_RABENSEIFNER };

/* Reduces along a binomial tree; an operation that does not commute gets the ranks' numbers in their order,
 * at rank 0, which passes the result on. data: own numbers; replaced. At the root the result. */
static void reduce(const struct ph__sim_comm *comm, void *data, size_t count,
    const struct ph__sim_reduction *reduction, int root)
{
    const int n = comm->size, base = reduction->op->commutes ? root : 0;
    const int place = (comm->rank - base + n) % n;
    const size_t bytes = count * reduction->type->extent;
    char *own = data, *other = ph__sim_allocate(bytes), *buffer = other;
    for (int distance = 1; distance < n; distance *= 2) {
        if (place & distance) {
            ph__sim_send(comm, (place - distance + base) % n, own, bytes);
            break;
        }
        if (place + distance >= n)
            continue;
        ph__sim_receive(comm, (place + distance + base) % n, other, bytes);
        ph__sim_reduce(reduction, own, other, count);
        char *kept = own;
        own = other;
        other = kept;
    }
    if (own != data)
        memcpy(data, own, bytes);
    free(buffer);
    if (base != root && comm->rank == base)
        ph__sim_send(comm, root, data, bytes);
    if (base != root && comm->rank == root)
        ph__sim_receive(comm, base, data, bytes);
}

/* Plays an algorithm that takes a power of two of ranks. Surplus ranks give their numbers to a neighbour
 * first, and get the result from it. */
static void allreduce_by_halves(struct ph__play *played)
{
    const struct ph__sim_comm *comm = played->comm;
    const size_t count = played->schedule.bytes, bytes = count * played->item_bytes;
    int power = 1;
    while (2 * power <= comm->size)
        power *= 2;
    const int surplus = comm->size - power, rank = comm->rank;
    const bool is_folded = rank < 2 * surplus;
    if (is_folded && rank % 2 != 0) {
        ph__sim_send(comm, rank - 1, played->buffer, bytes);
        ph__sim_receive(comm, rank - 1, played->buffer, bytes);
        return;
    }
    if (is_folded) {
        char *other = ph__sim_allocate(bytes);
        ph__sim_receive(comm, rank + 1, other, bytes);
        ph__sim_reduce(played->reduction, other, played->buffer, count);
        free(other);
    }
    uint32_t *order = ph__sim_allocate((size_t)power * sizeof *order);
    for (int place = 0; place < power; place++)
        order[place] = (uint32_t)(place < surplus ? 2 * place : place + surplus);
    played->place = (uint32_t)(is_folded ? rank / 2 : rank - surplus);
    played->schedule.order = order;
    played->schedule.num_ranks = (uint32_t)power;
    if (power > 1)
        ph__sim_play(played);
    free(order);
    if (is_folded)
        ph__sim_send(comm, rank + 1, played->buffer, bytes);
}

static void allreduce(
    const struct ph__sim_comm *comm, void *data, size_t count, const struct ph__sim_reduction *reduction)
{
    const size_t bytes = count * reduction->type->extent;
    const int by_size = bytes < KIB * KIB ? ALLREDUCE_RABENSEIFNER : ALLREDUCE_RING;
    const int chosen = ph__sim_choose(PH_RUN_allreduce, bytes < 10 * KIB ? ALLREDUCE_DOUBLING : by_size);
    struct ph__play played = {.comm = comm,
        .schedule = {SCHEDULE_RING, (uint32_t)comm->size, count, NULL},
        .place = (uint32_t)comm->rank,
        .item_bytes = reduction->type->extent,
        .buffer = data,
        .reduction = reduction};
    if (comm->size == 1)
        return;
    if (!reduction->op->commutes) {
        reduce(comm, data, count, reduction, 0);
        ph__sim_bcast(comm, data, bytes, 0);
    } else if (chosen == ALLREDUCE_RING) {
        ph__sim_play(&played);
    } else {
        played.schedule.kind = chosen == ALLREDUCE_DOUBLING ? SCHEDULE_DOUBLING : SCHEDULE_RABENSEIFNER;
        allreduce_by_halves(&played);
    }
}

static struct ph__sim_reduction reduction_of(MPI_Datatype type, MPI_Op op)
{
    return (struct ph__sim_reduction){ph__sim_type(type), ph__sim_op(op)};
}

PH_MPI(Allreduce, const void *data, void *data_out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm handle)
{
    const struct ph__sim_reduction reduction = reduction_of(type, op);
    ph__process_enter();
    if (data != MPI_IN_PLACE)
        memcpy(data_out, data, (size_t)count * reduction.type->extent);
    allreduce(ph__sim_comm(handle), data_out, (size_t)count, &reduction);
    ph__process_leave();
    return MPI_SUCCESS;
}

PH_MPI(Reduce, const void *data, void *data_out, int count, MPI_Datatype type, MPI_Op op, int root,
    MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    const struct ph__sim_reduction reduction = reduction_of(type, op);
    const size_t bytes = (size_t)count * reduction.type->extent;
    ph__process_enter();
    void *numbers = ph__sim_copy(data == MPI_IN_PLACE ? data_out : data, bytes);
    reduce(comm, numbers, (size_t)count, &reduction, root);
    if (comm->rank == root)
        memcpy(data_out, numbers, bytes);
    free(numbers);
    ph__process_leave();
    return MPI_SUCCESS;
}

/* Passes parts along a ring, where each rank adds its own, until each has come to its rank. */
static void scatter_sums(const struct ph__sim_comm *comm, const struct ph__parts *parts,
    const struct ph__sim_reduction *reduction, size_t bytes)
{
    const int n = comm->size;
    char *scratch = ph__sim_allocate(bytes);
    for (int step = 0; step + 1 < n; step++) {
        const struct ph__part sent = ph__sim_part(parts, (comm->rank - step - 1 + n) % n);
        const struct ph__part sum = ph__sim_part(parts, (comm->rank - step - 2 + 2 * n) % n);
        ph__sim_exchange(comm, (comm->rank + 1) % n, sent, (comm->rank + n - 1) % n,
            (struct ph__part){scratch, sum.bytes});
        ph__sim_reduce(reduction, scratch, sum.data, sum.bytes / reduction->type->extent);
    }
    free(scratch);
}

static int reduce_scatter(const void *data, void *data_out, const int *counts, MPI_Datatype type, MPI_Op op,
    const struct ph__sim_comm *comm)
{
    const struct ph__sim_reduction reduction = reduction_of(type, op);
    int *places = ph__sim_allocate((size_t)comm->size * sizeof *places), total = 0;
    for (int i = 0; i < comm->size; i++) {
        places[i] = total;
        total += counts[i];
    }
    ph__process_enter();
    const size_t bytes = (size_t)total * reduction.type->extent;
    char *numbers = ph__sim_copy(data == MPI_IN_PLACE ? data_out : data, bytes);
    const struct ph__parts parts = {numbers, counts, places, 0, reduction.type->extent};
    if (reduction.op->commutes) {
        scatter_sums(comm, &parts, &reduction, bytes);
    } else { /* all get all, and keep theirs */
        reduce(comm, numbers, (size_t)total, &reduction, 0);
        ph__sim_bcast(comm, numbers, bytes, 0);
    }
    memcpy(data_out, ph__sim_part(&parts, comm->rank).data, ph__sim_part(&parts, comm->rank).bytes);
    free(numbers);
    free(places);
    ph__process_leave();
    return MPI_SUCCESS;
}

PH_MPI(Reduce_scatter, const void *data, void *data_out, const int counts[], MPI_Datatype type, MPI_Op op,
    MPI_Comm handle)
{
    return reduce_scatter(data, data_out, counts, type, op, ph__sim_comm(handle));
}

PH_MPI(Reduce_scatter_block, const void *data, void *data_out, int count, MPI_Datatype type, MPI_Op op,
    MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    int *counts = ph__sim_allocate((size_t)comm->size * sizeof *counts);
    for (int i = 0; i < comm->size; i++)
        counts[i] = count;
    const int status = reduce_scatter(data, data_out, counts, type, op, comm);
    free(counts);
    return status;
}

/* Passes the result of all former ranks from each rank to the next. */
static int scan(const void *data, void *data_out, size_t count, MPI_Datatype type, MPI_Op op,
    const struct ph__sim_comm *comm, bool counts_own)
{
    const struct ph__sim_reduction reduction = reduction_of(type, op);
    const size_t bytes = count * reduction.type->extent;
    ph__process_enter();
    char *own = ph__sim_copy(data == MPI_IN_PLACE ? data_out : data, bytes),
         *former = ph__sim_allocate(bytes);
    if (comm->rank > 0) {
        ph__sim_receive(comm, comm->rank - 1, former, bytes);
        ph__sim_reduce(&reduction, former, own, count);
    }
    if (comm->rank + 1 < comm->size)
        ph__sim_send(comm, comm->rank + 1, own, bytes);
    if (counts_own || comm->rank > 0)
        memcpy(data_out, counts_own ? own : former, bytes);
    free(own);
    free(former);
    ph__process_leave();
    return MPI_SUCCESS;
}

PH_MPI(Scan, const void *data, void *data_out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm handle)
{
    return scan(data, data_out, (size_t)count, type, op, ph__sim_comm(handle), true);
}

PH_MPI(Exscan, const void *data, void *data_out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm handle)
{
    return scan(data, data_out, (size_t)count, type, op, ph__sim_comm(handle), false);
}
