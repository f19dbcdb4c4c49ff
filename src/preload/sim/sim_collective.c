/* Collectives as messages between two ranks, by named algorithms: most are played from the schedules of
 * preload/schedules.h, which here count the parts of a buffer. docs/SIMULATOR.md says which is chosen when.
 */
#include <stdlib.h>
#include <string.h>

#include "preload/schedules.h"
#include "preload/sim/sim_mpi.h"

#define KIB ((size_t)1024)
#define SEGMENT_BYTES (64 * KIB) /* of a pipeline, at most */

/* In the order of PH_RUN_COLLECTIVES. */
static const enum schedule_kind kinds[PH_RUN_NUM_COLLECTIVES][PH_RUN_MOST_ALGORITHMS] = {
    [PH_RUN_allreduce] = {SCHEDULE_RING, SCHEDULE_DOUBLING, SCHEDULE_RABENSEIFNER},
    [PH_RUN_alltoall] = {SCHEDULE_PAIRWISE, SCHEDULE_AT_ONCE, SCHEDULE_RING_ALLTOALL, SCHEDULE_BRUCK},
    [PH_RUN_bcast] = {SCHEDULE_TREE, SCHEDULE_PIPELINE},
    [PH_RUN_allgather] = {SCHEDULE_GATHER, SCHEDULE_GATHER_BRUCK}};

/* Returns the algorithm that the user has chosen for a collective, or else that of the rule. */
static enum schedule_kind choose(enum ph__run_collective collective, enum schedule_kind by_rule)
{
    const int8_t chosen = ph__process()->memory->algorithms[collective];
    return chosen != PH_RUN_BY_RULE ? kinds[collective][chosen] : by_rule;
}

/* ---- parts of buffers ---- */

enum { ALL = -1 };

/* The parts that a buffer has for the ranks, or for the segments of a pipeline. */
struct parts {
    void *data;
    int count; /* of items in each part, one behind the other, where `counts` is NULL */
    MPI_Datatype type;
    int only;                   /* the one part that there is, at the buffer's beginning; or ALL */
    const int *counts, *places; /* (parts) in items */
};
static const struct parts no_parts = {NULL, 0, MPI_BYTE, ALL, NULL, NULL};

/* Gives the `number` parts from `first` on, which follow each other. */
static struct ph__buffer part(const struct parts *parts, size_t first, size_t number)
{
    struct ph__buffer buffer = {parts->data, parts->count * (int)number, parts->type};
    if (parts->only != ALL)
        return parts->only == (int)first ? buffer : (struct ph__buffer){NULL, 0, MPI_BYTE};
    MPI_Aint lower, extent, place = (MPI_Aint)first * parts->count;
    if (parts->counts != NULL) {
        place = parts->places[first];
        for (size_t i = 0; i < number; i++)
            buffer.count += parts->counts[first + i];
    }
    PMPI_Type_get_extent(parts->type, &lower, &extent);
    buffer.data = (char *)parts->data + place * extent;
    return buffer;
}

/* Divides a buffer into parts that are about equal. */
static struct parts divide(struct ph__buffer buffer, int num_parts)
{
    int *counts = ph__sim_allocate(2 * (size_t)num_parts * sizeof *counts), *places = counts + num_parts;
    for (int i = 0; i < num_parts; i++) {
        places[i] = (int)((int64_t)buffer.count * i / num_parts);
        counts[i] = (int)((int64_t)buffer.count * (i + 1) / num_parts) - places[i];
    }
    return (struct parts){buffer.data, 0, buffer.type, ALL, counts, places};
}

/* Copies items to memory of their own. */
static struct ph__buffer duplicate(struct ph__buffer from)
{
    MPI_Aint lower, extent, step;
    PMPI_Type_get_extent(from.type, &lower, &step);
    PMPI_Type_get_true_extent(from.type, &lower, &extent);
    if (lower != 0)
        ph__process_fail(2, "a reduction of items that do not begin at their address is not simulated");
    const struct ph__buffer to = {
        ph__sim_allocate((size_t)(from.count * step + extent)), from.count, from.type};
    ph__buffer_copy(to, from);
    return to;
}

/* ---- messages ---- */

