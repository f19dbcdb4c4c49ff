/* Sums: every member owns a part, to which the others send their contributions and which the owner adds in
 * the order of the members. all_reduce then gathers the parts. A member sends and receives 2 (n - 1) / n of
 * the data, for any n.
 *
 * Staging memory holds n slots, one for each member's contribution to the own part. Where numbers are packed
 * for the wire, the packed parts follow, each at an offset that grows with the lengths of the parts before
 * it. Stage 1 of all_reduce uses both again: the own slot for the sum, the parts for what it receives. */
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "comm/collective/comm_inside.h"

/* ---- parts ---- */

/* Rows [first, first + count) of the data, owned by a member. */
struct part {
    size_t first, count;
};

/* Returns a member's part. rows_of NULL: parts as equal as rows can be cut. */
static struct part part_of(const struct ph__group *group, size_t rows, const size_t *rows_of, size_t member)
{
    if (rows_of == NULL) {
        const size_t least = rows / group->size, more = rows % group->size;
        return (struct part){member * least + ph__min(member, more), least + (member < more)};
    }
    struct part part = {.count = rows_of[member]};
    for (size_t before = 0; before < member; before++)
        part.first += rows_of[before];
    return part;
}

static bool is_packed(const struct ph__reduction *reduction)
{
    return reduction->wire != PH_WIRE_FP32;
}

/* Returns the staging offset of a member's packed part that begins at first_row; every packed part is
 * aligned. */
static size_t packed_at(const struct ph__reduction *reduction, size_t member, size_t first_row)
{
    const size_t before = ph__wire_bytes(reduction->wire, first_row, reduction->columns);
    return reduction->group->size * reduction->slot_bytes + ph__round_up(before, PH_ALIGNMENT) +
           member * PH_ALIGNMENT;
}

static size_t part_bytes(const struct ph__reduction *reduction, size_t rows)
{
    return ph__wire_bytes(reduction->wire, rows, reduction->columns);
}

/* Returns the bytes of a contribution to the own part, aligned. */
static size_t slot_bytes(const struct ph__reduction *reduction)
{
    return ph__round_up(part_bytes(reduction, reduction->own_rows), PH_ALIGNMENT);
}

/* slot_bytes is set. */
static size_t staging_bytes(const struct ph__reduction *reduction)
{
    const size_t size = reduction->group->size;
    return is_packed(reduction) ? packed_at(reduction, size, reduction->rows) : size * reduction->slot_bytes;
}

static unsigned char *slot_of(const struct ph__operation *operation, size_t member)
{
    return operation->reduction.staging + member * operation->reduction.slot_bytes;
}

/* ---- stage 0: parts to their owners ---- */

static ph_status receive_contributions(struct ph_comm *comm, struct ph__operation *operation)
{
    const struct ph__reduction *reduction = &operation->reduction;
    const struct ph__group *group = reduction->group;
    const size_t bytes = part_bytes(reduction, reduction->own_rows);
    for (size_t member = 0; bytes > 0 && member < group->size; member++)
        if (member != group->own)
            PH_TRY(ph__operation_receive(
                comm, operation, group->ranks[member], slot_of(operation, member), bytes));
    return PH_OK;
}

static bool is_simulated(
    const struct ph_comm *comm, enum ph__wire_work work, const struct ph__reduction *reduction, size_t rows)
{
    if (ph__comm_is_simulated(comm))
        comm->simulation.work(comm->simulation.context, work, reduction->wire, rows, reduction->columns);
    return ph__comm_is_simulated(comm);
}

static void pack(const struct ph_comm *comm, const struct ph__reduction *reduction, size_t rows,
    const ph_real *numbers, void *bytes_out)
{
    if (!is_simulated(comm, PH_WIRE_PACKS, reduction, rows))
        ph__wire_pack(
            comm->kernels, reduction->wire, rows, reduction->columns, numbers, reduction->columns, bytes_out);
}

