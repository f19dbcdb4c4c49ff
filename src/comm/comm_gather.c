/* Everybody's bytes for everybody, and one member's for all. */
#include <string.h>

#include "comm/comm_inside.h"

/* ---- all gather ---------------------------------------------------------------------------------------------- */

static size_t count_requests(
    const struct ph_comm *comm, const struct ph_group *group, const uint64_t *bytes_of)
{
    size_t num_requests = 0;
    for (size_t member = 0; member < group->size; member++) {
        if (member != group->own && bytes_of[member] > 0)
            num_requests += ph__operation_num_cuts(comm, bytes_of[member]);
    }
    if (bytes_of[group->own] > 0)
        num_requests += (group->size - 1) * ph__operation_num_cuts(comm, bytes_of[group->own]);
    return num_requests;
}

/* Returns where the own bytes belong. */
static ph_status receive_all(struct ph_comm *comm, struct ph_operation *operation,
    const struct ph_group *group, const uint64_t *bytes_of, unsigned char *all, unsigned char **own_out)
{
    for (size_t member = 0; member < group->size; member++) {
        if (member == group->own)
            *own_out = all;
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
    struct ph_operation *operation;
    unsigned char *own;
    PH_TRY(ph__operation_take(comm, call, count_requests(comm, group, bytes_of), 0, &operation));
    PH_TRY(receive_all(comm, operation, group, bytes_of, all_out, &own));
    if (own_bytes > 0)
        memmove(own, data, (size_t)own_bytes);
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
