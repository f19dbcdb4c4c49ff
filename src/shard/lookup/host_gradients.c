/* The way back of host_sums.c: the gradient of a sum is the gradient of each of its partials, so a gradient
 * that came once from another host goes to all owners on this one. */
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "shard/exchange_nodes.h"
#include "shard/lookup/block_rows.h"
#include "shard/lookup/host_sums.h"

enum { BLOCK_SAMPLES = 64 };

/* ---- start: gradients of the sums ---- */

static ph_status start_infer(struct ph__infer *infer)
{
    const struct ph__host_sums *sums = ((const struct ph__host_attributes *)infer->attributes)->sums;
    const struct ph_dim samples = ph__dim_of(1, PH_SYMBOL_GLOBAL_BATCH);
    infer->outputs[PH_BACK_SENT] = ph__dense_type(1, &samples);
    infer->outputs[PH_BACK_TICKET] = ph__scalar_type();
    infer->outputs[PH_BACK_RECEIVED] = ph__dense_type(1, &samples);
    for (size_t i = 0; i < sums->own_count; i++) {
        const struct ph__host_partial *partial = &sums->partials[sums->own_first + i];
        const struct ph_dim dims[] = {
            samples, ph__dim(partial->count), ph__dim(sums->blocks[partial->block].width)};
        infer->outputs[PH_BACK_GRADIENTS + i] = ph__dense_type(3, dims);
    }
    return PH_OK;
}

static ph_status start_output_bytes(const struct ph__call *call, size_t output, size_t *bytes_out)
{
    const enum ph_wire_format wire = ph__host_sharding(call)->backward;
    if (output == PH_BACK_SENT)
        *bytes_out = ph__host_most_bytes(call, ph__host_sums_of(call), wire);
    else if (output == PH_BACK_RECEIVED)
        *bytes_out = ph__host_own_most_bytes(call, ph__host_sums_of(call), wire);
    return PH_OK;
}

static void start_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    for (size_t i = 0; i < call->num_inputs; i++)
        cost_out->bytes += 2 * (double)ph__elements(&call->inputs[i]) * sizeof(ph_real);
}

/* Scratch: the numbers of the largest partial where they are packed in fewer bytes; messages. */
static size_t numbers_bytes(const struct ph__call *call)
{
    const size_t num_samples =
        ph__divide_up(call->extents[PH_SYMBOL_GLOBAL_BATCH], ph__host_sharding(call)->world_size);
    return ph__host_sharding(call)->backward == PH_WIRE_FP32
               ? 0
               : ph__size_align(
                     ph__host_partial_most_numbers(ph__host_sums_of(call), num_samples) * sizeof(ph_real));
}

static size_t start_scratch_bytes(const struct ph__call *call)
{
    const struct ph__host_sums *sums = ph__host_sums_of(call);
    const size_t num_messages = (sums->own_count + sums->num_partials) * ph__host_sharding(call)->world_size;
    return numbers_bytes(call) + num_messages * sizeof(struct ph__message);
}

/* The gradients of one partial's vectors, for one peer. */
struct cut {
    const struct ph__call *call;
    const struct ph__host_partial *partial;
    size_t first_sample; /* the peer's, among all peers' samples */
    ph_real *vectors;
};

static void cut_samples(void *argument, size_t first, size_t last, size_t worker)
{
    const struct cut *cut = argument;
    const struct ph__host_partial *partial = cut->partial;
    const struct ph__block *block = &ph__host_sums_of(cut->call)->blocks[partial->block];
    const ph_real *dy = (const ph_real *)cut->call->inputs[partial->block].data +
                        (cut->first_sample + first) * block->count * block->width;
    ph_real *vector = cut->vectors + first * partial->count * block->width;
    (void)worker;
    for (size_t b = first; b < last; b++, dy += block->count * block->width)
        for (size_t i = 0; i < partial->count; i++, vector += block->width)
            memcpy(vector, dy + partial->pieces[i] * block->width, block->width * sizeof *vector);
}

/* Cuts at `place` the gradient for a partial's owner, for one peer's samples. */
static struct ph__message cut_partial(
    const struct ph__call *call, const struct ph__host_partial *partial, size_t peer, char *place)
{
    const struct ph__sharding *sharding = ph__host_sharding(call);
    const enum ph_wire_format wire = sharding->backward;
    const size_t rows = ph__host_partial_rows(ph__host_sums_of(call), partial, peer);
    const size_t width = ph__host_sums_of(call)->blocks[partial->block].width;
    struct cut cut = {call, partial, ph__peer_samples_before(sharding, peer),
        wire == PH_WIRE_FP32 ? (void *)place : call->scratch};
    ph__for_blocks(call->backend, ph__sharding_samples(sharding, peer), BLOCK_SAMPLES, cut_samples, &cut);
    if (wire != PH_WIRE_FP32)
        ph__pack_rows(call->backend, wire, rows, width, cut.vectors, place);
    return (struct ph__message){partial->rank, place, ph__wire_bytes(wire, rows, width)};
}

