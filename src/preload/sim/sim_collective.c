#include "preload/sim/sim_collective.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1024)
#define SEGMENT_BYTES (64 * KIB) /* of a pipeline */

enum bcast { BCAST_TREE, BCAST_PIPELINE };
enum allgather { ALLGATHER_RING, ALLGATHER_BRUCK };
enum alltoall { ALLTOALL_PAIRWISE, ALLTOALL_AT_ONCE, ALLTOALL_RING, ALLTOALL_BRUCK };

int ph__sim_choose(enum ph__run_collective collective, int by_rule)
{
    const int8_t chosen = ph__process()->memory->algorithms[collective];
    return chosen != PH_RUN_BY_RULE ? chosen : by_rule;
}

/* ---- messages ---- */

static int32_t start_runs(const struct ph__sim_comm *comm, bool is_send, int peer, struct ph__runs runs)
{
    if (runs.bytes > INT_MAX)
        ph__process_fail(2, "messages of 2 GiB and more are not simulated (rank %u)", ph__process()->rank);
    const int32_t number = ph__request_add(&(struct ph__request){
        .is_send = is_send, .peer = comm->ranks[peer], .context = comm->context + 1, .runs = runs});
    ph__request_start(number);
    return number;
}

static int32_t start(const struct ph__sim_comm *comm, bool is_send, int peer, const void *data, size_t bytes)
{
    return start_runs(comm, is_send, peer, (struct ph__runs){(char *)(uintptr_t)data, bytes, bytes, bytes});
}

void ph__sim_send(const struct ph__sim_comm *comm, int to, const void *data, size_t bytes)
{
    const int32_t number = start(comm, true, to, data, bytes);
    (void)ph__request_finish_all(&number, 1);
}

void ph__sim_receive(const struct ph__sim_comm *comm, int from, void *data, size_t bytes)
{
    const int32_t number = start(comm, false, from, data, bytes);
    (void)ph__request_finish_all(&number, 1);
}

void ph__sim_exchange(
    const struct ph__sim_comm *comm, int to, struct ph__part sent, int from, struct ph__part received)
{
    const int32_t first = start(comm, false, from, received.data, received.bytes);
    const int32_t numbers[] = {first, start(comm, true, to, sent.data, sent.bytes)};
    (void)ph__request_finish_all(numbers, 2);
}

/* ---- schedules ---- */

static int32_t start_message(
    const struct ph__play *play, const struct schedule_message *message, char *scratch)
{
    const size_t item = play->item_bytes;
    const char *buffer = !message->is_receive && play->source != NULL ? play->source : play->buffer;
    struct ph__runs runs = {(char *)(uintptr_t)buffer + message->offset * item, message->bytes * item,
        message->run_bytes * item, message->stride * item};
    if (message->is_sum)
        runs = (struct ph__runs){scratch, runs.bytes, runs.bytes, runs.bytes};
    return start_runs(play->comm, !message->is_receive, (int)message->peer, runs);
}

static void play_step(const struct ph__play *play, const struct schedule_message *messages, size_t count,
    int32_t *numbers, char *scratch)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] = start_message(play, &messages[i], scratch);
    (void)ph__request_finish_all(numbers, count);
    for (size_t i = 0; i < count; i++)
        if (messages[i].is_sum)
            ph__sim_reduce(play->reduction, scratch, play->buffer + messages[i].offset * play->item_bytes,
                messages[i].bytes);
}

void ph__sim_play(const struct ph__play *play)
{
    const size_t most = schedule_most_messages(&play->schedule);
    struct schedule_message *messages = ph__sim_allocate(most * sizeof *messages);
    int32_t *numbers = ph__sim_allocate(most * sizeof *numbers);
    char *scratch =
        play->reduction != NULL ? ph__sim_allocate(play->schedule.bytes * play->item_bytes) : NULL;
    for (size_t step = 0; step < schedule_num_steps(&play->schedule); step++) {
        const size_t count = schedule_step(&play->schedule, play->place, step, messages);
        if (count > 0)
            play_step(play, messages, count, numbers, scratch);
    }
    free(messages);
    free(numbers);
    free(scratch);
}

/* ---- one to all, all to one ---- */

