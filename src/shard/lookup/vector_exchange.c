#include "shard/lookup/vector_exchange.h"

#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "shard/exchange_nodes.h"
#include "shard/lookup/block_rows.h"

/* Own samples at a time: the part of a block unpacked for them stays in a cache. */
enum { BLOCK_SAMPLES = 64 };

/* ---- start ---- */

static struct ph_type vectors_type(const struct ph__vector_exchange *exchange)
{
    const struct ph_dim dims[] = {
        ph__dim_of(1, PH_SYMBOL_BATCH), ph__dim(exchange->num_features), ph__dim(exchange->dim)};
    return ph__dense_type(3, dims);
}

static ph_status start_infer(struct ph__infer *infer)
{
    const struct ph__exchange_attributes *attributes = infer->attributes;
    const bool is_of_items = attributes->exchange->is_of_items;
    const struct ph_dim came = ph__dim_of(1, PH_SYMBOL_IDS);
    const struct ph_dim sent = ph__dim_of(1, is_of_items ? PH_SYMBOL_REQUESTS : PH_SYMBOL_GLOBAL_BATCH);
    infer->outputs[PH_EXCHANGE_IN_FLIGHT] =
        is_of_items ? ph__dense_type(1, &came) : vectors_type(attributes->exchange);
    infer->outputs[PH_EXCHANGE_TICKET] = ph__scalar_type();
    infer->outputs[PH_EXCHANGE_SENT] = ph__dense_type(1, &sent);
    return PH_OK;
}

static ph_status start_output_bytes(const struct ph__call *call, size_t output, size_t *bytes_out)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    *bytes_out = output == PH_EXCHANGE_IN_FLIGHT
                     ? ph__exchange_most_bytes(call, exchange, exchange->sharding->forward)
                     : ph__own_most_bytes(call, exchange, exchange->sharding->forward);
    return PH_OK;
}

static size_t start_scratch_bytes(const struct ph__call *call)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    return (exchange->own_count * exchange->sharding->world_size + exchange->num_blocks) *
           sizeof(struct ph__message);
}

/* Returns a message with a rank's rows of an own lookup: as they are, or packed at *packed, which moves
 * behind them. */
static struct ph__message pack_part(const struct ph__call *call, size_t lookup, size_t rank, char **packed)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    const enum ph_wire_format wire = exchange->sharding->forward;
    const size_t width = exchange->blocks[exchange->own_first + lookup].width;
    const size_t rows = ph__own_rows(exchange, lookup, rank);
    const ph_real *part =
        (const ph_real *)call->inputs[lookup].data + ph__own_begin(exchange, lookup, rank) * width;
    struct ph__message message = {rank, (void *)(uintptr_t)part, ph__wire_bytes(wire, rows, width)};
    if (wire == PH_WIRE_FP32)
        return message;
    message.data = *packed;
    ph__pack_rows(call->backend, wire, rows, width, part, message.data);
    *packed += ph__size_align(message.bytes);
    return message;
}

static size_t list_sends(const struct ph__call *call, struct ph__message *messages)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    char *packed = call->outputs[PH_EXCHANGE_SENT].data;
    size_t count = 0;
    for (size_t rank = 0; rank < exchange->sharding->world_size; rank++)
        for (size_t i = 0; i < exchange->own_count; i++)
            if (ph__own_goes_to(exchange, i, rank))
                messages[count++] = pack_part(call, i, rank, &packed);
    return count;
}

const ph_real *ph__own_vectors(
    const struct ph__vector_exchange *exchange, size_t block, const struct ph__operand *lookups)
{
    const size_t lookup = block - exchange->own_first;
    if (block < exchange->own_first || lookup >= exchange->own_count ||
        exchange->sharding->forward != PH_WIRE_FP32)
        return NULL;
    return (const ph_real *)lookups[lookup].data +
           ph__own_begin(exchange, lookup, exchange->sharding->rank) * exchange->blocks[block].width;
}

