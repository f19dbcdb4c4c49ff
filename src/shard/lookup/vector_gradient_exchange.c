/* The way back of vector_exchange.c: this rank's gradient (B,F,D) is cut into the blocks in which the vectors
 * came. Each block goes to the rank that made it; the blocks received from all ranks are the gradient of a
 * lookup of the global batch. Gradients in fp32 are received in their place. */
#include <string.h>

#include "base/memory/memory.h"
#include "shard/exchange_nodes.h"
#include "shard/lookup/block_rows.h"
#include "shard/lookup/item_exchange.h"

enum { BLOCK_SAMPLES = 64 };

enum { DY, IDS, NUM_INPUTS }; /* of start */

static struct ph_type lookup_type(const struct ph__vector_exchange *exchange, size_t lookup)
{
    const struct ph__block *block = &exchange->blocks[exchange->own_first + lookup];
    const struct ph_dim items[] = {exchange->own_items, ph__dim(block->width)};
    const struct ph_dim samples =
        block->is_of_host ? exchange->peer_samples : ph__dim_of(1, PH_SYMBOL_GLOBAL_BATCH);
    const struct ph_dim dims[] = {samples, ph__dim(block->count), ph__dim(block->width)};
    return exchange->is_of_items ? ph__dense_type(2, items) : ph__dense_type(3, dims);
}

static ph_status start_infer(struct ph__infer *infer)
{
    const struct ph__exchange_attributes *attributes = infer->attributes;
    const bool is_of_items = attributes->exchange->is_of_items;
    const struct ph_dim received = ph__dim_of(1, is_of_items ? PH_SYMBOL_REQUESTS : PH_SYMBOL_GLOBAL_BATCH);
    infer->outputs[PH_BACK_SENT] = infer->inputs[DY];
    infer->outputs[PH_BACK_TICKET] = ph__scalar_type();
    infer->outputs[PH_BACK_RECEIVED] = ph__dense_type(1, &received);
    for (size_t i = 0; i < attributes->exchange->own_count; i++)
        infer->outputs[PH_BACK_GRADIENTS + i] = lookup_type(attributes->exchange, i);
    return PH_OK;
}

static size_t gradient_bytes(const struct ph__call *call, size_t lookup)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    return ph__own_most_rows(call, exchange, lookup) * exchange->blocks[exchange->own_first + lookup].width *
           sizeof(ph_real);
}

static ph_status start_output_bytes(const struct ph__call *call, size_t output, size_t *bytes_out)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    if (output == PH_BACK_SENT)
        *bytes_out = ph__exchange_most_bytes(call, exchange, exchange->sharding->backward);
    else if (output == PH_BACK_RECEIVED)
        *bytes_out = ph__own_most_bytes(call, exchange, exchange->sharding->backward);
    else if (output >= PH_BACK_GRADIENTS)
        *bytes_out = gradient_bytes(call, output - PH_BACK_GRADIENTS);
    return PH_OK;
}

static void start_cost(const struct ph__call *call, struct ph__cost *cost_out)
{
    cost_out->bytes = 2 * (double)ph__elements(&call->inputs[DY]) * sizeof(ph_real);
}

/* Scratch: the items' places, the numbers of the largest block where they are packed in fewer bytes,
 * messages. */
static size_t places_bytes(const struct ph__call *call)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    return exchange->is_of_items ? ph__item_places_bytes(exchange, ph__rows(&call->inputs[DY])) : 0;
}

static size_t numbers_bytes(const struct ph__call *call)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    return exchange->sharding->backward == PH_WIRE_FP32
               ? 0
               : ph__size_align(ph__block_most_numbers(call, exchange) * sizeof(ph_real));
}

static size_t start_scratch_bytes(const struct ph__call *call)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    const size_t num_messages = exchange->own_count * exchange->sharding->world_size + exchange->num_blocks;
    return places_bytes(call) + numbers_bytes(call) + num_messages * sizeof(struct ph__message);
}

/* ---- cutting ---- */

struct cut {
    const struct ph__call *call;
    const struct ph__block *block;
    ph_real *vectors;
};

static void cut_samples(void *argument, size_t first, size_t last, size_t worker)
{
    const struct cut *cut = argument;
    const struct ph__vector_exchange *exchange = ph__exchange_of(cut->call);
    const struct ph__block *block = cut->block;
    const ph_real *dy = cut->call->inputs[DY].data;
    ph_real *vector = cut->vectors + first * block->count * block->width;
    (void)worker;
    for (size_t b = first; b < last; b++)
        for (size_t i = 0; i < block->count; i++, vector += block->width) {
            const struct ph__piece *piece = &block->pieces[i];
            const ph_real *from =
                dy + (b * exchange->num_features + piece->feature) * exchange->dim + piece->first_column;
            memcpy(vector, from, block->width * sizeof *vector);
            if (!block->is_mean)
                continue;
            const ph_real factor = ph__mean_factor(
                &cut->call->inputs[IDS], cut->call->extents[PH_SYMBOL_BATCH], b, piece->feature);
            for (size_t d = 0; d < block->width; d++)
                vector[d] *= factor;
        }
}