static void pipeline(const struct ph__sim_comm *comm, void *data, size_t bytes, int root)
{
    const int place = (comm->rank - root + comm->size) % comm->size;
    const size_t num_segments = (bytes + SEGMENT_BYTES - 1) / SEGMENT_BYTES;
    int32_t *numbers = ph__sim_allocate(num_segments * sizeof *numbers);
    for (size_t i = 0; i < num_segments; i++) {
        char *segment = (char *)data + i * SEGMENT_BYTES;
        const size_t length = i + 1 < num_segments ? SEGMENT_BYTES : bytes - i * SEGMENT_BYTES;
        if (place > 0)
            ph__sim_receive(comm, (comm->rank + comm->size - 1) % comm->size, segment, length);
        if (place + 1 < comm->size)
            numbers[i] = start(comm, true, (comm->rank + 1) % comm->size, segment, length);
    }
    if (place + 1 < comm->size)
        (void)ph__request_finish_all(numbers, num_segments);
    free(numbers);
}

void ph__sim_bcast(const struct ph__sim_comm *comm, void *data, size_t bytes, int root)
{
    const bool is_long = bytes >= SEGMENT_BYTES * (size_t)comm->size;
    if (comm->size == 1)
        return;
    if (ph__sim_choose(PH_RUN_bcast, is_long ? BCAST_PIPELINE : BCAST_TREE) == BCAST_PIPELINE) {
        pipeline(comm, data, bytes, root);
        return;
    }
    uint32_t *order = ph__sim_allocate((size_t)comm->size * sizeof *order);
    for (int i = 0; i < comm->size; i++)
        order[i] = (uint32_t)((root + i) % comm->size);
    ph__sim_play(&(struct ph__play){.comm = comm,
        .schedule = {SCHEDULE_TREE, (uint32_t)comm->size, bytes, order},
        .place = (uint32_t)((comm->rank - root + comm->size) % comm->size),
        .item_bytes = 1,
        .buffer = data});
    free(order);
}

struct ph__part ph__sim_part(const struct ph__parts *parts, int rank)
{
    const size_t count = parts->counts != NULL ? (size_t)parts->counts[rank] : parts->count;
    const size_t place = parts->places != NULL ? (size_t)parts->places[rank] : parts->count * (size_t)rank;
    return (struct ph__part){parts->data + place * parts->item_bytes, count * parts->item_bytes};
}

/* Passes parts between the root and all others. own: of this rank; NULL data: it stands in its place. */
static int pass_parts(const struct ph__sim_comm *comm, const struct ph__parts *parts, struct ph__part own,
    int root, bool is_gather)
{
    int32_t *numbers = ph__sim_allocate((size_t)comm->size * sizeof *numbers);
    size_t num_started = 0;
    ph__process_enter();
    if (comm->rank != root)
        numbers[num_started++] = start(comm, is_gather, root, own.data, own.bytes);
    for (int i = 0; i < comm->size && comm->rank == root; i++) {
        const struct ph__part part = ph__sim_part(parts, i);
        if (i != root)
            numbers[num_started++] = start(comm, !is_gather, i, part.data, part.bytes);
        else if (own.data != MPI_IN_PLACE)
            memcpy(is_gather ? part.data : own.data, is_gather ? own.data : part.data, own.bytes);
    }
    (void)ph__request_finish_all(numbers, num_started);
    free(numbers);
    ph__process_leave();
    return MPI_SUCCESS;
}

static size_t extent_of(MPI_Datatype type)
{
    return ph__sim_type(type)->extent;
}

static struct ph__part part(const void *data, int count, MPI_Datatype type)
{
    const bool is_there = data != MPI_IN_PLACE;
    return (struct ph__part){(void *)(uintptr_t)data, is_there ? (size_t)count * extent_of(type) : 0};
}

/* Describes parts whose counts only the root need know. */
static struct ph__parts parts_at(const struct ph__sim_comm *comm, int root, const void *data,
    const int *counts, const int *places, int count, MPI_Datatype type)
{
    if (comm->rank != root)
        return (struct ph__parts){0};
    return (struct ph__parts){(char *)(uintptr_t)data, counts, places, (size_t)count, extent_of(type)};
}

PH_MPI(Gatherv, const void *data, int count, MPI_Datatype type, void *data_out, const int counts[],
    const int places[], MPI_Datatype type_out, int root, MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    const struct ph__parts parts = parts_at(comm, root, data_out, counts, places, 0, type_out);
    return pass_parts(comm, &parts, part(data, count, type), root, true);
}

