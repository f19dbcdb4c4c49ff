/* Exchanges that only move bytes: messages between any ranks, the barrier (empty messages) and broadcast. */
#include <assert.h>

#include "base/memory/absent.h"
#include "comm/collective/comm_inside.h"

/* Counts the requests of the messages that are not for this rank itself. */
static size_t count_requests(const struct ph_comm *comm, const struct ph__message *messages, size_t count)
{
    size_t num_requests = 0;
    for (size_t i = 0; i < count; i++)
        if (messages[i].rank != comm->transport.rank)
            num_requests += ph__operation_num_cuts(comm, messages[i].bytes);
    return num_requests;
}

/* Returns the first message from `at` on that is for this rank; num when there is none. */
static size_t next_own(const struct ph_comm *comm, const struct ph__message *messages, size_t num, size_t at)
{
    while (at < num && messages[at].rank != comm->transport.rank)
        at++;
    return at;
}

/* Copies what this rank sends to itself, in order, to where the same call receives it; data that is there
 * already is not copied. */
static void copy_own(const struct ph_comm *comm, const struct ph__exchange *exchange)
{
    const struct ph__message *sends = exchange->sends, *receives = exchange->receives;
    size_t to = next_own(comm, receives, exchange->num_receives, 0);
    size_t from = next_own(comm, sends, exchange->num_sends, 0);
    while (from < exchange->num_sends) {
        assert(to < exchange->num_receives && receives[to].bytes == sends[from].bytes);
        if (sends[from].bytes > 0 && receives[to].data != sends[from].data)
            ph__numbers_move(receives[to].data, sends[from].data, (size_t)sends[from].bytes);
        to = next_own(comm, receives, exchange->num_receives, to + 1);
        from = next_own(comm, sends, exchange->num_sends, from + 1);
    }
    assert(to == exchange->num_receives);
}

static ph_status post(
    struct ph_comm *comm, struct ph__operation *operation, const struct ph__exchange *exchange)
{
    for (size_t i = 0; i < exchange->num_receives; i++) {
        const struct ph__message *message = &exchange->receives[i];
        if (message->rank != comm->transport.rank)
            PH_TRY(ph__operation_receive(comm, operation, message->rank, message->data, message->bytes));
    }
    for (size_t i = 0; i < exchange->num_sends; i++) {
        const struct ph__message *message = &exchange->sends[i];
        if (message->rank != comm->transport.rank)
            PH_TRY(ph__operation_send(comm, operation, message->rank, message->data, message->bytes));
    }
    return PH_OK;
}

ph_status ph__comm_exchange_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__exchange *exchange, uint64_t *ticket_out)
{
    struct ph__operation *operation;
    const size_t num_requests = count_requests(comm, exchange->receives, exchange->num_receives) +
                                count_requests(comm, exchange->sends, exchange->num_sends);
    PH_TRY(ph__operation_take(comm, call, num_requests, 0, &operation));
    copy_own(comm, exchange);
    PH_TRY(post(comm, operation, exchange));
    return ph__operation_launch(comm, operation, ticket_out);
}

ph_status ph__comm_meet_for(struct ph_comm *comm, const char *what)
{
    const struct ph__comm_call call = {PH_COMM_OWN_CHANNEL, what};
    const size_t world_size = comm->transport.world_size, own = comm->transport.rank;
    struct ph__operation *operation;
    uint64_t ticket;
    PH_TRY(ph__operation_take(comm, &call, 2 * (world_size - 1), 0, &operation));
    for (size_t k = 1; k < world_size; k++)
        PH_TRY(ph__operation_receive(comm, operation, (own + k) % world_size, NULL, 0));
    for (size_t k = 1; k < world_size; k++)
        PH_TRY(ph__operation_send(comm, operation, (own + k) % world_size, NULL, 0));
    PH_TRY(ph__operation_launch(comm, operation, &ticket));
    return ph__comm_wait(comm, ticket);
}

ph_status ph__comm_barrier(struct ph_comm *comm)
{
    return ph__comm_meet_for(comm, "barrier");
}

/* ---- broadcast ---- */

ph_status ph__comm_broadcast_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, size_t root, void *data, uint64_t bytes, uint64_t *ticket_out)
{
    const size_t num_others = group->own == root ? group->size - 1 : 1;
    struct ph__operation *operation;
    PH_TRY(ph__operation_take(comm, call, num_others * ph__operation_num_cuts(comm, bytes), 0, &operation));
    if (group->own != root)
        PH_TRY(ph__operation_receive(comm, operation, group->ranks[root], data, bytes));
    for (size_t k = 1; group->own == root && k < group->size; k++) {
        const size_t member = (root + k) % group->size;
        PH_TRY(ph__operation_send(comm, operation, group->ranks[member], data, bytes));
    }
    return ph__operation_launch(comm, operation, ticket_out);
}
