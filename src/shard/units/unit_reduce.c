#include "base/memory/absent.h"
#include "base/memory/memory.h"
#include "base/sizes.h"
#include "shard/exchange_nodes.h"
#include "shard/units/units.h"

/* Outputs of start; inputs of wait begin with them. */
enum { TICKET, RECEIVED, PACKED, NUM_BETWEEN };

static bool is_packed(const struct ph__unit *unit)
{
    return unit->gradient_wire != PH_WIRE_FP32;
}

static size_t wire_bytes(const struct ph__unit *unit, size_t count)
{
    return ph__wire_bytes(unit->gradient_wire, 1, count);
}

static struct ph__unit_piece piece_of(const struct ph__unit_attributes *attributes, size_t i, size_t member)
{
    return ph__unit_piece(attributes->unit, attributes->parameters[i], member);
}

/* Counts the numbers of a member's shards. */
static size_t count_numbers(const struct ph__unit_attributes *attributes, size_t member)
{
    size_t count = 0;
    for (size_t i = 0; i < attributes->count; i++)
        count += piece_of(attributes, i, member).count;
    return count;
}

/* Returns true where the communicator adds, false where members exchange contributions. */
static bool is_added_between(const struct ph__unit_attributes *attributes)
{
    const struct ph__unit *unit = attributes->unit;
    const size_t bytes = wire_bytes(unit, ph__unit_numbers_before(attributes, attributes->count));
    return !ph__comm_always_exchanges(unit->sharding->comm, ph__unit_group(unit), bytes);
}

/* ---- start ---- */

static void infer_addition(const struct ph__unit_attributes *attributes, struct ph_type *outputs)
{
    const struct ph__unit *unit = attributes->unit;
    const struct ph__group *group = ph__unit_group(unit);
    struct ph__array arrays[PH_UNIT_MOST_PARAMETERS];
    for (size_t i = 0; i < attributes->count; i++)
        arrays[i] = ph__unit_array(attributes, i, PH_WIRE_FP32, NULL);
    outputs[RECEIVED] = ph__unit_bytes_type(ph__comm_array_staging_bytes(
        unit->sharding->comm, group, unit->gradient_wire, attributes->count, arrays));
    outputs[PACKED] = ph__unit_bytes_type(count_numbers(attributes, group->own) * sizeof(ph_real));
}

static ph_status start_infer(struct ph__infer *infer)
{
    const struct ph__unit_attributes *attributes = infer->attributes;
    const struct ph__unit *unit = attributes->unit;
    const struct ph__group *group = ph__unit_group(unit);
    if (is_added_between(attributes)) {
        infer->outputs[TICKET] = ph__scalar_type();
        infer_addition(attributes, infer->outputs);
        return PH_OK;
    }
    const size_t slot = wire_bytes(unit, count_numbers(attributes, group->own));
    infer->outputs[TICKET] = ph__scalar_type();
    infer->outputs[RECEIVED] = ph__unit_bytes_type((group->size - 1) * slot);
    infer->outputs[PACKED] = ph__unit_bytes_type(
        is_packed(unit) ? wire_bytes(unit, ph__unit_numbers_before(attributes, attributes->count)) : 0);
    return PH_OK;
}

/* Returns room for one message of each parameter to, and one from, each member; or for the arrays. */
static size_t start_scratch_bytes(const struct ph__call *call)
{
    const struct ph__unit_attributes *attributes = ph__unit_of(call);
    return ph__max(sizeof(struct ph__array),
               2 * ph__unit_group(attributes->unit)->size * sizeof(struct ph__message)) *
           attributes->count;
}

/* Returns a gradient's packed numbers, which lie behind those of the gradients before it. */
static char *packed_at(
    const struct ph__unit_attributes *attributes, const struct ph__operand *packed, size_t i)
{
    return (char *)packed->data + wire_bytes(attributes->unit, ph__unit_numbers_before(attributes, i));
}

static void pack(const struct ph__call *call)
{
    const struct ph__unit_attributes *attributes = ph__unit_of(call);
    for (size_t i = 0; i < attributes->count; i++)
        ph__pack_rows(call->backend, attributes->unit->gradient_wire, ph__elements(&call->inputs[i]), 1,
            call->inputs[i].data, packed_at(attributes, &call->outputs[PACKED], i));
}