static size_t list_sends(const struct ph__call *call, struct ph__message *messages)
{
    const struct ph__host_sums *sums = ph__host_sums_of(call);
    const struct ph__sharding *sharding = ph__host_sharding(call);
    char *place = call->outputs[PH_BACK_SENT].data;
    size_t count = 0;
    for (size_t peer = 0; peer < sharding->world_size; peer++)
        for (size_t i = 0; ph__is_peer(sharding, peer) && i < sums->num_partials; i++) {
            messages[count] = cut_partial(call, &sums->partials[i], peer, place);
            place += ph__size_align(messages[count++].bytes);
        }
    return count;
}

/* Returns the offset in RECEIVED of an own lookup's gradient for a rank's samples. */
static size_t received_offset(const struct ph__host_sums *sums, size_t own, size_t rank)
{
    const struct ph__sharding *sharding = sums->exchange->sharding;
    size_t offset = 0;
    for (size_t i = 0; i <= own; i++) {
        const struct ph__host_partial *partial = &sums->partials[sums->own_first + i];
        for (size_t from = 0; from < (i < own ? sharding->world_size : rank); from++)
            offset += ph__block_wire_bytes(&sums->blocks[partial->block], sharding->backward,
                ph__host_partial_rows(sums, partial, from));
    }
    return offset;
}

/* Lists the receives: gradients for a rank's samples come from the rank of this host with its place. */
static size_t list_receives(const struct ph__call *call, struct ph__message *messages)
{
    const struct ph__host_sums *sums = ph__host_sums_of(call);
    const struct ph__sharding *sharding = ph__host_sharding(call);
    const enum ph_wire_format wire = sharding->backward;
    size_t count = 0;
    for (size_t rank = 0; rank < sharding->world_size; rank++)
        for (size_t i = 0; i < sums->own_count; i++) {
            const struct ph__host_partial *partial = &sums->partials[sums->own_first + i];
            const size_t width = sums->blocks[partial->block].width;
            void *place = wire == PH_WIRE_FP32
                              ? (void *)((ph_real *)call->outputs[PH_BACK_GRADIENTS + i].data +
                                         sharding->bounds[rank] * partial->count * width)
                              : (char *)call->outputs[PH_BACK_RECEIVED].data + received_offset(sums, i, rank);
            messages[count++] = (struct ph__message){ph__host_rank_for(sharding, rank), place,
                ph__wire_bytes(wire, ph__host_partial_rows(sums, partial, rank), width)};
        }
    return count;
}

static ph_status start_run(struct ph__call *call)
{
    const struct ph__host_sums *sums = ph__host_sums_of(call);
    struct ph__message *sends = (void *)((char *)call->scratch + numbers_bytes(call));
    const size_t num_sends = list_sends(call, sends);
    struct ph__message *receives = sends + num_sends;
    const struct ph__exchange list = {sends, receives, num_sends, list_receives(call, receives)};
    const struct ph__comm_call named = {sums->channel + 1, sums->what_gradient};
    return ph__start_node_run(ph__host_sharding(call), &named, &list, &call->outputs[PH_BACK_TICKET]);
}

const struct ph__op ph__op_host_gradients_start = {
    .name = "host_gradients_start",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_SENDS,
    .infer = start_infer,
    .cost = start_cost,
    .scratch_bytes = start_scratch_bytes,
    .output_bytes = start_output_bytes,
    .run = start_run,
};

ph_value ph__host_gradient_start(
    struct ph_builder *builder, const struct ph__host_attributes *attributes, const ph_value *dy)
{
    ph_value outputs[PH_MAX_OPERANDS];
    ph__emit(builder, &ph__op_host_gradients_start, NULL, attributes, sizeof *attributes,
        attributes->sums->num_blocks, dy, PH_BACK_GRADIENTS + attributes->sums->own_count, outputs);
    return outputs[PH_BACK_SENT];
}

/* ---- wait ---- */

static void unpack(const struct ph__call *call)
{
    const struct ph__host_sums *sums = ph__host_sums_of(call);
    const struct ph__sharding *sharding = ph__host_sharding(call);
    const size_t own = ((const struct ph__host_attributes *)call->attributes)->partial;
    const struct ph__host_partial *partial = &sums->partials[sums->own_first + own];
    const size_t width = sums->blocks[partial->block].width;
    for (size_t rank = 0; rank < sharding->world_size; rank++)
        ph__unpack_rows(call->backend, sharding->backward, ph__host_partial_rows(sums, partial, rank), width,
            (const char *)call->inputs[PH_BACK_WAIT_RECEIVED].data + received_offset(sums, own, rank),
            (ph_real *)call->outputs[0].data + sharding->bounds[rank] * partial->count * width);
}

static ph_status wait_run(struct ph__call *call)
{
    return ph__back_wait_run(call, ph__host_sharding(call), unpack);
}

static const struct ph__op host_gradients_wait = {
    .name = "host_gradients_wait",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_IN_PLACE | PH_OP_AWAITS,
    .infer = ph__back_wait_infer,
    .cost = ph__written_cost,
    .run = wait_run,
};

ph_value ph__host_gradient_wait(
    struct ph_builder *builder, const struct ph__host_attributes *attributes, ph_value sent)
{
    const struct ph__back_wait wait = {.start = &ph__op_host_gradients_start,
        .wait = &host_gradients_wait,
        .attributes = attributes,
        .attributes_size = sizeof *attributes,
        .has_lookup = attributes->partial < attributes->sums->own_count,
        .lookup = attributes->partial,
        .what = attributes->sums->what};
    return ph__back_wait_emit(builder, &wait, sent);
}