static int32_t begin(const struct ph__sim_comm *comm, bool is_send, int peer, struct ph__buffer buffer)
{
    return ph__request_begin((struct ph__request){
        .is_send = is_send, .peer = comm->ranks[peer], .context = comm->context + 1, .buffer = buffer});
}

/* Sends a buffer from one rank to another. */
static void pass(const struct ph__sim_comm *comm, int from, int to, struct ph__buffer buffer)
{
    if (from == to || (comm->rank != from && comm->rank != to))
        return;
    const int32_t number = begin(comm, comm->rank == from, comm->rank == from ? to : from, buffer);
    (void)ph__request_finish_all(&number, 1);
}

/* to = from op to. It counts as computation. */
static void reduce_local(struct ph__buffer from, struct ph__buffer to, MPI_Op op)
{
    ph__process_leave();
    PMPI_Reduce_local(from.data, to.data, to.count, to.type, op);
    ph__process_enter();
}

/* ---- schedules ---- */

/* A schedule that is played on parts of buffers. */
struct play {
    const struct ph__sim_comm *comm; /* its ranks are the places */
    enum schedule_kind kind;
    int num_parts;
    struct parts sent, received; /* only an AlltoAll that does not pass on sends from another buffer */
    MPI_Op op;
};

/* Gives the type of the runs of a message's parts, which have `bytes` bytes each. */
static MPI_Datatype type_of_runs(const struct schedule_message *message, int bytes)
{
    const size_t num_runs = (message->bytes + message->run_bytes - 1) / message->run_bytes;
    int *lengths = ph__sim_allocate(num_runs * sizeof *lengths);
    MPI_Aint *places = ph__sim_allocate(num_runs * sizeof *places);
    MPI_Datatype type;
    for (size_t i = 0; i < num_runs; i++) {
        const size_t rest = message->bytes - i * message->run_bytes;
        lengths[i] = bytes * (int)(rest < message->run_bytes ? rest : message->run_bytes);
        places[i] = (MPI_Aint)(i * message->stride) * bytes;
    }
    PMPI_Type_create_hindexed((int)num_runs, lengths, places, MPI_BYTE, &type);
    PMPI_Type_commit(&type);
    return type;
}

/* Starts a message; returns its request, or PH_RUN_NO_REQUEST for one that has nothing and need not be sent.
 */
static int32_t begin_message(const struct play *play, const struct schedule_message *message, void *scratch)
{
    const struct parts *parts = message->is_receive ? &play->received : &play->sent;
    struct ph__buffer buffer = part(parts, message->offset, message->bytes);
    MPI_Datatype runs = MPI_DATATYPE_NULL;
    if (play->kind == SCHEDULE_AT_ONCE && ph__buffer_bytes(buffer) == 0)
        return PH_RUN_NO_REQUEST;
    if (message->is_sum)
        buffer.data = scratch;
    if (message->bytes > message->run_bytes && buffer.count > 0) {
        runs = type_of_runs(message, parts->count);
        buffer = (struct ph__buffer){buffer.data, 1, runs};
    }
    const int32_t number = begin(play->comm, !message->is_receive, (int)message->peer, buffer);
    if (runs != MPI_DATATYPE_NULL)
        PMPI_Type_free(&runs);
    return number;
}

static void play_step(const struct play *play, const struct schedule_message *messages, size_t count,
    int32_t *numbers, void *scratch)
{
    size_t num_begun = 0;
    for (size_t i = 0; i < count; i++) {
        const int32_t number = begin_message(play, &messages[i], scratch);
        if (number != PH_RUN_NO_REQUEST)
            numbers[num_begun++] = number;
    }
    if (num_begun > 0)
        (void)ph__request_finish_all(numbers, num_begun);
    for (size_t i = 0; i < count; i++)
        if (messages[i].is_sum) {
            const struct ph__buffer sum = part(&play->received, messages[i].offset, messages[i].bytes);
            reduce_local((struct ph__buffer){scratch, sum.count, sum.type}, sum, play->op);
        }
}