/* Lists this rank's contributions to a member's shards. */
static size_t list_sends(
    const struct ph__call *call, size_t member, size_t rank, struct ph__message *messages)
{
    const struct ph__unit_attributes *attributes = ph__unit_of(call);
    size_t count = 0;
    for (size_t i = 0; i < attributes->count; i++) {
        const struct ph__unit_piece piece = piece_of(attributes, i, member);
        char *from = is_packed(attributes->unit) ? packed_at(attributes, &call->outputs[PACKED], i)
                                                 : call->inputs[i].data;
        if (piece.count > 0)
            messages[count++] = (struct ph__message){rank, from + wire_bytes(attributes->unit, piece.first),
                wire_bytes(attributes->unit, piece.count)};
    }
    return count;
}

/* Returns a member's contribution to the own shard of parameter i, and its bytes. The members but the own
 * have a slot each, in their order. */
static char *slot_of(
    const struct ph__unit_attributes *attributes, const struct ph__operand *received, size_t i, size_t member)
{
    const struct ph__group *group = ph__unit_group(attributes->unit);
    const size_t slot = member - (member > group->own);
    size_t before = slot * count_numbers(attributes, group->own);
    for (size_t k = 0; k < i; k++)
        before += piece_of(attributes, k, group->own).count;
    return (char *)received->data + wire_bytes(attributes->unit, before);
}

static size_t list_receives(
    const struct ph__call *call, size_t member, size_t rank, struct ph__message *messages)
{
    const struct ph__unit_attributes *attributes = ph__unit_of(call);
    const struct ph__group *group = ph__unit_group(attributes->unit);
    size_t count = 0;
    for (size_t i = 0; i < attributes->count; i++) {
        const size_t bytes = wire_bytes(attributes->unit, piece_of(attributes, i, group->own).count);
        if (bytes > 0)
            messages[count++] =
                (struct ph__message){rank, slot_of(attributes, &call->outputs[RECEIVED], i, member), bytes};
    }
    return count;
}

static ph_status start_addition(const struct ph__call *call, const struct ph__comm_call *named)
{
    const struct ph__unit_attributes *attributes = ph__unit_of(call);
    const struct ph__unit *unit = attributes->unit;
    struct ph__array *arrays = call->scratch;
    uint64_t ticket;
    for (size_t i = 0; i < attributes->count; i++)
        arrays[i] = ph__unit_array(attributes, i, PH_WIRE_FP32, call->inputs[i].data);
    PH_TRY(
        ph__comm_reduce_arrays_start(unit->sharding->comm, named, ph__unit_group(unit), unit->gradient_wire,
            attributes->count, arrays, call->outputs[RECEIVED].data, call->outputs[PACKED].data, &ticket));
    *call->outputs[TICKET].scalar = (double)ticket;
    return PH_OK;
}

static ph_status start_run(struct ph__call *call)
{
    const struct ph__unit_attributes *attributes = ph__unit_of(call);
    const struct ph__group *group = ph__unit_group(attributes->unit);
    const struct ph__comm_call named = {attributes->channel, "gradients of sharded parameters"};
    if (is_added_between(attributes))
        return start_addition(call, &named);
    struct ph__message *receives = call->scratch, *sends;
    struct ph__exchange list = {.receives = receives};
    if (is_packed(attributes->unit))
        pack(call);
    for (size_t member = 0; member < group->size; member++)
        if (member != group->own)
            list.num_receives +=
                list_receives(call, member, group->ranks[member], receives + list.num_receives);
    list.sends = sends = receives + list.num_receives;
    for (size_t k = 1; k < group->size; k++) {
        const size_t member = (group->own + k) % group->size;
        list.num_sends += list_sends(call, member, group->ranks[member], sends + list.num_sends);
    }
    return ph__start_node_run(attributes->unit->sharding, &named, &list, &call->outputs[TICKET]);
}

const struct ph__op ph__op_reduce_unit_start = {
    .name = "reduce_unit_start",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_SENDS,
    .infer = start_infer,
    .cost = ph__sent_cost,
    .scratch_bytes = start_scratch_bytes,
    .run = start_run,
};

/* ---- wait ---- */