PH_MPI(Gather, const void *data, int count, MPI_Datatype type, void *data_out, int count_out,
    MPI_Datatype type_out, int root, MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    const struct ph__parts parts = parts_at(comm, root, data_out, NULL, NULL, count_out, type_out);
    return pass_parts(comm, &parts, part(data, count, type), root, true);
}

PH_MPI(Scatterv, const void *data, const int counts[], const int places[], MPI_Datatype type, void *data_out,
    int count_out, MPI_Datatype type_out, int root, MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    const struct ph__parts parts = parts_at(comm, root, data, counts, places, 0, type);
    return pass_parts(comm, &parts, part(data_out, count_out, type_out), root, false);
}

PH_MPI(Scatter, const void *data, int count, MPI_Datatype type, void *data_out, int count_out,
    MPI_Datatype type_out, int root, MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    const struct ph__parts parts = parts_at(comm, root, data, NULL, NULL, count, type);
    return pass_parts(comm, &parts, part(data_out, count_out, type_out), root, false);
}

PH_MPI(Bcast, void *data, int count, MPI_Datatype type, int root, MPI_Comm handle)
{
    ph__process_enter();
    ph__sim_bcast(ph__sim_comm(handle), data, (size_t)count * extent_of(type), root);
    ph__process_leave();
    return MPI_SUCCESS;
}

/* Disseminates: in step k a rank tells the 2^k-th one ahead. */
PH_MPI(Barrier, MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    const struct ph__part nothing = {NULL, 0};
    ph__process_enter();
    for (int distance = 1; distance < comm->size; distance *= 2)
        ph__sim_exchange(comm, (comm->rank + distance) % comm->size, nothing,
            (comm->rank - distance + comm->size) % comm->size, nothing);
    ph__process_leave();
    return MPI_SUCCESS;
}

/* ---- all to all ---- */

static void gather_along_ring(const struct ph__sim_comm *comm, const struct ph__parts *parts)
{
    const int n = comm->size, next = (comm->rank + 1) % n, former = (comm->rank + n - 1) % n;
    for (int step = 0; step + 1 < n; step++)
        ph__sim_exchange(comm, next, ph__sim_part(parts, (comm->rank - step + n) % n), former,
            ph__sim_part(parts, (comm->rank - step - 1 + n) % n));
}

/* Doubles the parts that a rank has, those of the ranks ahead, in each step. */
static void gather_by_bruck(const struct ph__sim_comm *comm, char *data, size_t bytes)
{
    const int n = comm->size;
    char *ahead = ph__sim_allocate((size_t)n * bytes);
    memcpy(ahead, data + (size_t)comm->rank * bytes, bytes);
    for (int have = 1; have < n; have *= 2) {
        const size_t length = (size_t)(have < n - have ? have : n - have) * bytes;
        ph__sim_exchange(comm, (comm->rank - have + n) % n, (struct ph__part){ahead, length},
            (comm->rank + have) % n, (struct ph__part){ahead + (size_t)have * bytes, length});
    }
    for (int i = 0; i < n; i++)
        memcpy(data + (size_t)((comm->rank + i) % n) * bytes, ahead + (size_t)i * bytes, bytes);
    free(ahead);
}

void ph__sim_allgather(const struct ph__sim_comm *comm, void *data, size_t bytes)
{
    const bool is_short = bytes * (size_t)comm->size < 80 * KIB;
    const struct ph__parts parts = {.data = data, .count = 1, .item_bytes = bytes};
    if (ph__sim_choose(PH_RUN_allgather, is_short ? ALLGATHER_BRUCK : ALLGATHER_RING) == ALLGATHER_BRUCK)
        gather_by_bruck(comm, data, bytes);
    else
        gather_along_ring(comm, &parts);
}

PH_MPI(Allgather, const void *data, int count, MPI_Datatype type, void *data_out, int count_out,
    MPI_Datatype type_out, MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    const size_t bytes = (size_t)count_out * extent_of(type_out);
    ph__process_enter();
    if (data != MPI_IN_PLACE)
        memcpy((char *)data_out + (size_t)comm->rank * bytes, data, part(data, count, type).bytes);
    ph__sim_allgather(comm, data_out, bytes);
    ph__process_leave();
    return MPI_SUCCESS;
}

PH_MPI(Allgatherv, const void *data, int count, MPI_Datatype type, void *data_out, const int counts[],
    const int places[], MPI_Datatype type_out, MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    const struct ph__parts parts = {data_out, counts, places, 0, extent_of(type_out)};
    ph__process_enter();
    if (data != MPI_IN_PLACE)
        memcpy(ph__sim_part(&parts, comm->rank).data, data, part(data, count, type).bytes);
    gather_along_ring(comm, &parts);
    ph__process_leave();
    return MPI_SUCCESS;
}

