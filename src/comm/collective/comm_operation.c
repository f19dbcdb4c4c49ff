/* Operations in flight: see comm_inside.h. */
#include "comm/collective/comm_inside.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory/absent.h"
#include "base/memory/memory.h"
#include "base/sizes.h"

/* A ticket holds its slot's number in the low bits and, above, how often the slot has been taken: a double
 * holds it up to the 2^39th time. There are few more slots than channels. */
enum { SLOT_BITS = 14 };
#define SLOT_MASK ((1u << SLOT_BITS) - 1)
_Static_assert(PH_COMM_MAX_CHANNELS < SLOT_MASK, "each channel may have a slot");

/* ---- slots ---- */

static ph_status grow(
    struct ph__operations *operations, void **items, size_t *capacity, size_t count, size_t size)
{
    const size_t before = *capacity;
    PH_TRY(ph__array_reserve(items, capacity, count, size));
    operations->num_growths += *capacity != before;
    return PH_OK;
}

static ph_status add_slot(struct ph__operations *operations, uint32_t channel, size_t *slot_out)
{
    const size_t count = operations->num_slots + 1;
    assert(count <= SLOT_MASK);
    PH_TRY(grow(operations, (void **)&operations->slots, &operations->slots_capacity, count,
        sizeof *operations->slots));
    PH_TRY(grow(operations, (void **)&operations->flying, &operations->flying_capacity, count,
        sizeof *operations->flying));
    struct ph__operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL)
        return ph__out_of_memory("an operation between ranks");
    operation->channel = channel;
    operation->ticket = operations->num_slots;
    operations->num_growths++;
    operations->slots[operations->num_slots++] = operation;
    *slot_out = count - 1;
    return PH_OK;
}

static ph_status find_slot(struct ph__operations *operations, uint32_t channel, size_t *slot_out)
{
    for (size_t slot = 0; slot < operations->num_slots; slot++) {
        if (operations->slots[slot]->channel == channel && !operations->slots[slot]->is_taken) {
            *slot_out = slot;
            return PH_OK;
        }
    }
    return add_slot(operations, channel, slot_out);
}

ph_status ph__operation_reserve(
    struct ph_comm *comm, struct ph__operation *operation, size_t bytes, bool is_of_numbers)
{
    struct ph__operations *operations = &comm->operations;
    static const char what[] = "messages between ranks";
    void *staging;
    if (bytes <= operation->staging_capacity)
        return PH_OK;
    PH_TRY(
        is_of_numbers ? ph__numbers_alloc(bytes, what, &staging) : ph__memory_alloc(bytes, what, &staging));
    ph__numbers_free(operation->staging, operation->staging_capacity);
    operation->staging = staging;
    operation->staging_capacity = bytes;
    operations->num_growths++;
    return PH_OK;
}

ph_status ph__operation_reserve_requests(
    struct ph_comm *comm, struct ph__operation *operation, size_t num_requests)
{
    struct ph__operations *operations = &comm->operations;
    PH_TRY(grow(operations, (void **)&operation->requests, &operation->requests_capacity, num_requests,
        sizeof *operation->requests));
    return grow(operations, (void **)&operation->pending, &operation->pending_capacity, num_requests,
        sizeof *operation->pending);
}

ph_status ph__operation_reserve_parts(
    struct ph_comm *comm, struct ph__operation *operation, size_t num_arrays, size_t num_bounds)
{
    struct ph__operations *operations = &comm->operations;
    PH_TRY(grow(operations, (void **)&operation->arrays, &operation->arrays_capacity, num_arrays,
        sizeof *operation->arrays));
    return grow(operations, (void **)&operation->bounds, &operation->bounds_capacity, num_bounds,
        sizeof *operation->bounds);
}