static ph_status wait_infer(struct ph__infer *infer)
{
    const struct ph__unit_attributes *attributes = infer->attributes;
    for (size_t i = 0; i < attributes->count; i++) {
        const ph_value shard = attributes->unit->shards[attributes->parameters[i]];
        infer->outputs[i] = infer->builder->graph.values[shard].type;
    }
    return PH_OK;
}

/* Counts each contribution as read, the sum as written, and an addition for each contribution but one. */
static void wait_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct ph__unit_attributes *attributes = ph__unit_of(call);
    const struct ph__group *group = ph__unit_group(attributes->unit);
    const size_t own = count_numbers(attributes, group->own);
    cost_out->flops = (double)(group->size - 1) * (double)own;
    cost_out->bytes =
        (double)group->size * (double)wire_bytes(attributes->unit, own) + (double)(own * sizeof(ph_real));
}

struct addition {
    const struct ph__call *call;
    size_t i; /* of the parameter */
};

/* Returns a member's contribution, the own one too. */
static const char *contribution(const struct addition *addition, size_t member)
{
    const struct ph__call *call = addition->call;
    const struct ph__unit_attributes *attributes = ph__unit_of(call);
    const struct ph__unit *unit = attributes->unit;
    if (member != ph__unit_group(unit)->own)
        return slot_of(attributes, &call->inputs[RECEIVED], addition->i, member);
    const char *own = is_packed(unit) ? packed_at(attributes, &call->inputs[PACKED], addition->i)
                                      : call->inputs[NUM_BETWEEN + addition->i].data;
    return own + wire_bytes(unit, piece_of(attributes, addition->i, member).first);
}

/* sum = contribution of member 0 + contribution of member 1 + ... */
static void add_block(void *argument, size_t first, size_t last, size_t worker)
{
    const struct addition *addition = argument;
    const struct ph__unit *unit = ph__unit_of(addition->call)->unit;
    const struct ph__kernels *kernels = addition->call->backend->kernels;
    ph_real *sum = (ph_real *)addition->call->outputs[addition->i].data + first;
    (void)worker;
    for (size_t member = 0; member < ph__unit_group(unit)->size; member++) {
        const char *numbers = contribution(addition, member) + wire_bytes(unit, first);
        if (member == 0)
            ph__wire_unpack(kernels, unit->gradient_wire, 1, last - first, numbers, sum, last - first);
        else
            ph__wire_add(kernels, unit->gradient_wire, 1, last - first, numbers, sum, last - first);
    }
}

static void take_sums(const struct ph__call *call)
{
    const struct ph__unit_attributes *attributes = ph__unit_of(call);
    const ph_real *next = call->inputs[PACKED].data;
    for (size_t i = 0; i < attributes->count; i++) {
        const size_t count = piece_of(attributes, i, ph__unit_group(attributes->unit)->own).count;
        ph__numbers_move(call->outputs[i].data, next, count * sizeof *next);
        next += count;
    }
}

static ph_status wait_run(struct ph__call *call)
{
    const struct ph__unit_attributes *attributes = ph__unit_of(call);
    PH_TRY(ph__comm_wait(attributes->unit->sharding->comm, (uint64_t)*call->inputs[TICKET].scalar));
    if (is_added_between(attributes)) {
        take_sums(call);
        return PH_OK;
    }
    for (size_t i = 0; i < attributes->count; i++) {
        struct addition addition = {call, i};
        ph__for_blocks(
            call->backend, ph__elements(&call->outputs[i]), PH_BLOCK_ELEMENTS, add_block, &addition);
    }
    return PH_OK;
}

const struct ph__op ph__op_reduce_unit_wait = {
    .name = "reduce_unit_wait",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_AWAITS,
    .infer = wait_infer,
    .cost = wait_cost,
    .run = wait_run,
};

void ph__unit_reduce(
    struct ph_builder *builder, const struct ph__unit_attributes *attributes, ph_value *gradients)
{
    ph_value inputs[PH_MAX_OPERANDS];
    for (size_t i = 0; i < attributes->count; i++)
        inputs[NUM_BETWEEN + i] = gradients[i];
    ph__emit(builder, &ph__op_reduce_unit_start, NULL, attributes, sizeof *attributes, attributes->count,
        gradients, NUM_BETWEEN, inputs);
    ph__emit(builder, &ph__op_reduce_unit_wait, NULL, attributes, sizeof *attributes,
        NUM_BETWEEN + attributes->count, inputs, attributes->count, gradients);
}