/* Turns blocks by `first`: block i comes from block first + sign * i. */
static void turn(char *to, const char *from, int n, int first, int sign, size_t bytes)
{
    for (int i = 0; i < n; i++)
        memcpy(to + (size_t)i * bytes, from + (size_t)((first + sign * i + n) % n) * bytes, bytes);
}

static void alltoall(const struct ph__sim_comm *comm, const char *data, char *data_out, size_t bytes)
{
    static const enum schedule_kind kinds[] = {[ALLTOALL_PAIRWISE] = SCHEDULE_PAIRWISE,
        [ALLTOALL_AT_ONCE] = SCHEDULE_AT_ONCE,
        [ALLTOALL_RING] = SCHEDULE_RING_ALLTOALL,
        [ALLTOALL_BRUCK] = SCHEDULE_BRUCK};
    const int n = comm->size, by_size = bytes <= 32 * KIB ? ALLTOALL_AT_ONCE : ALLTOALL_PAIRWISE;
    const enum schedule_kind kind =
        kinds[ph__sim_choose(PH_RUN_alltoall, bytes <= 256 && n >= 8 ? ALLTOALL_BRUCK : by_size)];
    struct ph__play played = {.comm = comm,
        .schedule = {kind, (uint32_t)n, (size_t)n * bytes, NULL},
        .place = (uint32_t)comm->rank,
        .item_bytes = 1,
        .buffer = data_out,
        .source = data};
    const size_t own = (size_t)comm->rank * bytes;
    memcpy(data_out + own, data + own, bytes);
    if (n == 1)
        return;
    if (!schedule_passes_on(kind)) {
        ph__sim_play(&played);
        return;
    }
    played.source = NULL;
    played.buffer = ph__sim_allocate((size_t)n * bytes);
    turn(played.buffer, data, n, comm->rank, 1, bytes);
    ph__sim_play(&played);
    turn(data_out, played.buffer, n, comm->rank, -1, bytes); /* block i is the one from i behind */
    free(played.buffer);
}

PH_MPI(Alltoall, const void *data, int count, MPI_Datatype type, void *data_out, int count_out,
    MPI_Datatype type_out, MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    const size_t bytes = (size_t)count_out * extent_of(type_out);
    (void)count;
    (void)type;
    ph__process_enter();
    void *copy = data == MPI_IN_PLACE ? ph__sim_copy(data_out, bytes * (size_t)comm->size) : NULL;
    alltoall(comm, copy != NULL ? copy : data, data_out, bytes);
    free(copy);
    ph__process_leave();
    return MPI_SUCCESS;
}

/* Sends all at once; also in place, as what is sent is copied before anything is received. */
PH_MPI(Alltoallv, const void *data, const int counts[], const int places[], MPI_Datatype type, void *data_out,
    const int counts_out[], const int places_out[], MPI_Datatype type_out, MPI_Comm handle)
{
    const struct ph__sim_comm *comm = ph__sim_comm(handle);
    const struct ph__parts received = {data_out, counts_out, places_out, 0, extent_of(type_out)};
    const bool is_there = data != MPI_IN_PLACE;
    const struct ph__parts sent =
        is_there ? (struct ph__parts){(char *)(uintptr_t)data, counts, places, 0, extent_of(type)} : received;
    const int n = comm->size;
    int32_t *numbers = ph__sim_allocate(2 * (size_t)n * sizeof *numbers);
    size_t num_started = 0;
    ph__process_enter();
    for (int is_send = 0; is_send < 2; is_send++)
        for (int distance = 1; distance < n; distance++) {
            const int peer = (comm->rank + (is_send ? distance : n - distance)) % n;
            const struct ph__part passed = ph__sim_part(is_send ? &sent : &received, peer);
            numbers[num_started++] = start(comm, is_send, peer, passed.data, passed.bytes);
        }
    const struct ph__part own = ph__sim_part(&sent, comm->rank);
    if (is_there)
        memcpy(ph__sim_part(&received, comm->rank).data, own.data, own.bytes);
    (void)ph__request_finish_all(numbers, num_started);
    free(numbers);
    ph__process_leave();
    return MPI_SUCCESS;
}