/* Cuts out the gradient of a block's vectors. */
static void cut_block(
    const struct ph__call *call, const struct ph__item_places *places, size_t index, ph_real *vectors)
{
    struct cut cut = {call, &ph__exchange_of(call)->blocks[index], vectors};
    if (ph__exchange_of(call)->is_of_items)
        ph__cut_items(call->backend, places, index, call->inputs[DY].data, vectors);
    else
        ph__for_blocks(call->backend, call->extents[PH_SYMBOL_BATCH], BLOCK_SAMPLES, cut_samples, &cut);
}

/* Returns where a block's gradient is cut to, as numbers: this rank's own block goes directly to its
 * gradient. */
static ph_real *cut_place(const struct ph__call *call, size_t index, char *place, ph_real *numbers)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    const size_t lookup = index - exchange->own_first;
    if (exchange->sharding->backward != PH_WIRE_FP32)
        return numbers;
    if (index < exchange->own_first || lookup >= exchange->own_count)
        return (ph_real *)(void *)place;
    return (ph_real *)call->outputs[PH_BACK_GRADIENTS + lookup].data +
           ph__own_begin(exchange, lookup, exchange->sharding->rank) * exchange->blocks[index].width;
}

static void list_sends(const struct ph__call *call, struct ph__message *messages)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    const enum ph_wire_format wire = exchange->sharding->backward;
    ph_real *numbers = (void *)((char *)call->scratch + places_bytes(call));
    char *place = call->outputs[PH_BACK_SENT].data;
    struct ph__item_places places = {0};
    if (exchange->is_of_items)
        ph__find_item_places(call->backend, exchange, &call->inputs[IDS], call->scratch, &places);
    for (size_t i = 0; i < exchange->num_blocks; i++) {
        const struct ph__block *block = &exchange->blocks[i];
        const size_t rows = ph__exchange_rows(exchange, block);
        ph_real *vectors = cut_place(call, i, place, numbers);
        cut_block(call, &places, i, vectors);
        if (wire != PH_WIRE_FP32)
            ph__pack_rows(call->backend, wire, rows, block->width, vectors, place);
        messages[i] = (struct ph__message){block->rank, wire == PH_WIRE_FP32 ? (void *)vectors : place,
            ph__wire_bytes(wire, rows, block->width)};
        place += ph__block_wire_bytes(block, wire, rows);
    }
}

/* ---- start ---- */

/* Returns the offset in RECEIVED of a rank's part of an own lookup's gradient. */
static size_t received_offset(const struct ph__vector_exchange *exchange, size_t lookup, size_t rank)
{
    size_t offset = 0;
    for (size_t i = 0; i <= lookup; i++)
        for (size_t from = 0; from < (i < lookup ? exchange->sharding->world_size : rank); from++)
            offset += ph__block_wire_bytes(&exchange->blocks[exchange->own_first + i],
                exchange->sharding->backward, ph__own_rows(exchange, i, from));
    return offset;
}

static size_t list_receives(const struct ph__call *call, struct ph__message *messages)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    const enum ph_wire_format wire = exchange->sharding->backward;
    size_t count = 0;
    for (size_t rank = 0; rank < exchange->sharding->world_size; rank++)
        for (size_t i = 0; i < exchange->own_count; i++) {
            if (!ph__own_goes_to(exchange, i, rank))
                continue;
            const size_t width = exchange->blocks[exchange->own_first + i].width;
            void *place =
                wire == PH_WIRE_FP32
                    ? (void *)((ph_real *)call->outputs[PH_BACK_GRADIENTS + i].data +
                               ph__own_begin(exchange, i, rank) * width)
                    : (char *)call->outputs[PH_BACK_RECEIVED].data + received_offset(exchange, i, rank);
            messages[count++] = (struct ph__message){
                rank, place, ph__wire_bytes(wire, ph__own_rows(exchange, i, rank), width)};
        }
    return count;
}