static size_t list_receives(const struct ph__call *call, struct ph__message *messages)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    const enum ph_wire_format wire = exchange->sharding->forward;
    char *place = call->outputs[PH_EXCHANGE_IN_FLIGHT].data;
    for (size_t i = 0; i < exchange->num_blocks; i++) {
        const struct ph__block *block = &exchange->blocks[i];
        const size_t rows = ph__exchange_rows(exchange, block);
        const ph_real *own = ph__own_vectors(exchange, i, call->inputs);
        messages[i] = (struct ph__message){block->rank, own != NULL ? (void *)(uintptr_t)own : place,
            ph__wire_bytes(wire, rows, block->width)};
        place += ph__block_wire_bytes(block, wire, rows);
    }
    return exchange->num_blocks;
}

static ph_status start_run(struct ph__call *call)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    struct ph__message *sends = call->scratch;
    const size_t num_sends = list_sends(call, sends);
    const size_t num_receives = list_receives(call, sends + num_sends);
    const struct ph__exchange list = {sends, sends + num_sends, num_sends, num_receives};
    const struct ph__comm_call named = {exchange->channel, exchange->what};
    return ph__start_node_run(exchange->sharding, &named, &list, &call->outputs[PH_EXCHANGE_TICKET]);
}

/* Adds for each own lookup a wait for its gradient, which exchange_gradients_start has in flight. */
static void start_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    struct ph__exchange_attributes attributes = *(const struct ph__exchange_attributes *)node.attributes;
    const ph_value sent = gradient->output_gradients[PH_EXCHANGE_IN_FLIGHT];
    for (size_t i = 0; i < node.num_inputs; i++) {
        attributes.lookup = i;
        if (gradient->is_wanted[i])
            gradient->input_gradients[i] = ph__gradient_wait(gradient->builder, &attributes, sent);
    }
}

const struct ph__op ph__op_exchange_vectors_start = {
    .name = "exchange_vectors_start",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_SENDS,
    .infer = start_infer,
    .gradient = start_gradient,
    .cost = ph__sent_cost,
    .scratch_bytes = start_scratch_bytes,
    .output_bytes = start_output_bytes,
    .run = start_run,
};

/* ---- wait ---- */

static ph_status wait_infer(struct ph__infer *infer)
{
    const struct ph__exchange_attributes *attributes = infer->attributes;
    infer->outputs[0] = vectors_type(attributes->exchange);
    return PH_OK;
}

/* Returns the bytes of a thread's room for BLOCK_SAMPLES of the largest block, as numbers, in cache lines of
 * its own. */
static size_t unpacked_bytes(const struct ph__vector_exchange *exchange)
{
    size_t most = 0;
    for (size_t i = 0; i < exchange->num_blocks; i++)
        most = ph__max(most, (size_t)exchange->blocks[i].count * exchange->blocks[i].width);
    return ph__size_align(BLOCK_SAMPLES * most * sizeof(ph_real));
}

static size_t wait_scratch_bytes(const struct ph__call *call)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    return exchange->sharding->forward == PH_WIRE_FP32
               ? 0
               : ph__team_num_threads(call->backend->team) * unpacked_bytes(exchange);
}

ph_real ph__mean_factor(const struct ph__operand *ids, size_t num_samples, size_t sample, size_t feature)
{
    const uint32_t *bag = ids->index + feature * num_samples + sample;
    return bag[1] > bag[0] ? 1 / (ph_real)(bag[1] - bag[0]) : 0;
}

static void put_vector(const struct ph__call *call, const struct ph__block *block,
    const struct ph__piece *piece, size_t sample, const ph_real *vector, ph_real *target)
{
    const ph_real factor = block->is_mean ? ph__mean_factor(&call->inputs[PH_EXCHANGE_IDS],
                                                call->extents[PH_SYMBOL_BATCH], sample, piece->feature)
                                          : 1;
    if (!piece->is_added && !block->is_mean) {
        memcpy(target, vector, block->width * sizeof *target);
        return;
    }
    for (size_t d = 0; d < block->width; d++)
        target[d] = (piece->is_added ? target[d] : 0) + factor * vector[d];
}

struct assembly {
    const struct ph__call *call;
    const struct ph__vector_exchange *exchange;
};

