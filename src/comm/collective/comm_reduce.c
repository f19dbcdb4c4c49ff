/* Sums, each of the numbers that a member owns; all_reduce then gathers them. Formulas: comm_collectives.h.
 *
 * Where members exchange, each sends the others what they own, and adds up what it owns itself. hierarchical
 * does so twice: among an inner group, whose members own the parts of their outer groups, and then with these
 * sums among an outer group.
 *
 * Staging memory:
 *
 *   slots    each inner, then each outer member's contribution; a ring's: the sum that comes
 *   sums     (hierarchical) the inner group's sums; a ring's: the sum that is sent on
 *   packed   where numbers are packed for the wire: what is sent and, of all_reduce, the parts of all members
 *
 * Contributions have no gaps but between slots. */
#include <string.h>

#include "base/memory/absent.h"
#include "base/memory/memory.h"
#include "base/sizes.h"
#include "comm/collective/comm_inside.h"

static bool is_packed(const struct ph__reduction *reduction)
{
    return reduction->parts.wire != PH_WIRE_FP32;
}

static bool is_hierarchical(const struct ph__reduction *reduction)
{
    return reduction->parts.outer.size > 1;
}

static ph_real *sums_of(const struct ph__reduction *reduction)
{
    return (ph_real *)(reduction->staging + reduction->sums_at);
}

static unsigned char *packed_of(const struct ph__reduction *reduction)
{
    return reduction->staging + reduction->packed_at;
}

static ph_real *numbers_of(const struct ph__runs *runs)
{
    const struct ph__array *array = &runs->parts->arrays[runs->array];
    return (ph_real *)((unsigned char *)array->data + runs->row * array->row_bytes);
}

/* Returns the runs that an inner member owns together with its outer group. */
static struct ph__runs runs_of_inner(const struct ph__parts *parts, size_t member)
{
    return ph__runs_of(parts, member * parts->outer.size, parts->outer.size);
}

/* ---- arithmetic ---- */

static bool is_simulated(const struct ph_comm *comm, enum ph__wire_work work, const struct ph__runs *runs)
{
    if (ph__comm_is_simulated(comm))
        comm->simulation.work(
            comm->simulation.context, work, runs->parts->wire, runs->rows, ph__runs_columns(runs));
    return ph__comm_is_simulated(comm);
}

static void pack(
    const struct ph_comm *comm, const struct ph__runs *runs, const ph_real *numbers, void *bytes_out)
{
    const size_t columns = ph__runs_columns(runs);
    if (!is_simulated(comm, PH_WIRE_PACKS, runs))
        ph__wire_pack(comm->kernels, runs->parts->wire, runs->rows, columns, numbers, columns, bytes_out);
}

static void unpack(
    const struct ph_comm *comm, const struct ph__runs *runs, const void *bytes, ph_real *numbers_out)
{
    const size_t columns = ph__runs_columns(runs);
    if (!is_simulated(comm, PH_WIRE_UNPACKS, runs))
        ph__wire_unpack(comm->kernels, runs->parts->wire, runs->rows, columns, bytes, numbers_out, columns);
}

static void add(const struct ph_comm *comm, const struct ph__runs *runs, const void *bytes, ph_real *numbers)
{
    const size_t columns = ph__runs_columns(runs);
    if (!is_simulated(comm, PH_WIRE_ADDS, runs))
        ph__wire_add(comm->kernels, runs->parts->wire, runs->rows, columns, bytes, numbers, columns);
}

/* ---- among a group: parts to their owners ---- */

static ph_status receive_contributions(
    struct ph_comm *comm, struct ph__operation *operation, const struct ph__parts *parts)
{
    const struct ph__group *group = &parts->inner;
    for (size_t member = 0; member < group->size; member++) {
        unsigned char *to = operation->reduction.staging + member * parts->slot_bytes;
        struct ph__runs runs = runs_of_inner(parts, group->own);
        for (; member != group->own && ph__runs_next(&runs); to += runs.bytes)
            PH_TRY(ph__operation_receive(comm, operation, group->ranks[member], to, runs.bytes));
    }
    return PH_OK;
}

static void pack_own(
    const struct ph_comm *comm, const struct ph__operation *operation, const struct ph__parts *parts)
{
    const size_t own = parts->inner.own;
    struct ph__runs runs = runs_of_inner(parts, own);
    unsigned char *to = operation->reduction.staging + own * parts->slot_bytes;
    for (; ph__runs_next(&runs); to += runs.bytes)
        pack(comm, &runs, numbers_of(&runs), to);
}