static ph_status start_run(struct ph__call *call)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    struct ph__message *sends = (void *)((char *)call->scratch + places_bytes(call) + numbers_bytes(call));
    struct ph__message *receives = sends + exchange->num_blocks;
    const struct ph__comm_call named = {exchange->channel + 1, exchange->what_gradient};
    list_sends(call, sends);
    const struct ph__exchange list = {sends, receives, exchange->num_blocks, list_receives(call, receives)};
    return ph__start_node_run(exchange->sharding, &named, &list, &call->outputs[PH_BACK_TICKET]);
}

const struct ph__op ph__op_exchange_gradients_start = {
    .name = "exchange_gradients_start",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_SENDS,
    .infer = start_infer,
    .cost = start_cost,
    .scratch_bytes = start_scratch_bytes,
    .output_bytes = start_output_bytes,
    .run = start_run,
};

ph_value ph__gradient_start(
    struct ph_builder *builder, const struct ph__exchange_attributes *attributes, ph_value dy, ph_value ids)
{
    const ph_value inputs[NUM_INPUTS] = {dy, ids};
    ph_value outputs[PH_MAX_OPERANDS];
    ph__emit(builder, &ph__op_exchange_gradients_start, NULL, attributes, sizeof *attributes, NUM_INPUTS,
        inputs, PH_BACK_GRADIENTS + attributes->exchange->own_count, outputs);
    return outputs[PH_BACK_SENT];
}

/* ---- wait ---- */

/* Reserves nothing on a rank without lookups, which only waits until its gradients are sent. */
static ph_status wait_output_bytes(const struct ph__call *call, size_t output, size_t *bytes_out)
{
    const struct ph__exchange_attributes *attributes = call->attributes;
    if (attributes->lookup < attributes->exchange->own_count)
        *bytes_out = gradient_bytes(call, attributes->lookup);
    (void)output;
    return PH_OK;
}

static void unpack(const struct ph__call *call)
{
    const struct ph__exchange_attributes *attributes = call->attributes;
    const struct ph__vector_exchange *exchange = attributes->exchange;
    const size_t lookup = attributes->lookup, width = exchange->blocks[exchange->own_first + lookup].width;
    for (size_t rank = 0; rank < exchange->sharding->world_size; rank++)
        ph__unpack_rows(call->backend, exchange->sharding->backward, ph__own_rows(exchange, lookup, rank),
            width,
            (const char *)call->inputs[PH_BACK_WAIT_RECEIVED].data + received_offset(exchange, lookup, rank),
            (ph_real *)call->outputs[0].data + ph__own_begin(exchange, lookup, rank) * width);
}

static ph_status wait_run(struct ph__call *call)
{
    return ph__back_wait_run(call, ph__exchange_of(call)->sharding, unpack);
}

static const struct ph__op exchange_gradients_wait = {
    .name = "exchange_gradients_wait",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_IN_PLACE | PH_OP_AWAITS,
    .infer = ph__back_wait_infer,
    .cost = ph__written_cost,
    .output_bytes = wait_output_bytes,
    .run = wait_run,
};

ph_value ph__gradient_wait(
    struct ph_builder *builder, const struct ph__exchange_attributes *attributes, ph_value sent)
{
    const struct ph__back_wait wait = {.start = &ph__op_exchange_gradients_start,
        .wait = &exchange_gradients_wait,
        .attributes = attributes,
        .attributes_size = sizeof *attributes,
        .has_lookup = attributes->lookup < attributes->exchange->own_count,
        .lookup = attributes->lookup,
        .what = attributes->exchange->what};
    return ph__back_wait_emit(builder, &wait, sent);
}

/* ---- tables that every rank has ---- */

static ph_status replicated_infer(struct ph__infer *infer)
{
    const struct ph__exchange_attributes *attributes = infer->attributes;
    infer->outputs[0] = infer->inputs[0];
    infer->outputs[0].dims[1] = ph__dim(attributes->exchange->num_replicas);
    return PH_OK;
}

static void copy_replicas(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph__call *call = argument;
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    const ph_real *dy = call->inputs[0].data;
    ph_real *target = (ph_real *)call->outputs[0].data + first * exchange->num_replicas * exchange->dim;
    (void)worker;
    for (size_t b = first; b < last; b++)
        for (size_t i = 0; i < exchange->num_replicas; i++, target += exchange->dim)
            memcpy(target, dy + (b * exchange->num_features + exchange->replicas[i]) * exchange->dim,
                exchange->dim * sizeof *target);
}

static ph_status replicated_run(struct ph__call *call)
{
    ph__for_blocks(call->backend, ph__rows(&call->outputs[0]), BLOCK_SAMPLES, copy_replicas, call);
    return PH_OK;
}

const struct ph__op ph__op_replicated_gradient = {
    .name = "replicated_gradient",
    .infer = replicated_infer,
    .cost = ph__written_cost,
    .run = replicated_run,
};