/* Puts a block's vectors of samples [first, last), one behind the other, into the output. */
static void put_block(const struct assembly *assembly, const struct ph__block *block, size_t first,
    size_t last, const ph_real *vectors)
{
    const struct ph__vector_exchange *exchange = assembly->exchange;
    ph_real *output = assembly->call->outputs[0].data;
    for (size_t b = first; b < last; b++)
        for (size_t i = 0; i < block->count; i++) {
            const struct ph__piece *piece = &block->pieces[i];
            put_vector(assembly->call, block, piece, b, vectors,
                output + (b * exchange->num_features + piece->feature) * exchange->dim + piece->first_column);
            vectors += block->width;
        }
}

/* Returns the samples [first, last) of a received block as numbers. */
static const ph_real *unpack_rows(const struct assembly *assembly, size_t index, const char *bytes,
    size_t first, size_t last, size_t worker)
{
    const struct ph__call *call = assembly->call;
    const struct ph__block *block = &assembly->exchange->blocks[index];
    const enum ph_wire_format wire = assembly->exchange->sharding->forward;
    const ph_real *own = ph__own_vectors(assembly->exchange, index, call->inputs + PH_EXCHANGE_LOOKUPS);
    if (wire == PH_WIRE_FP32)
        return (own != NULL ? own : (const ph_real *)(const void *)bytes) +
               first * block->count * block->width;
    ph_real *numbers = (void *)((char *)call->scratch + worker * unpacked_bytes(assembly->exchange));
    ph__wire_unpack_rows(call->backend->kernels, wire, call->extents[PH_SYMBOL_BATCH] * block->count,
        block->width, bytes, first * block->count, (last - first) * block->count, numbers);
    return numbers;
}

static void put_replicas(const struct assembly *assembly, size_t first, size_t last)
{
    const struct ph__vector_exchange *exchange = assembly->exchange;
    const ph_real *vectors = assembly->call->inputs[PH_EXCHANGE_REPLICAS].data;
    ph_real *output = assembly->call->outputs[0].data;
    vectors += first * exchange->num_replicas * exchange->dim;
    for (size_t b = first; b < last; b++)
        for (size_t i = 0; i < exchange->num_replicas; i++) {
            memcpy(output + (b * exchange->num_features + exchange->replicas[i]) * exchange->dim, vectors,
                exchange->dim * sizeof *vectors);
            vectors += exchange->dim;
        }
}

static void assemble(void *argument, size_t first, size_t last, size_t worker)
{
    const struct assembly *assembly = argument;
    const struct ph__vector_exchange *exchange = assembly->exchange;
    const char *bytes = assembly->call->inputs[PH_EXCHANGE_IN_FLIGHT].data;
    for (size_t i = 0; i < exchange->num_blocks; i++) {
        const struct ph__block *block = &exchange->blocks[i];
        put_block(assembly, block, first, last, unpack_rows(assembly, i, bytes, first, last, worker));
        bytes += ph__block_wire_bytes(block, exchange->sharding->forward, ph__exchange_rows(exchange, block));
    }
    if (exchange->num_replicas > 0)
        put_replicas(assembly, first, last);
}

static ph_status wait_run(struct ph__call *call)
{
    struct assembly assembly = {call, ph__exchange_of(call)};
    PH_TRY(
        ph__comm_wait(assembly.exchange->sharding->comm, (uint64_t)*call->inputs[PH_EXCHANGE_TICKET].scalar));
    ph__for_blocks(call->backend, call->extents[PH_SYMBOL_BATCH], BLOCK_SAMPLES, assemble, &assembly);
    return PH_OK;
}

static void wait_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    const struct ph__exchange_attributes *attributes = node.attributes;
    const ph_value dy = gradient->output_gradients[0];
    gradient->input_gradients[PH_EXCHANGE_IN_FLIGHT] =
        ph__gradient_start(gradient->builder, attributes, dy, node.inputs[PH_EXCHANGE_IDS]);
    if (gradient->is_wanted[PH_EXCHANGE_REPLICAS])
        gradient->input_gradients[PH_EXCHANGE_REPLICAS] = ph__emit1(
            gradient->builder, &ph__op_replicated_gradient, NULL, attributes, sizeof *attributes, 1, &dy);
}

const struct ph__op ph__op_exchange_vectors_wait = {
    .name = "exchange_vectors_wait",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_AWAITS,
    .infer = wait_infer,
    .gradient = wait_gradient,
    .cost = ph__moved_cost,
    .scratch_bytes = wait_scratch_bytes,
    .run = wait_run,
};