static void play(const struct play *play)
{
    const struct schedule schedule = {play->kind, (uint32_t)play->comm->size, (size_t)play->num_parts, NULL};
    if (schedule.num_ranks < 2)
        return;
    const size_t most = schedule_most_messages(&schedule);
    struct schedule_message *messages = ph__sim_allocate(most * sizeof *messages);
    int32_t *numbers = ph__sim_allocate(most * sizeof *numbers);
    struct ph__buffer scratch = {NULL, 0, MPI_BYTE};
    if (play->op != MPI_OP_NULL)
        scratch = duplicate(part(&play->received, 0, schedule.bytes));
    for (size_t step = 0; step < schedule_num_steps(&schedule); step++) {
        const size_t count = schedule_step(&schedule, (uint32_t)play->comm->rank, step, messages);
        play_step(play, messages, count, numbers, scratch.data);
    }
}

/* Plays a schedule of one buffer. */
static void play_on(const struct ph__sim_comm *comm, enum schedule_kind kind, int num_parts,
    const struct parts *parts, MPI_Op op)
{
    play(&(struct play){comm, kind, num_parts, *parts, *parts, op});
}

/* Gives the communicator whose rank p is that of rank first + sign * p, round the ranks. */
static struct ph__sim_comm turned(const struct ph__sim_comm *comm, int first, int sign)
{
    const int n = comm->size;
    struct ph__sim_comm view = {comm->context, (sign * (comm->rank - first) + n) % n, n,
        ph__sim_allocate((size_t)n * sizeof *view.ranks)};
    for (int place = 0; place < n; place++)
        view.ranks[place] = comm->ranks[(first + sign * place + n) % n];
    return view;
}

/* ---- one to all ---- */

static void bcast(const struct ph__sim_comm *comm, struct ph__buffer buffer, int root)
{
    const size_t bytes = ph__buffer_bytes(buffer);
    const bool is_long = bytes >= SEGMENT_BYTES * (size_t)comm->size;
    const enum schedule_kind kind = choose(PH_RUN_bcast, is_long ? SCHEDULE_PIPELINE : SCHEDULE_TREE);
    const int num_parts = kind == SCHEDULE_PIPELINE ? (int)((bytes + SEGMENT_BYTES - 1) / SEGMENT_BYTES) : 1;
    const struct ph__sim_comm view = turned(comm, root, 1);
    const struct parts parts = divide(buffer, num_parts);
    if (num_parts > 0)
        play_on(&view, kind, num_parts, &parts, MPI_OP_NULL);
}

PH_MPI(Bcast, void *data, int count, MPI_Datatype type, int root, MPI_Comm handle)
{
    ph__process_enter();
    bcast(ph__sim_comm(handle), (struct ph__buffer){data, count, type}, root);
    return ph__sim_leave();
}

/* Disseminates, as Bruck's AlltoAll of nothing does. */
PH_MPI(Barrier, MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    ph__process_enter();
    play_on(comm, SCHEDULE_BRUCK, comm->size, &no_parts, MPI_OP_NULL);
    return ph__sim_leave();
}

/* ---- reductions ---- */

static bool commutes(MPI_Op op)
{
    int does;
    PMPI_Op_commutative(op, &does);
    return does != 0;
}

/* Returns the numbers of a reduction: `data`, or `out` in place. */
static struct ph__buffer given(const void *data, struct ph__buffer out)
{
    if (data != MPI_IN_PLACE)
        out.data = (void *)(uintptr_t)data;
    return out;
}

/* Reduces to a root what each rank has in the buffer, and writes over it. Where the order of the ranks
 * matters, the last one collects: what is received is always of lower ranks. */
static void reduce(const struct ph__sim_comm *comm, struct ph__buffer buffer, MPI_Op op, int root)
{
    const int first = commutes(op) ? root : comm->size - 1;
    const struct ph__sim_comm view = turned(comm, first, commutes(op) ? 1 : -1);
    const struct parts all = {buffer.data, buffer.count, buffer.type, ALL, NULL, NULL};
    play_on(&view, SCHEDULE_REDUCE, 1, &all, op);
    pass(comm, first, root, buffer);
}

/* Plays an algorithm that takes a power of two of ranks. Surplus ranks give their numbers to a neighbour
 * first, and get the result from it. */