static ph_status send_contributions(
    struct ph_comm *comm, struct ph__operation *operation, const struct ph__parts *parts)
{
    const struct ph__group *group = &parts->inner;
    unsigned char *packed = packed_of(&operation->reduction);
    for (size_t k = 1; k < group->size; k++) {
        const size_t member = (group->own + k) % group->size;
        struct ph__runs runs = runs_of_inner(parts, member);
        while (ph__runs_next(&runs)) {
            const void *bytes = numbers_of(&runs);
            if (is_packed(&operation->reduction)) {
                pack(comm, &runs, bytes, packed);
                bytes = packed;
                packed += runs.bytes;
            }
            PH_TRY(ph__operation_send(comm, operation, group->ranks[member], bytes, runs.bytes));
        }
    }
    return PH_OK;
}

static ph_status exchange_contributions(
    struct ph_comm *comm, struct ph__operation *operation, const struct ph__parts *parts)
{
    PH_TRY(receive_contributions(comm, operation, parts));
    pack_own(comm, operation, parts);
    return send_contributions(comm, operation, parts);
}

static void add_contributions(const struct ph_comm *comm, const struct ph__operation *operation,
    const struct ph__parts *parts, ph_real *sum)
{
    for (size_t member = 0; member < parts->inner.size; member++) {
        const unsigned char *from = operation->reduction.staging + member * parts->slot_bytes;
        struct ph__runs runs = runs_of_inner(parts, parts->inner.own);
        ph_real *numbers = sum;
        while (ph__runs_next(&runs)) {
            if (member == 0)
                unpack(comm, &runs, from, numbers);
            else
                add(comm, &runs, from, numbers);
            from += runs.bytes;
            numbers += runs.rows * ph__runs_columns(&runs);
        }
    }
}

/* ---- all_reduce: sums to all members ---- */

static ph_status unpack_sums(struct ph_comm *comm, struct ph__operation *operation)
{
    const struct ph__parts *parts = &operation->reduction.parts;
    for (size_t position = 0; position < parts->size; position++) {
        struct ph__runs runs = ph__runs_of(parts, position, 1);
        const size_t bytes_before = ph__parts_bytes(parts, 0, position);
        if (ph__runs_next(&runs))
            unpack(comm, &runs, packed_of(&operation->reduction) + bytes_before, numbers_of(&runs));
    }
    operation->advance = NULL;
    return PH_OK;
}

/* Ends with the sum of the own part or, where it is for all, gathers those of all members. */
static ph_status finish(struct ph_comm *comm, struct ph__operation *operation)
{
    struct ph__reduction *reduction = &operation->reduction;
    const struct ph__parts *parts = &reduction->parts;
    struct ph__runs own = ph__runs_of(parts, parts->own, 1);
    operation->advance = NULL;
    if (!reduction->is_for_all)
        return PH_OK;
    operation->gathering = *parts;
    operation->gathering.wire = PH_WIRE_FP32;
    operation->advance_gathered = NULL;
    if (is_packed(reduction)) {
        if (ph__runs_next(&own))
            pack(comm, &own, reduction->sum, packed_of(reduction) + ph__parts_bytes(parts, 0, parts->own));
        operation->arrays[1] = (struct ph__array){
            packed_of(reduction), ph__wire_bytes(parts->wire, 1, ph__runs_columns(&own)), NULL};
        operation->gathering.arrays = operation->arrays + 1;
        operation->advance_gathered = unpack_sums;
    }
    return ph__gather_begin(comm, operation);
}

static ph_status end_outside(struct ph_comm *comm, struct ph__operation *operation)
{
    add_contributions(comm, operation, &operation->reduction.sums, operation->reduction.sum);
    return finish(comm, operation);
}

static ph_status end_inside(struct ph_comm *comm, struct ph__operation *operation)
{
    struct ph__reduction *reduction = &operation->reduction;
    if (!is_hierarchical(reduction)) {
        add_contributions(comm, operation, &reduction->parts, reduction->sum);
        return finish(comm, operation);
    }
    add_contributions(comm, operation, &reduction->parts, sums_of(reduction));
    operation->advance = end_outside;
    return exchange_contributions(comm, operation, &reduction->sums);
}

/* ---- around the ring ----
 *
 * A part begins behind its owner and comes to it last. In round k a rank sends the part of the member k + 1
 * before it, and gets that of the one before. */

