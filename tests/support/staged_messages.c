#include "support/staged_messages.h"

#include <stdio.h>
#include <stdlib.h>

#include "comm/collective/comm_inside.h"

struct demand {
    struct ph__transport inner;
    const struct ph_comm *comm;
};

static bool is_staged(const struct ph_comm *comm, const void *data, size_t bytes)
{
    const uintptr_t at = (uintptr_t)data;
    for (size_t i = 0; i < comm->operations.num_slots; i++) {
        const struct ph__operation *operation = comm->operations.slots[i];
        const uintptr_t staging = (uintptr_t)operation->staging;
        if (at >= staging && at + bytes <= staging + operation->staging_capacity)
            return true;
    }
    return bytes == 0;
}

static bool refuse(char error[PH_TRANSPORT_ERROR_BYTES])
{
    snprintf(error, PH_TRANSPORT_ERROR_BYTES, "a caller's memory travels");
    return false;
}

static bool send_staged(void *context, size_t to, int tag, const void *data, size_t bytes,
    struct ph__transport_request *request_out, char error[PH_TRANSPORT_ERROR_BYTES])
{
    const struct demand *demand = context;
    if (!is_staged(demand->comm, data, bytes))
        return refuse(error);
    return demand->inner.send(demand->inner.context, to, tag, data, bytes, request_out, error);
}

static bool receive_staged(void *context, size_t from, int tag, void *data, size_t bytes,
    struct ph__transport_request *request_out, char error[PH_TRANSPORT_ERROR_BYTES])
{
    const struct demand *demand = context;
    if (!is_staged(demand->comm, data, bytes))
        return refuse(error);
    return demand->inner.receive(demand->inner.context, from, tag, data, bytes, request_out, error);
}

static bool test_inner(void *context, struct ph__transport_request *request, bool *is_done_out,
    char error[PH_TRANSPORT_ERROR_BYTES])
{
    const struct demand *demand = context;
    return demand->inner.test(demand->inner.context, request, is_done_out, error);
}

static void close_inner(void *context, bool is_clean)
{
    struct demand *demand = context;
    demand->inner.close(demand->inner.context, is_clean);
    free(demand);
}

ph_status staged_messages_demand(struct ph_comm *comm)
{
    struct demand *demand = malloc(sizeof *demand);
    if (demand == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory");
    *demand = (struct demand){.inner = comm->transport, .comm = comm};
    comm->transport.context = demand;
    comm->transport.send = send_staged;
    comm->transport.receive = receive_staged;
    comm->transport.test = test_inner;
    comm->transport.close = close_inner;
    return PH_OK;
}