ph_status ph__operation_take(struct ph_comm *comm, const struct ph__comm_call *call, size_t num_requests,
    size_t staging_bytes, struct ph__operation **operation_out)
{
    struct ph__operations *operations = &comm->operations;
    size_t slot;
    assert(call->channel <= PH_COMM_OWN_CHANNEL);
    PH_TRY(ph__comm_check(comm));
    PH_TRY(find_slot(operations, call->channel, &slot));
    struct ph__operation *operation = operations->slots[slot];
    PH_TRY(ph__operation_reserve_requests(comm, operation, num_requests));
    PH_TRY(ph__operation_reserve(comm, operation, staging_bytes, false));
    operation->what = call->what;
    PH_TRY(ph__comm_profile_take(comm, operation));
    operation->is_taken = true;
    operation->is_done = false;
    operation->ticket += (uint64_t)1 << SLOT_BITS;
    operations->num_started++;
    operation->stage = 0;
    operation->sum_bytes = 0;
    operation->advance = NULL;
    operation->num_requests = operation->num_pending = 0;
    *operation_out = operation;
    return PH_OK;
}

struct ph__operation *ph__operation_find(const struct ph_comm *comm, uint64_t ticket)
{
    const size_t slot = ticket & SLOT_MASK;
    if (slot >= comm->operations.num_slots)
        return NULL;
    struct ph__operation *operation = comm->operations.slots[slot];
    return operation->is_taken && operation->ticket == ticket ? operation : NULL;
}

/* Operations of failed communicators of any thread, kept until the process ends. */
static _Atomic(struct ph__operation *) kept;

static void keep(struct ph__operation *operation)
{
    operation->next_kept = atomic_load(&kept);
    while (!atomic_compare_exchange_weak(&kept, &operation->next_kept, operation)) {
        /* another thread has kept one: retry behind that one */
    }
}

void ph__operations_fini(struct ph__operations *operations)
{
    for (size_t slot = 0; slot < operations->num_slots; slot++) {
        struct ph__operation *operation = operations->slots[slot];
        if (operation->num_pending > 0) {
            keep(operation);
            continue;
        }
        free(operation->requests);
        free(operation->pending);
        free(operation->arrays);
        free(operation->bounds);
        ph__numbers_free(operation->staging, operation->staging_capacity);
        free(operation);
    }
    free(operations->slots);
    free(operations->flying);
}

/* ---- requests ---- */

/* Every channel has tags that its stages take in turn, as messages between two ranks with the same tag keep
 * their order; the last tag of channel 0 is the communicator's own. */
#define TAGS_A_CHANNEL ((PH_TRANSPORT_MAX_TAG + 1) / (int)PH_COMM_MAX_CHANNELS)
_Static_assert(PH_COMM_STAGES < TAGS_A_CHANNEL, "a tag is left for the communicator");

static int tag_of(const struct ph__operation *operation)
{
    if (operation->channel == PH_COMM_OWN_CHANNEL)
        return TAGS_A_CHANNEL - 1;
    return (int)operation->channel * TAGS_A_CHANNEL + operation->stage % PH_COMM_STAGES;
}

uint32_t ph__comm_channel_of(int tag)
{
    return tag == TAGS_A_CHANNEL - 1 ? PH_COMM_OWN_CHANNEL : (uint32_t)(tag / TAGS_A_CHANNEL);
}

size_t ph__operation_num_cuts(const struct ph_comm *comm, uint64_t bytes)
{
    return ph__num_cuts(comm->cut_bytes, bytes);
}

static ph_status fail_between(
    struct ph_comm *comm, const struct ph__operation *operation, size_t rank, const char *error)
{
    char name[160];
    ph__comm_name_rank(comm, rank, name, sizeof name);
    return ph__comm_fail_here(
        comm, "%s: between rank %zu and %s: %s", operation->what, comm->transport.rank, name, error);
}

static struct ph__request *add_request(struct ph__operation *operation, size_t rank, bool is_send)
{
    assert(operation->num_requests < operation->requests_capacity);
    struct ph__request *request = &operation->requests[operation->num_requests];
    *request = (struct ph__request){.rank = (uint32_t)rank, .is_send = is_send};
    operation->pending[operation->num_pending++] = (uint32_t)operation->num_requests++;
    return request;
}