static void allreduce_by_halves(
    const struct ph__sim_comm *comm, enum schedule_kind kind, struct ph__buffer buffer, MPI_Op op)
{
    int power = 1;
    while (2 * power <= comm->size)
        power *= 2;
    const int surplus = comm->size - power, rank = comm->rank, even = rank - rank % 2;
    const bool is_folded = rank < 2 * surplus;
    if (is_folded) {
        struct ph__buffer other = duplicate(buffer);
        pass(comm, even + 1, even, other);
        if (rank == even)
            reduce_local(other, buffer, op);
    }
    struct ph__sim_comm half = {comm->context, is_folded ? rank / 2 : rank - surplus, power,
        ph__sim_allocate((size_t)power * sizeof *half.ranks)};
    for (int place = 0; place < power; place++)
        half.ranks[place] = comm->ranks[place < surplus ? 2 * place : place + surplus];
    const struct parts parts = divide(buffer, power);
    if (!is_folded || rank == even)
        play_on(&half, kind, power, &parts, op);
    if (is_folded)
        pass(comm, even, even + 1, buffer);
}

static void allreduce(const struct ph__sim_comm *comm, struct ph__buffer buffer, MPI_Op op)
{
    const size_t bytes = ph__buffer_bytes(buffer);
    const enum schedule_kind by_size = bytes < KIB * KIB ? SCHEDULE_RABENSEIFNER : SCHEDULE_RING;
    const enum schedule_kind kind = choose(PH_RUN_allreduce, bytes < 10 * KIB ? SCHEDULE_DOUBLING : by_size);
    if (!commutes(op)) {
        reduce(comm, buffer, op, 0);
        bcast(comm, buffer, 0);
    } else if (kind == SCHEDULE_RING) {
        const struct parts parts = divide(buffer, comm->size);
        play_on(comm, kind, comm->size, &parts, op);
    } else {
        allreduce_by_halves(comm, kind, buffer, op);
    }
}

PH_MPI(Allreduce, const void *data, void *data_out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm handle)
{
    const struct ph__buffer buffer = {data_out, count, type};
    ph__process_enter();
    if (data != MPI_IN_PLACE)
        ph__buffer_copy(buffer, given(data, buffer));
    allreduce(ph__sim_comm(handle), buffer, op);
    return ph__sim_leave();
}

PH_MPI(Reduce, const void *data, void *data_out, int count, MPI_Datatype type, MPI_Op op, int root,
    MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    ph__process_enter();
    const struct ph__buffer own = duplicate(given(data, (struct ph__buffer){data_out, count, type}));
    reduce(comm, own, op, root);
    if (comm->rank == root)
        ph__buffer_copy((struct ph__buffer){data_out, count, type}, own);
    return ph__sim_leave();
}

/* Gives each rank its part of the sums. */
static int reduce_scatter(
    const void *data, void *data_out, struct parts parts, MPI_Op op, const struct ph__sim_comm *comm)
{
    ph__process_enter();
    const int n = comm->size, total = part(&parts, 0, (size_t)n).count;
    const struct ph__buffer own = duplicate(given(data, (struct ph__buffer){data_out, total, parts.type}));
    const struct ph__sim_comm view =
        turned(comm, 1, 1); /* a place gets the part of the next, which is its rank */
    parts.data = own.data;
    if (commutes(op)) {
        play_on(&view, SCHEDULE_REDUCE_SCATTER, n, &parts, op);
    } else { /* all get all, and keep theirs */
        reduce(comm, own, op, 0);
        bcast(comm, own, 0);
    }
    const struct ph__buffer kept = part(&parts, (size_t)comm->rank, 1);
    ph__buffer_copy((struct ph__buffer){data_out, kept.count, kept.type}, kept);
    return ph__sim_leave();
}

PH_MPI(Reduce_scatter, const void *data, void *data_out, const int counts[], MPI_Datatype type, MPI_Op op,
    MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    int *places = ph__sim_allocate((size_t)comm->size * sizeof *places), total = 0;
    for (int i = 0; i < comm->size; i++) {
        places[i] = total;
        total += counts[i];
    }
    return reduce_scatter(data, data_out, (struct parts){NULL, 0, type, ALL, counts, places}, op, comm);
}

PH_MPI(Reduce_scatter_block, const void *data, void *data_out, int count, MPI_Datatype type, MPI_Op op,
    MPI_Comm handle)
{
    return reduce_scatter(
        data, data_out, (struct parts){NULL, count, type, ALL, NULL, NULL}, op, ph__sim_comm(handle));
}

