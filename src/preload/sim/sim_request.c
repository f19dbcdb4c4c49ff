/* Data, the shared memory that carries them to receivers, and requests. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "preload/sim/sim_mpi.h"

/* ---- memory of a call ---- */

struct piece { /* the memory is behind it */
    _Alignas(max_align_t) struct piece *next;
};
static struct piece *pieces;

void *ph__sim_allocate(size_t bytes)
{
    struct piece *piece = malloc(sizeof *piece + bytes);
    if (piece == NULL)
        ph__process_fail(5, "rank %u is out of memory", ph__process()->rank);
    piece->next = pieces;
    pieces = piece;
    return piece + 1;
}

int ph__sim_leave(void)
{
    while (pieces != NULL) {
        struct piece *next = pieces->next;
        free(pieces);
        pieces = next;
    }
    ph__process_leave();
    return MPI_SUCCESS;
}

/* ---- data ---- */

static size_t item_bytes(MPI_Datatype type)
{
    MPI_Count bytes;
    PMPI_Type_size_x(type, &bytes);
    return (size_t)bytes;
}

static bool is_derived(MPI_Datatype type)
{
    int num_integers, num_addresses, num_types, combiner;
    PMPI_Type_get_envelope(type, &num_integers, &num_addresses, &num_types, &combiner);
    return combiner != MPI_COMBINER_NAMED;
}

/* Returns whether items follow each other without gaps. */
static bool is_dense(MPI_Datatype type)
{
    MPI_Aint lower, extent;
    PMPI_Type_get_extent(type, &lower, &extent);
    return !is_derived(type) && (size_t)extent == item_bytes(type);
}

size_t ph__buffer_bytes(struct ph__buffer buffer)
{
    if (buffer.count < 0)
        ph__process_fail(2, "rank %u passes %d items", ph__process()->rank, buffer.count);
    return buffer.count > 0 ? (size_t)buffer.count * item_bytes(buffer.type) : 0;
}

/* Gives a number of bytes to functions that take an int. */
static int limited(size_t bytes)
{
    if (bytes > INT_MAX)
        ph__process_fail(2, "messages of 2 GiB and more are not simulated (rank %u)", ph__process()->rank);
    return (int)bytes;
}

static void pack(struct ph__buffer buffer, size_t bytes, void *packed)
{
    int at = 0;
    if (bytes == 0)
        return;
    if (is_dense(buffer.type))
        memcpy(packed, buffer.data, bytes);
    else
        PMPI_Pack(buffer.data, buffer.count, buffer.type, packed, limited(bytes), &at, MPI_COMM_SELF);
}

static void unpack(struct ph__buffer buffer, size_t bytes, const void *packed)
{
    const size_t item = item_bytes(buffer.type);
    int at = 0;
    if (bytes == 0)
        return;
    if (is_dense(buffer.type))
        memcpy(buffer.data, packed, bytes);
    else if (bytes % item == 0)
        PMPI_Unpack(
            packed, limited(bytes), &at, buffer.data, (int)(bytes / item), buffer.type, MPI_COMM_SELF);
    else
        ph__process_fail(
            2, "a message that ends within an item is not simulated (rank %u)", ph__process()->rank);
}

void ph__buffer_copy(struct ph__buffer to, struct ph__buffer from)
{
    const size_t bytes = ph__buffer_bytes(from);
    void *packed = is_dense(from.type) ? from.data : ph__sim_allocate(bytes);
    if (packed != from.data)
        pack(from, bytes, packed);
    unpack(to, bytes, packed);
}

/* ---- the heap: blocks of powers of two, which receivers give back to a list of their sender's ---- */

struct block { /* the data are behind it */
    uint64_t next;
    uint64_t level; /* log2 of its bytes */
};
enum { MOST_LEVELS = 36 };

static uint64_t free_blocks[MOST_LEVELS];
static uint64_t used_bytes; /* of the heap, so far */

static struct block *block_at(uint64_t place)
{
    return (struct block *)(void *)((char *)ph__process()->memory + place);
}

static void gather_freed(void)
{
    uint64_t place = atomic_exchange(&ph__process()->own->freed, 0);
    while (place != 0) {
        struct block *block = block_at(place);
        const uint64_t next = block->next;
        block->next = free_blocks[block->level];
        free_blocks[block->level] = place;
        place = next;
    }
}