/* Copies the own numbers of a part, without gaps, to where the sum is that is sent. */
static void take_own(const struct ph__reduction *reduction, size_t position)
{
    struct ph__runs runs = ph__runs_of(&reduction->parts, position, 1);
    for (ph_real *to = sums_of(reduction); ph__runs_next(&runs); to += runs.rows * ph__runs_columns(&runs))
        ph__numbers_move(to, numbers_of(&runs), runs.rows * ph__runs_columns(&runs) * sizeof *to);
}

static void add_own(const struct ph_comm *comm, const struct ph__reduction *reduction, size_t position)
{
    struct ph__runs runs = ph__runs_of(&reduction->parts, position, 1);
    const unsigned char *from = reduction->staging;
    take_own(reduction, position);
    for (ph_real *sum = sums_of(reduction); ph__runs_next(&runs); from += runs.bytes) {
        add(comm, &runs, from, sum);
        sum += runs.rows * ph__runs_columns(&runs);
    }
}

static ph_status pass_sum(struct ph_comm *comm, struct ph__operation *operation, size_t position)
{
    const struct ph__reduction *reduction = &operation->reduction;
    const struct ph__parts *parts = &reduction->parts;
    const size_t size = parts->size, before = (parts->own + size - 1) % size;
    const size_t to = parts->inner.ranks[(parts->own + 1) % size];
    struct ph__runs coming = ph__runs_of(parts, (position + size - 1) % size, 1);
    struct ph__runs going = ph__runs_of(parts, position, 1);
    unsigned char *slot = reduction->staging, *packed = packed_of(reduction);
    const ph_real *sum = sums_of(reduction);
    for (; ph__runs_next(&coming); slot += coming.bytes)
        PH_TRY(ph__operation_receive(comm, operation, parts->inner.ranks[before], slot, coming.bytes));
    for (; ph__runs_next(&going); sum += going.rows * ph__runs_columns(&going)) {
        if (is_packed(reduction))
            pack(comm, &going, sum, packed);
        PH_TRY(ph__operation_send(
            comm, operation, to, is_packed(reduction) ? (const void *)packed : sum, going.bytes));
        packed += going.bytes;
    }
    return PH_OK;
}

static ph_status advance_ring(struct ph_comm *comm, struct ph__operation *operation)
{
    const struct ph__reduction *reduction = &operation->reduction;
    const struct ph__parts *parts = &reduction->parts;
    const size_t round = ++operation->round,
                 position = (parts->own + 2 * parts->size - 1 - round) % parts->size;
    add_own(comm, reduction, position);
    if (round + 1 < parts->size)
        return pass_sum(comm, operation, position);
    const size_t numbers = ph__parts_numbers(parts, position, 1);
    ph__numbers_move(reduction->sum, sums_of(reduction), numbers * sizeof(ph_real));
    return finish(comm, operation);
}

static ph_status begin_ring(struct ph_comm *comm, struct ph__operation *operation)
{
    const struct ph__parts *parts = &operation->reduction.parts;
    const size_t position = (parts->own + parts->size - 1) % parts->size;
    operation->round = 0;
    operation->advance = advance_ring;
    take_own(&operation->reduction, position);
    return pass_sum(comm, operation, position);
}

/* ---- starts ---- */

enum { MORE_ARRAYS = 2 }; /* of packed sums, and of the inner group's sums */

/* Returns the bytes of one position, at most, and of its numbers. */
static size_t largest_part(const struct ph__parts *parts, size_t *numbers_out)
{
    size_t bytes = 0;
    *numbers_out = 0;
    for (size_t position = 0; position < parts->size; position++) {
        bytes = ph__max(bytes, ph__parts_bytes(parts, position, 1));
        *numbers_out = ph__max(*numbers_out, ph__parts_numbers(parts, position, 1));
    }
    return bytes;
}

/* Lays out the staging memory, and returns how many bytes that is. */
static size_t lay_out(struct ph__reduction *reduction)
{
    struct ph__parts *parts = &reduction->parts;
    const size_t first = parts->inner.own * parts->outer.size;
    const size_t inner = ph__round_up(ph__parts_bytes(parts, first, parts->outer.size), PH_ALIGNMENT);
    const size_t outer = ph__round_up(ph__parts_bytes(parts, parts->own, 1), PH_ALIGNMENT);
    size_t slots = ph__max(parts->inner.size * inner, parts->outer.size * outer), numbers = 0;
    size_t packed = is_packed(reduction) ? ph__parts_bytes(parts, 0, parts->size) : 0;
    if (parts->is_ring) {
        slots = ph__round_up(largest_part(parts, &numbers), PH_ALIGNMENT);
        packed = reduction->is_for_all ? packed : ph__min(packed, slots);
    } else if (is_hierarchical(reduction)) {
        numbers = ph__parts_numbers(parts, first, parts->outer.size);
    }
    parts->slot_bytes = inner;
    reduction->sums.slot_bytes = outer;
    reduction->sums_at = slots;
    reduction->packed_at = slots + ph__round_up(numbers * sizeof(ph_real), PH_ALIGNMENT);
    return reduction->packed_at + ph__round_up(packed, PH_ALIGNMENT);
}

