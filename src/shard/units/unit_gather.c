#include "base/memory/absent.h"
#include "base/memory/memory.h"
#include "shard/exchange_nodes.h"
#include "shard/units/units.h"

static bool is_packed(const struct ph__unit *unit)
{
    return unit->wire != PH_WIRE_FP32;
}

/* ---- places ----
 *
 * A member gives the others the rows of its shards. */

/* Returns where the rows of parameter i belong, given what start has in flight: in the whole parameter or,
 * packed, behind all rows of earlier parameters. */
static char *place_of(const struct ph__call *call, const struct ph__operand *in_flight, size_t i)
{
    const struct ph__unit_attributes *attributes = ph__unit_of(call);
    const struct ph__unit *unit = attributes->unit;
    if (!is_packed(unit))
        return in_flight[i].data;
    return (char *)in_flight->data + ph__wire_bytes(unit->wire, 1, ph__unit_numbers_before(attributes, i));
}

static size_t start_scratch_bytes(const struct ph__call *call)
{
    return ph__unit_of(call)->count * sizeof(struct ph__array);
}

/* Puts the own rows where the others' will come; they are sent from there. */
static void place_own(const struct ph__call *call)
{
    const struct ph__unit_attributes *attributes = ph__unit_of(call);
    const struct ph__unit *unit = attributes->unit;
    const size_t own = ph__unit_group(unit)->own;
    for (size_t i = 0; i < attributes->count; i++) {
        const struct ph__unit_piece piece = ph__unit_piece(unit, attributes->parameters[i], own);
        void *place =
            place_of(call, &call->outputs[PH_GATHER_NUMBERS], i) + ph__wire_bytes(unit->wire, 1, piece.first);
        if (!is_packed(unit))
            ph__numbers_move(place, call->inputs[i].data, piece.count * sizeof(ph_real));
        else
            ph__pack_rows(call->backend, unit->wire, piece.count, 1, call->inputs[i].data, place);
    }
}

/* ---- start ---- */

static ph_status start_infer(struct ph__infer *infer)
{
    const struct ph__unit_attributes *attributes = infer->attributes;
    const struct ph__unit *unit = attributes->unit;
    infer->outputs[PH_GATHER_TICKET] = infer->outputs[PH_GATHER_STAMP] = ph__scalar_type();
    if (is_packed(unit)) {
        infer->outputs[PH_GATHER_NUMBERS] = ph__unit_bytes_type(
            ph__wire_bytes(unit->wire, 1, ph__unit_numbers_before(attributes, attributes->count)));
        return PH_OK;
    }
    for (size_t i = 0; i < attributes->count; i++)
        infer->outputs[PH_GATHER_NUMBERS + i] = unit->types[attributes->parameters[i]];
    return PH_OK;
}

static double sum_versions(const struct ph__operand *shards, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)*shards[i].version;
    return sum;
}

static ph_status gather(struct ph__call *call)
{
    const struct ph__unit_attributes *attributes = ph__unit_of(call);
    const struct ph__unit *unit = attributes->unit;
    const struct ph__comm_call named = {attributes->channel, "parameters of dense layers"};
    struct ph__array *arrays = call->scratch;
    uint64_t ticket;
    place_own(call);
    for (size_t i = 0; i < attributes->count; i++)
        arrays[i] =
            ph__unit_array(attributes, i, unit->wire, place_of(call, &call->outputs[PH_GATHER_NUMBERS], i));
    PH_TRY(ph__comm_gather_arrays_start(
        unit->sharding->comm, &named, ph__unit_group(unit), attributes->count, arrays, &ticket));
    *call->outputs[PH_GATHER_TICKET].scalar = (double)ticket;
    return PH_OK;
}

static ph_status start_run(struct ph__call *call)
{
    PH_TRY(gather(call));
    *call->outputs[PH_GATHER_STAMP].scalar = sum_versions(call->inputs, call->num_inputs);
    return PH_OK;
}

/* Ticket 0, which no exchange has, stands for one that has been waited for. */
static ph_status start_kept_run(struct ph__call *call)
{
    const bool is_current =
        *call->outputs[PH_GATHER_STAMP].scalar == sum_versions(call->inputs, call->num_inputs);
    *call->outputs[PH_GATHER_TICKET].scalar = 0;
    return is_current ? PH_OK : start_run(call);
}