/* Passes the result of all former ranks from each rank to the next. */
static int scan(
    const void *data, struct ph__buffer out, MPI_Op op, const struct ph__sim_comm *comm, bool counts_own)
{
    ph__process_enter();
    const struct ph__buffer own = duplicate(given(data, out)), former = duplicate(own);
    if (comm->rank > 0) {
        pass(comm, comm->rank - 1, comm->rank, former);
        reduce_local(former, own, op);
    }
    if (comm->rank + 1 < comm->size)
        pass(comm, comm->rank, comm->rank + 1, own);
    if (counts_own || comm->rank > 0)
        ph__buffer_copy(out, counts_own ? own : former);
    return ph__sim_leave();
}

PH_MPI(Scan, const void *data, void *data_out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm handle)
{
    return scan(data, (struct ph__buffer){data_out, count, type}, op, ph__sim_comm(handle), true);
}

PH_MPI(Exscan, const void *data, void *data_out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm handle)
{
    return scan(data, (struct ph__buffer){data_out, count, type}, op, ph__sim_comm(handle), false);
}

/* ---- all to all ---- */

/* Copies parts: part i comes from part first + sign * i. */
static void turn(const struct parts *to, const struct parts *from, int n, int first, int sign)
{
    for (int i = 0; i < n; i++)
        ph__buffer_copy(part(to, (size_t)i, 1), part(from, (size_t)((first + sign * i + n) % n), 1));
}

/* Plays a schedule whose parts are numbered by how far ahead their ranks are. An AlltoAll leaves them by how
 * far behind their ranks are. All parts are as long. */
static void play_relative(const struct play *play_by_rank)
{
    struct play by_distance = *play_by_rank;
    const int n = by_distance.comm->size, rank = by_distance.comm->rank;
    const int bytes = (int)ph__buffer_bytes(part(&by_distance.received, 0, 1));
    const struct parts parts = {
        ph__sim_allocate((size_t)n * (size_t)bytes), bytes, MPI_BYTE, ALL, NULL, NULL};
    const bool is_behind = schedule_passes_on(by_distance.kind);
    by_distance.sent = by_distance.received = parts;
    turn(&parts, &play_by_rank->sent, n, rank, 1);
    play(&by_distance);
    turn(&play_by_rank->received, &parts, n, is_behind ? rank : n - rank, is_behind ? -1 : 1);
}

/* Plays a schedule with a part for each rank; the own part is copied unless one of the buffers is in place.
 */
static void exchange(
    const struct ph__sim_comm *comm, enum schedule_kind kind, struct parts sent, struct parts received)
{
    const size_t rank = (size_t)comm->rank;
    const bool is_gather = kind == SCHEDULE_GATHER || kind == SCHEDULE_GATHER_BRUCK;
    if (received.data != MPI_IN_PLACE && sent.data != MPI_IN_PLACE)
        ph__buffer_copy(part(&received, rank, 1), part(&sent, rank, 1));
    const struct play played = {comm, kind, comm->size, is_gather ? received : sent, received, MPI_OP_NULL};
    if (schedule_passes_on(kind) || kind == SCHEDULE_GATHER_BRUCK)
        play_relative(&played);
    else
        play(&played);
}

static int call_exchange(
    const struct ph__sim_comm *comm, enum schedule_kind kind, struct parts sent, struct parts received)
{
    ph__process_enter();
    exchange(comm, kind, sent, received);
    return ph__sim_leave();
}

static struct parts each(const void *data, int count, MPI_Datatype type)
{
    return (struct parts){(void *)(uintptr_t)data, count, type, ALL, NULL, NULL};
}

static struct parts only(int which, const void *data, int count, MPI_Datatype type)
{
    return (struct parts){(void *)(uintptr_t)data, count, type, which, NULL, NULL};
}

static struct parts listed(const void *data, const int *counts, const int *places, MPI_Datatype type)
{
    return (struct parts){(void *)(uintptr_t)data, 0, type, ALL, counts, places};
}

