/* Everybody's bytes for everybody or for one member, and one member's for all. */
#include <string.h>

#include "comm/collective/comm_inside.h"

/* ---- gathering ----------------------------------------------------------------------------------------------- */

static size_t count_receives(
    const struct ph_comm *comm, const struct ph_group *group, const uint64_t *bytes_of)
{
    size_t num_requests = 0;
    for (size_t member = 0; member < group->size; member++) {
        if (member != group->own && bytes_of[member] > 0)
            num_requests += ph__operation_num_cuts(comm, bytes_of[member]);
    }
    return num_requests;
}

/* Of the own bytes, to so many members. */
static size_t count_sends(const struct ph_comm *comm, uint64_t own_bytes, size_t num_members)
{
    return own_bytes > 0 ? num_members * ph__operation_num_cuts(comm, own_bytes) : 0;
}

/* The own bytes are at once where they belong. */
static ph_status receive_all(struct ph_comm *comm, struct ph_operation *operation,
    const struct ph_group *group, const uint64_t *bytes_of, const void *data, unsigned char *all)
{
    for (size_t member = 0; member < group->size; member++) {
        if (member == group->own && bytes_of[member] > 0)
            memmove(all, data, (size_t)bytes_of[member]);
        else if (bytes_of[member] > 0)
            PH_TRY(ph__operation_receive(comm, operation, group->ranks[member], all, bytes_of[member]));
        if (bytes_of[member] > 0)
            all += bytes_of[member];
    }
    return PH_OK;
}

/* Nothing is sent where there are no bytes, which all members know. */
ph_status ph__comm_all_gather_start(struct ph_comm *comm, const struct ph_comm_call *call,
    const struct ph_group *group, const void *data, const uint64_t *bytes_of, void *all_out,
    uint64_t *ticket_out)
{
    const uint64_t own_bytes = bytes_of[group->own];
    const size_t num_requests =
        count_receives(comm, group, bytes_of) + count_sends(comm, own_bytes, group->size - 1);
    struct ph_operation *operation;
    PH_TRY(ph__operation_take(comm, call, num_requests, 0, &operation));
    PH_TRY(receive_all(comm, operation, group, bytes_of, data, all_out));
    for (size_t k = 1; own_bytes > 0 && k < group->size; k++) {
        const size_t member = (group->own + k) % group->size;
        PH_TRY(ph__operation_send(comm, operation, group->ranks[member], data, own_bytes));
    }
    return ph__operation_launch(comm, operation, ticket_out);
}

/* ---- broadcast ----------------------------------------------------------------------------------------------- */

ph_status ph__comm_broadcast_start(struct ph_comm *comm, const struct ph_comm_call *call,
    const struct ph_group *group, size_t root, void *data, uint64_t bytes, uint64_t *ticket_out)
{
    const size_t num_others = group->own == root ? group->size - 1 : 1;
    struct ph_operation *operation;
    PH_TRY(ph__operation_take(comm, call, num_others * ph__operation_num_cuts(comm, bytes), 0, &operation));
    if (group->own != root)
        PH_TRY(ph__operation_receive(comm, operation, group->ranks[root], data, bytes));
    for (size_t k = 1; group->own == root && k < group->size; k++) {
        const size_t member = (root + k) % group->size;
        PH_TRY(ph__operation_send(comm, operation, group->ranks[member], data, bytes));
    }
    return ph__operation_launch(comm, operation, ticket_out);
}