#define START_TRAITS (PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_SENDS)

const struct ph__op ph__op_gather_unit_start = {
    .name = "gather_unit_start",
    .traits = START_TRAITS,
    .infer = start_infer,
    .cost = ph__sent_cost,
    .scratch_bytes = start_scratch_bytes,
    .run = start_run,
};

const struct ph__op ph__op_gather_unit_start_kept = {
    .name = "gather_unit_start_kept",
    .traits = START_TRAITS | PH_OP_KEEPS_OUTPUTS,
    .infer = start_infer,
    .cost = ph__sent_cost,
    .scratch_bytes = start_scratch_bytes,
    .run = start_kept_run,
};

/* ---- wait ---- */

static ph_status wait_infer(struct ph__infer *infer)
{
    const struct ph__unit_attributes *attributes = infer->attributes;
    for (size_t i = 0; i < attributes->count; i++)
        infer->outputs[i] = attributes->unit->types[attributes->parameters[i]];
    return PH_OK;
}

static void wait_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    const struct ph__unit_attributes *attributes = ph__unit_of(call);
    const size_t count =
        is_packed(attributes->unit) ? ph__unit_numbers_before(attributes, attributes->count) : 0;
    cost_out->bytes = (double)(ph__wire_bytes(attributes->unit->wire, 1, count) + count * sizeof(ph_real));
}

static void unpack(const struct ph__call *call)
{
    const struct ph__unit_attributes *attributes = ph__unit_of(call);
    for (size_t i = 0; i < attributes->count; i++)
        ph__unpack_rows(call->backend, attributes->unit->wire, ph__elements(&call->outputs[i]), 1,
            place_of(call, &call->inputs[PH_GATHER_NUMBERS], i), call->outputs[i].data);
}

static ph_status wait_run(struct ph__call *call)
{
    const struct ph__unit_attributes *attributes = ph__unit_of(call);
    const struct ph__unit *unit = attributes->unit;
    const struct ph__operand *shards = &call->inputs[call->num_inputs - attributes->count];
    PH_TRY(ph__comm_wait(unit->sharding->comm, (uint64_t)*call->inputs[PH_GATHER_TICKET].scalar));
    if (*call->inputs[PH_GATHER_STAMP].scalar != sum_versions(shards, attributes->count))
        return ph_fail(
            PH_ERROR_BUG, "unit '%s' was updated after its parameters had been gathered", unit->plan->name);
    if (is_packed(unit))
        unpack(call);
    return PH_OK;
}

const struct ph__op ph__op_gather_unit_wait = {
    .name = "gather_unit_wait",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_AWAITS,
    .infer = wait_infer,
    .cost = wait_cost,
    .run = wait_run,
};

/* ---- both ---- */

/* Lets wait's outputs be the memory that start has in flight. */
static void share_memory(
    struct ph_builder *builder, size_t count, const ph_value *in_flight, const ph_value *wholes)
{
    for (size_t i = 0; i < count && ph_builder_status(builder) == PH_OK; i++)
        builder->graph.values[wholes[i]].alias_of = in_flight[i];
}

void ph__unit_gather(struct ph_builder *builder, const struct ph__unit_attributes *attributes, bool is_kept,
    ph_value *wholes_out)
{
    const struct ph__op *start = is_kept ? &ph__op_gather_unit_start_kept : &ph__op_gather_unit_start;
    const size_t count = attributes->count;
    const size_t num_started = PH_GATHER_NUMBERS + (is_packed(attributes->unit) ? 1 : count);
    ph_value shards[PH_UNIT_MOST_PARAMETERS], inputs[PH_MAX_OPERANDS];
    for (size_t i = 0; i < count; i++)
        shards[i] = attributes->unit->shards[attributes->parameters[i]];
    ph__emit(builder, start, NULL, attributes, sizeof *attributes, count, shards, num_started, inputs);
    for (size_t i = 0; i < count; i++)
        inputs[num_started + i] = shards[i];
    ph__emit(builder, &ph__op_gather_unit_wait, NULL, attributes, sizeof *attributes, num_started + count,
        inputs, count, wholes_out);
    if (!is_packed(attributes->unit))
        share_memory(builder, count, inputs + PH_GATHER_NUMBERS, wholes_out);
}