static void unpack(const struct ph_comm *comm, const struct ph__reduction *reduction, size_t rows,
    const void *bytes, ph_real *numbers_out)
{
    if (!is_simulated(comm, PH_WIRE_UNPACKS, reduction, rows))
        ph__wire_unpack(
            comm->kernels, reduction->wire, rows, reduction->columns, bytes, numbers_out, reduction->columns);
}

static void add(const struct ph_comm *comm, const struct ph__reduction *reduction, size_t rows,
    const void *bytes, ph_real *numbers)
{
    if (!is_simulated(comm, PH_WIRE_ADDS, reduction, rows))
        ph__wire_add(
            comm->kernels, reduction->wire, rows, reduction->columns, bytes, numbers, reduction->columns);
}

static ph_status send_contributions(
    struct ph_comm *comm, struct ph__operation *operation, const size_t *rows_of, const ph_real *data)
{
    const struct ph__reduction *reduction = &operation->reduction;
    const struct ph__group *group = reduction->group;
    for (size_t k = 0; k < group->size; k++) {
        const size_t member = (group->own + k) % group->size;
        const struct part part = part_of(group, reduction->rows, rows_of, member);
        const ph_real *numbers = data + part.first * reduction->columns;
        const void *bytes = numbers;
        if (member == group->own) {
            pack(comm, reduction, part.count, numbers, slot_of(operation, member));
            continue;
        }
        if (part_bytes(reduction, part.count) == 0)
            continue;
        if (is_packed(reduction)) {
            unsigned char *packed = reduction->staging + packed_at(reduction, member, part.first);
            pack(comm, reduction, part.count, numbers, packed);
            bytes = packed;
        }
        PH_TRY(ph__operation_send(
            comm, operation, group->ranks[member], bytes, part_bytes(reduction, part.count)));
    }
    return PH_OK;
}

static void add_contributions(struct ph_comm *comm, struct ph__operation *operation)
{
    const struct ph__reduction *reduction = &operation->reduction;
    const size_t rows = reduction->own_rows;
    unpack(comm, reduction, rows, slot_of(operation, 0), reduction->sum);
    for (size_t member = 1; member < reduction->group->size; member++)
        add(comm, reduction, rows, slot_of(operation, member), reduction->sum);
}

/* ---- stage 1 of all_reduce: sums to all members ---- */

static ph_status unpack_sums(struct ph_comm *comm, struct ph__operation *operation)
{
    const struct ph__reduction *reduction = &operation->reduction;
    const struct ph__group *group = reduction->group;
    for (size_t member = 0; is_packed(reduction) && member < group->size; member++) {
        const struct part part = part_of(group, reduction->rows, NULL, member);
        const unsigned char *bytes = member == group->own
                                         ? slot_of(operation, member)
                                         : reduction->staging + packed_at(reduction, member, part.first);
        unpack(comm, reduction, part.count, bytes, reduction->data + part.first * reduction->columns);
    }
    operation->advance = NULL;
    return PH_OK;
}

static ph_status receive_sums(struct ph_comm *comm, struct ph__operation *operation)
{
    const struct ph__reduction *reduction = &operation->reduction;
    const struct ph__group *group = reduction->group;
    for (size_t member = 0; member < group->size; member++) {
        const struct part part = part_of(group, reduction->rows, NULL, member);
        const size_t bytes = part_bytes(reduction, part.count);
        void *to = is_packed(reduction)
                       ? (void *)(reduction->staging + packed_at(reduction, member, part.first))
                       : (void *)(reduction->data + part.first * reduction->columns);
        if (member != group->own && bytes > 0)
            PH_TRY(ph__operation_receive(comm, operation, group->ranks[member], to, bytes));
    }
    return PH_OK;
}

static ph_status gather_sums(struct ph_comm *comm, struct ph__operation *operation)
{
    const struct ph__reduction *reduction = &operation->reduction;
    const struct ph__group *group = reduction->group;
    const size_t bytes = part_bytes(reduction, reduction->own_rows);
    const void *sum = reduction->sum;
    add_contributions(comm, operation);
    if (is_packed(reduction)) {
        pack(comm, reduction, reduction->own_rows, reduction->sum, slot_of(operation, group->own));
        sum = slot_of(operation, group->own);
    }
    operation->advance = unpack_sums;
    PH_TRY(receive_sums(comm, operation));
    for (size_t k = 1; bytes > 0 && k < group->size; k++)
        PH_TRY(ph__operation_send(comm, operation, group->ranks[(group->own + k) % group->size], sum, bytes));
    return PH_OK;
}