static uint64_t allocate(size_t bytes)
{
    uint64_t level = 6;
    while ((uint64_t)1 << level < bytes + sizeof(struct block))
        level++;
    if (level < MOST_LEVELS && free_blocks[level] == 0)
        gather_freed();
    if (level < MOST_LEVELS && free_blocks[level] != 0) {
        const uint64_t place = free_blocks[level];
        free_blocks[level] = block_at(place)->next;
        return place;
    }
    if (level >= MOST_LEVELS || used_bytes + ((uint64_t)1 << level) > PH_RUN_HEAP_BYTES)
        ph__process_fail(5, "rank %u has more than %llu GiB of messages on their way", ph__process()->rank,
            (unsigned long long)(PH_RUN_HEAP_BYTES >> 30));
    const uint64_t place = ph__run_heap(ph__process()->memory->num_ranks, ph__process()->rank) + used_bytes;
    used_bytes += (uint64_t)1 << level;
    block_at(place)->level = level;
    return place;
}

static void give_back(uint64_t place, int32_t owner)
{
    _Atomic uint64_t *list = &ph__process()->memory->ranks[owner].freed;
    uint64_t first = atomic_load(list);
    do
        block_at(place)->next = first;
    while (!atomic_compare_exchange_weak(list, &first, place));
}

static uint64_t put(const struct ph__request *request)
{
    if (request->bytes == 0)
        return 0;
    const uint64_t place = allocate(request->bytes);
    pack(request->buffer, request->bytes, block_at(place) + 1);
    return place;
}

static void get(const struct ph__run_result *result, const struct ph__request *request)
{
    if (result->payload == 0)
        return;
    unpack(request->buffer, result->bytes, block_at(result->payload) + 1);
    give_back(result->payload, result->source);
}

/* ---- requests ---- */

static struct ph__request requests[PH_RUN_REQUESTS];
static int32_t num_requests, free_request = PH_RUN_NO_REQUEST;

/* Keeps a datatype of its own: the program may free a derived one before the request is done. */
int32_t ph__request_add(struct ph__request request)
{
    int32_t number = free_request;
    if (number != PH_RUN_NO_REQUEST)
        free_request = requests[number].next;
    else if (num_requests == PH_RUN_REQUESTS)
        ph__process_fail(
            5, "rank %u has more than %d requests at a time", ph__process()->rank, (int)PH_RUN_REQUESTS);
    else
        number = num_requests++;
    request.is_used = true;
    request.bytes = (size_t)limited(ph__buffer_bytes(request.buffer));
    if (is_derived(request.buffer.type))
        PMPI_Type_dup(request.buffer.type, &request.buffer.type);
    requests[number] = request;
    return number;
}

struct ph__request *ph__request_at(int32_t number)
{
    return number >= 0 && number < num_requests && requests[number].is_used ? &requests[number] : NULL;
}

void ph__request_remove(int32_t number)
{
    if (is_derived(requests[number].buffer.type))
        PMPI_Type_free(&requests[number].buffer.type);
    requests[number] = (struct ph__request){.next = free_request};
    free_request = number;
}

static struct ph__run_record record_of(const struct ph__request *request, int32_t number)
{
    return (struct ph__run_record){.kind = request->is_send ? PH_RUN_SEND : PH_RUN_RECEIVE,
        .is_synchronous = request->is_synchronous,
        .request = number,
        .peer = request->peer,
        .tag = request->tag,
        .context = request->context,
        .bytes = request->bytes,
        .payload = request->is_send ? put(request) : 0};
}

void ph__request_start(int32_t number)
{
    requests[number].is_active = true;
    ph__process_post(record_of(&requests[number], number));
}

int32_t ph__request_begin(struct ph__request request)
{
    const int32_t number = ph__request_add(request);
    ph__request_start(number);
    return number;
}

/* Needs no request for an eager message, which nobody waits for. */
void ph__request_send(struct ph__request request)
{
    request.is_send = true;
    request.bytes = (size_t)limited(ph__buffer_bytes(request.buffer));
    if (!request.is_synchronous && request.bytes < ph__process()->memory->eager_bytes) {
        ph__process_post(record_of(&request, PH_RUN_NO_REQUEST));
    } else {
        const int32_t number = ph__request_begin(request);
        (void)ph__request_finish_all(&number, 1);
    }
}

void ph__request_watch(int32_t number)
{
    ph__process_post((struct ph__run_record){.kind = PH_RUN_WATCH, .request = number});
}

bool ph__request_take(int32_t number, struct ph__run_result *result_out)
{
    struct ph__request *request = &requests[number];
    *result_out = ph__process()->own->results[number];
    if (!result_out->is_done)
        return false;
    if (!request->is_send)
        get(result_out, request);
    request->is_active = false;
    if (!request->is_persistent)
        ph__request_remove(number);
    return true;
}

struct ph__run_result ph__request_finish_all(const int32_t *numbers, size_t count)
{
    struct ph__run_result result = {0};
    for (size_t i = 0; i < count; i++)
        ph__request_watch(numbers[i]);
    ph__process_ask((struct ph__run_record){.kind = PH_RUN_WAIT, .mode = PH_RUN_ALL});
    for (size_t i = 0; i < count; i++)
        (void)ph__request_take(numbers[i], &result);
    return result;
}
