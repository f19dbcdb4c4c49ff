/* Messages between any ranks, and the barrier, which is messages of nothing. */
#include <assert.h>
#include <string.h>

#include "comm/collective/comm_inside.h"

/* Sums up the requests of those messages that are not for this rank itself. */
static size_t count_requests(const struct ph_comm *comm, const struct ph_message *messages, size_t count)
{
    size_t num_requests = 0;
    for (size_t i = 0; i < count; i++)
        if (messages[i].rank != comm->transport.rank)
            num_requests += ph__operation_num_cuts(comm, messages[i].bytes);
    return num_requests;
}

/* The first from `at` on that is for this rank; num: there is none. */
static size_t next_own(const struct ph_comm *comm, const struct ph_message *messages, size_t num, size_t at)
{
    while (at < num && messages[at].rank != comm->transport.rank)
        at++;
    return at;
}

/* What a rank sends to itself it receives in the same call, in the same order; it may be where it goes already. */
static void copy_own(const struct ph_comm *comm, const struct ph_exchange *exchange)
{
    const struct ph_message *sends = exchange->sends, *receives = exchange->receives;
    size_t to = next_own(comm, receives, exchange->num_receives, 0);
    size_t from = next_own(comm, sends, exchange->num_sends, 0);
    while (from < exchange->num_sends) {
        assert(to < exchange->num_receives && receives[to].bytes == sends[from].bytes);
        if (sends[from].bytes > 0 && receives[to].data != sends[from].data)
            memmove(receives[to].data, sends[from].data, (size_t)sends[from].bytes);
        to = next_own(comm, receives, exchange->num_receives, to + 1);
        from = next_own(comm, sends, exchange->num_sends, from + 1);
    }
    assert(to == exchange->num_receives);
}

static ph_status post(
    struct ph_comm *comm, struct ph_operation *operation, const struct ph_exchange *exchange)
{
    for (size_t i = 0; i < exchange->num_receives; i++) {
        const struct ph_message *message = &exchange->receives[i];
        if (message->rank != comm->transport.rank)
            PH_TRY(ph__operation_receive(comm, operation, message->rank, message->data, message->bytes));
    }
    for (size_t i = 0; i < exchange->num_sends; i++) {
        const struct ph_message *message = &exchange->sends[i];
        if (message->rank != comm->transport.rank)
            PH_TRY(ph__operation_send(comm, operation, message->rank, message->data, message->bytes));
    }
    return PH_OK;
}

ph_status ph__comm_exchange_start(struct ph_comm *comm, const struct ph_comm_call *call,
    const struct ph_exchange *exchange, uint64_t *ticket_out)
{
    struct ph_operation *operation;
    const size_t num_requests = count_requests(comm, exchange->receives, exchange->num_receives) +
                                count_requests(comm, exchange->sends, exchange->num_sends);
    PH_TRY(ph__operation_take(comm, call, num_requests, 0, &operation));
    copy_own(comm, exchange);
    PH_TRY(post(comm, operation, exchange));
    return ph__operation_launch(comm, operation, ticket_out);
}

ph_status ph__comm_meet_for(struct ph_comm *comm, const char *what)
{
    const struct ph_comm_call call = {PH_COMM_OWN_CHANNEL, what};
    const size_t world_size = comm->transport.world_size, own = comm->transport.rank;
    struct ph_operation *operation;
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
