/* Gatherings, which move bytes to where they belong, without a copy but for all_gather's own bytes.
 *
 *   hierarchical  across groups each rank gets the parts of its place; then each group's ranks share them
 *   exchange      the same with one group
 *   ring          in round k a rank hands on the part of the k-th before it */
#include "base/memory/absent.h"
#include "base/sizes.h"
#include "comm/collective/comm_inside.h"

/* ---- stages ---- */

static ph_status post(
    struct ph_comm *comm, struct ph__operation *operation, size_t rank, bool is_send, struct ph__runs runs)
{
    while (ph__runs_next(&runs)) {
        const struct ph__array *array = &operation->gathering.arrays[runs.array];
        unsigned char *data = (unsigned char *)array->data + runs.row * array->row_bytes;
        PH_TRY(is_send ? ph__operation_send(comm, operation, rank, data, runs.bytes)
                       : ph__operation_receive(comm, operation, rank, data, runs.bytes));
    }
    return PH_OK;
}

/* Lets each member of a group get the `span` positions from first + member * span on of the others. */
static ph_status share(struct ph_comm *comm, struct ph__operation *operation, const struct ph__group *group,
    size_t first, size_t span)
{
    const struct ph__parts *parts = &operation->gathering;
    const struct ph__runs own = ph__runs_of(parts, first + group->own * span, span);
    for (size_t member = 0; member < group->size; member++)
        if (member != group->own)
            PH_TRY(post(comm, operation, group->ranks[member], false,
                ph__runs_of(parts, first + member * span, span)));
    for (size_t k = 1; k < group->size; k++)
        PH_TRY(post(comm, operation, group->ranks[(group->own + k) % group->size], true, own));
    return PH_OK;
}

static ph_status share_inside(struct ph_comm *comm, struct ph__operation *operation)
{
    const struct ph__parts *parts = &operation->gathering;
    operation->advance = operation->advance_gathered;
    return share(comm, operation, &parts->inner, 0, parts->outer.size);
}

static ph_status share_outside(struct ph_comm *comm, struct ph__operation *operation)
{
    const struct ph__parts *parts = &operation->gathering;
    operation->advance = share_inside;
    return share(comm, operation, &parts->outer, parts->inner.own * parts->outer.size, 1);
}

static ph_status hand_on(struct ph_comm *comm, struct ph__operation *operation)
{
    const struct ph__parts *parts = &operation->gathering;
    const size_t size = parts->size, own = parts->own, round = operation->round++;
    const size_t newest = (own + size - round) % size, next = (newest + size - 1) % size;
    operation->advance = round + 2 < size ? hand_on : operation->advance_gathered;
    PH_TRY(post(
        comm, operation, parts->inner.ranks[(own + size - 1) % size], false, ph__runs_of(parts, next, 1)));
    return post(comm, operation, parts->inner.ranks[(own + 1) % size], true, ph__runs_of(parts, newest, 1));
}

size_t ph__gather_requests(const struct ph_comm *comm, const struct ph__parts *parts)
{
    if (parts->is_ring)
        return ph__parts_ring_requests(comm->cut_bytes, parts);
    return ph__max(ph__parts_round_requests(
                       comm->cut_bytes, parts, &parts->outer, parts->inner.own * parts->outer.size, 1),
        ph__parts_round_requests(comm->cut_bytes, parts, &parts->inner, 0, parts->outer.size));
}

ph_status ph__gather_begin(struct ph_comm *comm, struct ph__operation *operation)
{
    const struct ph__parts *parts = &operation->gathering;
    operation->round = 0;
    if (parts->is_ring)
        return hand_on(comm, operation);
    return parts->outer.size > 1 ? share_outside(comm, operation) : share_inside(comm, operation);
}

/* ---- starts ---- */

/* Starts the gathering of operation->arrays. */
static ph_status start(struct ph_comm *comm, struct ph__operation *operation, const struct ph__group *group,
    size_t num_arrays, uint64_t *ticket_out)
{
    struct ph__parts *parts = &operation->gathering;
    uint64_t bytes = 0;
    for (size_t i = 0; i < num_arrays; i++)
        bytes += operation->arrays[i].bounds[group->size] * operation->arrays[i].row_bytes;
    *parts = (struct ph__parts){.wire = PH_WIRE_FP32, .num_arrays = num_arrays, .arrays = operation->arrays};
    ph__parts_divide(&comm->choices, group, true, bytes, parts);
    operation->advance_gathered = NULL;
    PH_TRY(ph__operation_reserve_requests(comm, operation, ph__gather_requests(comm, parts)));
    PH_TRY(ph__gather_begin(comm, operation));
    return ph__operation_launch(comm, operation, ticket_out);
}

ph_status ph__comm_gather_arrays_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, size_t num_arrays, const struct ph__array *arrays, uint64_t *ticket_out)
{
    struct ph__operation *operation;
    PH_TRY(ph__operation_take(comm, call, 0, 0, &operation));
    PH_TRY(ph__operation_reserve_parts(comm, operation, num_arrays, 0));
    for (size_t i = 0; i < num_arrays; i++)
        operation->arrays[i] = arrays[i];
    return start(comm, operation, group, num_arrays, ticket_out);
}

/* Sends nothing for a member without bytes: all members know bytes_of. */
ph_status ph__comm_all_gather_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, const void *data, const uint64_t *bytes_of, void *all_out,
    uint64_t *ticket_out)
{
    struct ph__operation *operation;
    PH_TRY(ph__operation_take(comm, call, 0, 0, &operation));
    PH_TRY(ph__operation_reserve_parts(comm, operation, 1, group->size + 1));
    size_t *bounds = operation->bounds;
    bounds[0] = 0;
    for (size_t member = 0; member < group->size; member++)
        bounds[member + 1] = bounds[member] + (size_t)bytes_of[member];
    operation->arrays[0] = (struct ph__array){all_out, 1, bounds};
    if (bytes_of[group->own] > 0)
        ph__numbers_move((unsigned char *)all_out + bounds[group->own], data, (size_t)bytes_of[group->own]);
    return start(comm, operation, group, 1, ticket_out);
}