ph_status ph__operation_receive(
    struct ph_comm *comm, struct ph__operation *operation, size_t rank, void *data, uint64_t bytes)
{
    const struct ph__transport *transport = &comm->transport;
    char error[PH_TRANSPORT_ERROR_BYTES];
    const size_t num_cuts = ph__operation_num_cuts(comm, bytes);
    for (size_t cut = 0; cut < num_cuts; cut++) {
        const uint64_t first = cut * (uint64_t)comm->cut_bytes;
        const size_t size = ph__min(comm->cut_bytes, (size_t)(bytes - first));
        struct ph__request *request = add_request(operation, rank, false);
        void *part = bytes == 0 ? data : (unsigned char *)data + first;
        if (!transport->receive(
                transport->context, rank, tag_of(operation), part, size, &request->request, error))
            return fail_between(comm, operation, rank, error);
        ph__comm_profile_message(operation, rank, false, size);
    }
    return PH_OK;
}

ph_status ph__operation_send(
    struct ph_comm *comm, struct ph__operation *operation, size_t rank, const void *data, uint64_t bytes)
{
    const struct ph__transport *transport = &comm->transport;
    char error[PH_TRANSPORT_ERROR_BYTES];
    const size_t num_cuts = ph__operation_num_cuts(comm, bytes);
    for (size_t cut = 0; cut < num_cuts; cut++) {
        const uint64_t first = cut * (uint64_t)comm->cut_bytes;
        const size_t size = ph__min(comm->cut_bytes, (size_t)(bytes - first));
        struct ph__request *request = add_request(operation, rank, true);
        const void *part = bytes == 0 ? data : (const unsigned char *)data + first;
        if (!transport->send(
                transport->context, rank, tag_of(operation), part, size, &request->request, error))
            return fail_between(comm, operation, rank, error);
        ph__comm_profile_message(operation, rank, true, size);
        comm->sent_bytes[rank] += comm->is_uncounted ? 0 : size;
        comm->sent_messages[rank] += !comm->is_uncounted;
    }
    return PH_OK;
}

size_t ph__operation_waits_for(const struct ph__operation *operation, size_t *num_others_out)
{
    const struct ph__request *first = &operation->requests[operation->pending[0]];
    size_t num_others = 0;
    uint32_t last = first->rank;
    for (size_t i = 1; i < operation->num_pending; i++) {
        const struct ph__request *request = &operation->requests[operation->pending[i]];
        if (request->is_send != first->is_send)
            break;
        num_others += request->rank != last && request->rank != first->rank;
        last = request->rank;
    }
    *num_others_out = num_others;
    return first->rank;
}

/* ---- stages ---- */

/* Tests each pending request, and keeps those that are not done. */
static ph_status test_requests(struct ph_comm *comm, struct ph__operation *operation)
{
    const struct ph__transport *transport = &comm->transport;
    const size_t num_pending = operation->num_pending;
    size_t num_kept = 0;
    for (size_t i = 0; i < num_pending; i++) {
        struct ph__request *request = &operation->requests[operation->pending[i]];
        char error[PH_TRANSPORT_ERROR_BYTES];
        bool is_done;
        if (!transport->test(transport->context, &request->request, &is_done, error))
            return fail_between(comm, operation, request->rank, error);
        if (!is_done)
            operation->pending[num_kept++] = operation->pending[i];
    }
    operation->num_pending = num_kept;
    comm->operations.num_moves += num_pending - num_kept;
    return PH_OK;
}

ph_status ph__operation_poll(struct ph_comm *comm, struct ph__operation *operation)
{
    PH_TRY(test_requests(comm, operation));
    while (operation->num_pending == 0) {
        if (operation->advance == NULL) {
            operation->is_done = true;
            ph__comm_profile_done(operation);
            return PH_OK;
        }
        operation->num_requests = 0;
        operation->stage++;
        PH_TRY(operation->advance(comm, operation));
    }
    return PH_OK;
}

ph_status ph__operation_launch(struct ph_comm *comm, struct ph__operation *operation, uint64_t *ticket_out)
{
    PH_TRY(ph__operation_poll(comm, operation));
    if (operation->profile != NULL)
        ph__comm_profile_polled(operation->profile, operation->flight.started_ns);
    if (!operation->is_done)
        comm->operations.flying[comm->operations.num_flying++] = operation;
    *ticket_out = operation->ticket;
    return PH_OK;
}