/* Makes the parts of the inner group's sums: a row of them is one of the first array's in int8, which has a
 * scale for each, and else a number. */
static void divide_sums(struct ph__reduction *reduction, struct ph__array *array, size_t *bounds)
{
    const struct ph__parts *parts = &reduction->parts;
    const struct ph__group *outer = &parts->outer;
    const size_t columns = parts->wire == PH_WIRE_INT8 ? parts->arrays->row_bytes / sizeof(ph_real) : 1;
    const size_t first = parts->inner.own * outer->size;
    for (size_t member = 0; member <= outer->size; member++)
        bounds[member] = columns > 0 ? ph__parts_numbers(parts, first, member) / columns : 0;
    *array = (struct ph__array){sums_of(reduction), columns * sizeof(ph_real), bounds};
    reduction->sums = (struct ph__parts){.inner = *outer,
        .outer = {1, 0, outer->ranks + outer->own},
        .size = outer->size,
        .own = outer->own,
        .wire = parts->wire,
        .num_arrays = 1,
        .arrays = array,
        .slot_bytes = reduction->sums.slot_bytes};
}

/* Returns how many requests a stage has, at most. */
static size_t count_requests(const struct ph_comm *comm, const struct ph__reduction *reduction)
{
    const struct ph__parts *parts = &reduction->parts, *sums = &reduction->sums;
    if (parts->is_ring)
        return ph__parts_ring_requests(comm->cut_bytes, parts);
    const size_t inside =
        ph__parts_round_requests(comm->cut_bytes, parts, &parts->inner, 0, parts->outer.size);
    return is_hierarchical(reduction)
               ? ph__max(inside, ph__parts_round_requests(comm->cut_bytes, sums, &sums->inner, 0, 1))
               : inside;
}

/* Starts the reduction of a taken operation, whose arrays have room for MORE_ARRAYS, and whose bounds for
 * those of the outer group from `bounds` on. */
static ph_status start(
    struct ph_comm *comm, struct ph__operation *operation, size_t *bounds, uint64_t *ticket_out)
{
    struct ph__reduction *reduction = &operation->reduction;
    const size_t staging_bytes = lay_out(reduction);
    if (reduction->staging == NULL) {
        PH_TRY(ph__operation_reserve(comm, operation, staging_bytes, true));
        reduction->staging = operation->staging;
    }
    if (is_hierarchical(reduction))
        divide_sums(reduction, operation->arrays + reduction->parts.num_arrays + 1, bounds);
    size_t num_requests = count_requests(comm, reduction);
    if (reduction->is_for_all)
        num_requests = ph__max(num_requests, ph__gather_requests(comm, &reduction->parts));
    PH_TRY(ph__operation_reserve_requests(comm, operation, num_requests));
    if (reduction->parts.is_ring) {
        PH_TRY(begin_ring(comm, operation));
    } else {
        operation->advance = end_inside;
        PH_TRY(exchange_contributions(comm, operation, &reduction->parts));
    }
    return ph__operation_launch(comm, operation, ticket_out);
}

/* Makes the parts of a sum for all. Treats each number as a row, unless a row has a scale of its own (int8):
 * parts may then be cut anywhere. */
static struct ph__reduction reduce_for_all(const struct ph__comm_choices *choices,
    const struct ph__group *group, enum ph_wire_format wire, size_t rows, size_t columns,
    struct ph__array *array)
{
    struct ph__reduction reduction = {
        .parts = {.wire = wire, .rows = rows, .num_arrays = 1, .arrays = array}, .is_for_all = true};
    array->row_bytes = columns * sizeof(ph_real);
    if (wire != PH_WIRE_INT8) {
        reduction.parts.rows = rows * columns;
        array->row_bytes = sizeof(ph_real);
    }
    ph__parts_divide(choices, group, false, ph__wire_bytes(wire, rows, columns), &reduction.parts);
    return reduction;
}