/* ---- starts ---- */

static ph_status end_with_sum(struct ph_comm *comm, struct ph__operation *operation)
{
    add_contributions(comm, operation);
    operation->advance = NULL;
    return PH_OK;
}

/* Counts the requests of either stage: one message to and from each other member, of a part of at most
 * most_rows rows. */
static size_t count_requests(
    const struct ph_comm *comm, const struct ph__reduction *reduction, size_t most_rows)
{
    const size_t num_cuts = ph__operation_num_cuts(comm, part_bytes(reduction, most_rows));
    return 2 * (reduction->group->size - 1) * num_cuts;
}

static ph_status start(struct ph_comm *comm, const struct ph__comm_call *call,
    struct ph__reduction *reduction, const size_t *rows_of, const ph_real *data, uint64_t *ticket_out)
{
    const struct ph__group *group = reduction->group;
    struct ph__operation *operation;
    size_t most_rows = 0;
    for (size_t member = 0; member < group->size; member++)
        most_rows = ph__max(most_rows, part_of(group, reduction->rows, rows_of, member).count);
    reduction->slot_bytes = slot_bytes(reduction);
    PH_TRY(ph__operation_take(comm, call, count_requests(comm, reduction, most_rows), 0, &operation));
    if (reduction->staging == NULL) {
        PH_TRY(ph__operation_reserve(comm, operation, staging_bytes(reduction), true));
        reduction->staging = operation->staging;
    }
    operation->reduction = *reduction;
    operation->advance = reduction->data != NULL ? gather_sums : end_with_sum;
    PH_TRY(receive_contributions(comm, operation));
    PH_TRY(send_contributions(comm, operation, rows_of, data));
    return ph__operation_launch(comm, operation, ticket_out);
}

/* Returns a sum over all members. Treats each number as a row, unless a row has a scale of its own (int8):
 * parts may then be cut anywhere. */
static struct ph__reduction sum_of_all(
    const struct ph__group *group, enum ph_wire_format wire, size_t rows, size_t columns)
{
    struct ph__reduction reduction = {.group = group, .wire = wire, .rows = rows, .columns = columns};
    if (wire != PH_WIRE_INT8) {
        reduction.rows = rows * columns;
        reduction.columns = 1;
    }
    reduction.own_rows = part_of(group, reduction.rows, NULL, group->own).count;
    return reduction;
}

size_t ph__comm_staging_bytes(
    const struct ph__group *group, enum ph_wire_format wire, size_t rows, size_t columns)
{
    struct ph__reduction reduction = sum_of_all(group, wire, rows, columns);
    reduction.slot_bytes = slot_bytes(&reduction);
    return staging_bytes(&reduction);
}

ph_status ph__comm_all_reduce_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, enum ph_wire_format wire, size_t rows, size_t columns, ph_real *data,
    void *staging, uint64_t *ticket_out)
{
    struct ph__reduction reduction = sum_of_all(group, wire, rows, columns);
    reduction.data = data;
    reduction.sum = data + part_of(group, reduction.rows, NULL, group->own).first * reduction.columns;
    reduction.staging = staging;
    return start(comm, call, &reduction, NULL, data, ticket_out);
}

ph_status ph__comm_reduce_scatter_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, enum ph_wire_format wire, const size_t *rows_of, size_t columns,
    const ph_real *data, ph_real *sum_out, uint64_t *ticket_out)
{
    struct ph__reduction reduction = {.group = group, .wire = wire, .columns = columns, .sum = sum_out};
    for (size_t member = 0; member < group->size; member++)
        reduction.rows += rows_of[member];
    reduction.own_rows = rows_of[group->own];
    return start(comm, call, &reduction, rows_of, data, ticket_out);
}