/* Pass parts between the root, which has `all`, and the others. */
static int gather(MPI_Comm handle, int root, struct parts own, struct parts all)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    return call_exchange(comm, SCHEDULE_AT_ONCE, own, comm->rank == root ? all : no_parts);
}

static int scatter(MPI_Comm handle, int root, struct parts all, struct parts own)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    return call_exchange(comm, SCHEDULE_AT_ONCE, comm->rank == root ? all : no_parts, own);
}

PH_MPI(Gather, const void *data, int count, MPI_Datatype type, void *data_out, int count_out,
    MPI_Datatype type_out, int root, MPI_Comm comm)
{
    return gather(comm, root, only(root, data, count, type), each(data_out, count_out, type_out));
}

PH_MPI(Gatherv, const void *data, int count, MPI_Datatype type, void *data_out, const int counts[],
    const int places[], MPI_Datatype type_out, int root, MPI_Comm comm)
{
    return gather(comm, root, only(root, data, count, type), listed(data_out, counts, places, type_out));
}

PH_MPI(Scatter, const void *data, int count, MPI_Datatype type, void *data_out, int count_out,
    MPI_Datatype type_out, int root, MPI_Comm comm)
{
    return scatter(comm, root, each(data, count, type), only(root, data_out, count_out, type_out));
}

PH_MPI(Scatterv, const void *data, const int counts[], const int places[], MPI_Datatype type, void *data_out,
    int count_out, MPI_Datatype type_out, int root, MPI_Comm comm)
{
    return scatter(comm, root, listed(data, counts, places, type), only(root, data_out, count_out, type_out));
}

static enum schedule_kind choose_allgather(const struct ph__sim_comm *comm, size_t bytes)
{
    const bool is_short = bytes * (size_t)comm->size < 80 * KIB;
    return choose(PH_RUN_allgather, is_short ? SCHEDULE_GATHER_BRUCK : SCHEDULE_GATHER);
}

void ph__sim_allgather(const struct ph__sim_comm *comm, void *data, int bytes)
{
    exchange(comm, choose_allgather(comm, (size_t)bytes), each(MPI_IN_PLACE, bytes, MPI_BYTE),
        each(data, bytes, MPI_BYTE));
}

PH_MPI(Allgather, const void *data, int count, MPI_Datatype type, void *data_out, int count_out,
    MPI_Datatype type_out, MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    const size_t bytes = ph__buffer_bytes((struct ph__buffer){data_out, count_out, type_out});
    return call_exchange(comm, choose_allgather(comm, bytes), only(comm->rank, data, count, type),
        each(data_out, count_out, type_out));
}

PH_MPI(Allgatherv, const void *data, int count, MPI_Datatype type, void *data_out, const int counts[],
    const int places[], MPI_Datatype type_out, MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    return call_exchange(comm, SCHEDULE_GATHER, only(comm->rank, data, count, type),
        listed(data_out, counts, places, type_out));
}

PH_MPI(Alltoall, const void *data, int count, MPI_Datatype type, void *data_out, int count_out,
    MPI_Datatype type_out, MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    const struct parts received = each(data_out, count_out, type_out);
    const size_t bytes = ph__buffer_bytes(part(&received, 0, 1));
    const enum schedule_kind by_size = bytes <= 32 * KIB ? SCHEDULE_AT_ONCE : SCHEDULE_PAIRWISE;
    struct parts sent = each(data, count, type);
    if (data == MPI_IN_PLACE)
        sent = each(duplicate(part(&received, 0, (size_t)comm->size)).data, count_out, type_out);
    return call_exchange(comm,
        choose(PH_RUN_alltoall, bytes <= 256 && comm->size >= 8 ? SCHEDULE_BRUCK : by_size), sent, received);
}

PH_MPI(Alltoallv, const void *data, const int counts[], const int places[], MPI_Datatype type, void *data_out,
    const int counts_out[], const int places_out[], MPI_Datatype type_out, MPI_Comm handle)
{
    const struct parts received = listed(data_out, counts_out, places_out, type_out);
    const bool is_in_place = data == MPI_IN_PLACE; /* data that are sent are copied before any arrive */
    return call_exchange(ph__sim_comm(handle), SCHEDULE_AT_ONCE,
        is_in_place ? received : listed(data, counts, places, type), received);
}