size_t ph__comm_staging_bytes(const struct ph_comm *comm, const struct ph__group *group,
    enum ph_wire_format wire, size_t rows, size_t columns)
{
    struct ph__array array = {0};
    size_t bytes = 0;
    for (enum ph_collective kind = 0; kind < PH_COLLECTIVE_AUTO; kind++) {
        const struct ph__comm_choices choices = ph__choices_to_come(&comm->choices, kind);
        struct ph__reduction reduction = reduce_for_all(&choices, group, wire, rows, columns, &array);
        bytes = ph__max(bytes, lay_out(&reduction));
    }
    return bytes;
}

ph_status ph__comm_all_reduce_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, enum ph_wire_format wire, size_t rows, size_t columns, ph_real *data,
    void *staging, uint64_t *ticket_out)
{
    struct ph__operation *operation;
    PH_TRY(ph__operation_take(comm, call, 0, 0, &operation));
    PH_TRY(ph__operation_reserve_parts(comm, operation, 1 + MORE_ARRAYS, comm->choices.outer.size + 1));
    operation->arrays[0] = (struct ph__array){.data = data};
    operation->reduction = reduce_for_all(&comm->choices, group, wire, rows, columns, operation->arrays);
    operation->sum_bytes = group->size == comm->places.world.size ? ph__wire_bytes(wire, rows, columns) : 0;
    operation->reduction.staging = staging;
    struct ph__runs own = ph__runs_of(&operation->reduction.parts, operation->reduction.parts.own, 1);
    operation->reduction.sum = ph__runs_next(&own) ? numbers_of(&own) : data;
    return start(comm, operation, operation->bounds, ticket_out);
}

/* Makes the parts of the sums of arrays' rows, which each member has its own of. */
static struct ph__reduction reduce_arrays(const struct ph__comm_choices *choices,
    const struct ph__group *group, enum ph_wire_format wire, size_t num_arrays,
    const struct ph__array *arrays)
{
    struct ph__reduction reduction = {.parts = {.wire = wire, .num_arrays = num_arrays, .arrays = arrays}};
    uint64_t bytes = 0;
    for (size_t i = 0; i < num_arrays; i++)
        bytes += ph__wire_bytes(wire, arrays[i].bounds[group->size], arrays[i].row_bytes / sizeof(ph_real));
    ph__parts_divide(choices, group, true, bytes, &reduction.parts);
    return reduction;
}

size_t ph__comm_array_staging_bytes(const struct ph_comm *comm, const struct ph__group *group,
    enum ph_wire_format wire, size_t num_arrays, const struct ph__array *arrays)
{
    size_t bytes = 0;
    for (enum ph_collective kind = 0; kind < PH_COLLECTIVE_AUTO; kind++) {
        const struct ph__comm_choices choices = ph__choices_to_come(&comm->choices, kind);
        struct ph__reduction reduction = reduce_arrays(&choices, group, wire, num_arrays, arrays);
        bytes = ph__max(bytes, lay_out(&reduction));
    }
    return bytes;
}

ph_status ph__comm_reduce_arrays_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, enum ph_wire_format wire, size_t num_arrays,
    const struct ph__array *arrays, void *staging, ph_real *sum_out, uint64_t *ticket_out)
{
    struct ph__operation *operation;
    PH_TRY(ph__operation_take(comm, call, 0, 0, &operation));
    PH_TRY(
        ph__operation_reserve_parts(comm, operation, num_arrays + MORE_ARRAYS, comm->choices.outer.size + 1));
    memcpy(operation->arrays, arrays, num_arrays * sizeof *arrays);
    operation->reduction = reduce_arrays(&comm->choices, group, wire, num_arrays, operation->arrays);
    operation->reduction.staging = staging;
    operation->reduction.sum = sum_out;
    return start(comm, operation, operation->bounds, ticket_out);
}

ph_status ph__comm_reduce_scatter_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, enum ph_wire_format wire, const size_t *rows_of, size_t columns,
    const ph_real *data, ph_real *sum_out, uint64_t *ticket_out)
{
    struct ph__operation *operation;
    PH_TRY(ph__operation_take(comm, call, 0, 0, &operation));
    PH_TRY(ph__operation_reserve_parts(
        comm, operation, 1 + MORE_ARRAYS, group->size + 1 + comm->choices.outer.size + 1));
    size_t *bounds = operation->bounds;
    bounds[0] = 0;
    for (size_t member = 0; member < group->size; member++)
        bounds[member + 1] = bounds[member] + rows_of[member];
    operation->arrays[0] = (struct ph__array){(ph_real *)(uintptr_t)data, columns * sizeof *data, bounds};
    operation->reduction = reduce_arrays(&comm->choices, group, wire, 1, operation->arrays);
    operation->reduction.sum = sum_out;
    return start(comm, operation, bounds + group->size + 1, ticket_out);
}
