#include "shard/lookup/item_exchange.h"

#include <string.h>

#include "base/memory/memory.h"
#include "shard/exchange_nodes.h"
#include "shard/lookup/block_rows.h"

/* Items of a task: the part of a block unpacked for them stays in a cache. */
enum { CHUNK_ITEMS = 32 };

/* ---- places ---- */

static size_t num_chunks(size_t num_items)
{
    return (num_items + CHUNK_ITEMS - 1) / CHUNK_ITEMS;
}

size_t ph__item_places_bytes(const struct ph__vector_exchange *exchange, size_t num_items)
{
    return ph__size_align((num_chunks(num_items) + 1) * exchange->num_blocks * sizeof(uint32_t));
}

static const struct ph__stream *stream_of(const struct ph__vector_exchange *exchange, size_t block)
{
    const struct ph__block *of = &exchange->blocks[block];
    return &exchange->sharding->streams[of->rank].items[of->stream];
}

static bool has_id(const struct ph__stream *stream, int64_t id)
{
    return (uint64_t)id - stream->first_row < stream->num_rows;
}

/* Counts the chunk's items that each block has, at the place of the next chunk's begins. */
static void count_chunk(void *argument, size_t first, size_t last, size_t worker)
{
    const struct ph__item_places *places = argument;
    const size_t num_blocks = places->exchange->num_blocks;
    uint32_t *counts = places->begins + (first / CHUNK_ITEMS + 1) * num_blocks;
    (void)worker;
    for (size_t block = 0; block < num_blocks; block++) {
        const struct ph__stream *stream = stream_of(places->exchange, block);
        uint32_t count = 0;
        for (size_t i = first; i < last; i++)
            count += has_id(stream, places->ids[i]);
        counts[block] = count;
    }
}

void ph__find_item_places(const struct ph_backend *backend, const struct ph__vector_exchange *exchange,
    const struct ph__operand *bags, void *begins, struct ph__item_places *places_out)
{
    const size_t num_items = bags->shape.dims[1], num_blocks = exchange->num_blocks;
    *places_out = (struct ph__item_places){exchange, bags->data, num_items, begins};
    memset(begins, 0, num_blocks * sizeof(uint32_t));
    ph__for_blocks(backend, num_items, CHUNK_ITEMS, count_chunk, places_out);
    for (size_t i = num_blocks; i < (num_chunks(num_items) + 1) * num_blocks; i++)
        places_out->begins[i] += places_out->begins[i - num_blocks];
}

/* Counts the items that a block has. */
static size_t rows_of(const struct ph__item_places *places, size_t block)
{
    return places->begins[num_chunks(places->num_items) * places->exchange->num_blocks + block];
}

/* ---- wait ---- */

static ph_status wait_infer(struct ph__infer *infer)
{
    const struct ph__vector_exchange *exchange =
        ((const struct ph__exchange_attributes *)infer->attributes)->exchange;
    infer->outputs[0] = ph__dense_type(2, (struct ph_dim[]){exchange->items, ph__dim(exchange->dim)});
    return PH_OK;
}

/* Returns the bytes of a thread's room for a chunk of a block, as numbers, in cache lines of its own. */
static size_t unpacked_bytes(const struct ph__vector_exchange *exchange)
{
    return ph__size_align(CHUNK_ITEMS * exchange->dim * sizeof(ph_real));
}

static size_t wait_scratch_bytes(const struct ph__call *call)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    const size_t places = ph__item_places_bytes(exchange, ph__rows(&call->outputs[0]));
    return exchange->sharding->forward == PH_WIRE_FP32
               ? places
               : places + ph__team_num_threads(call->backend->team) * unpacked_bytes(exchange);
}

struct assembly {
    const struct ph__call *call;
    struct ph__item_places places;
};

/* Returns a block's rows for a chunk's items, as numbers; bytes: the block as received. */
static const ph_real *unpack_chunk(
    const struct assembly *assembly, size_t index, size_t chunk, const char *bytes, size_t worker)
{
    const struct ph__call *call = assembly->call;
    const struct ph__vector_exchange *exchange = assembly->places.exchange;
    const struct ph__block *block = &exchange->blocks[index];
    const enum ph_wire_format wire = exchange->sharding->forward;
    const uint32_t *begin = assembly->places.begins + chunk * exchange->num_blocks + index;
    const ph_real *own = ph__own_vectors(exchange, index, call->inputs + PH_EXCHANGE_LOOKUPS);
    if (wire == PH_WIRE_FP32)
        return (own != NULL ? own : (const ph_real *)(const void *)bytes) + (size_t)begin[0] * block->width;
    char *room = (char *)call->scratch + ph__item_places_bytes(exchange, assembly->places.num_items);
    ph_real *numbers = (void *)(room + worker * unpacked_bytes(exchange));
    ph__wire_unpack_rows(call->backend->kernels, wire, rows_of(&assembly->places, index), block->width, bytes,
        begin[0], begin[exchange->num_blocks] - begin[0], numbers);
    return numbers;
}

/* Copies to the output the vectors of those items [first, last) that the block has, one behind the other. */
static void put_items(
    const struct assembly *assembly, size_t index, size_t first, size_t last, const ph_real *vectors)
{
    const struct ph__vector_exchange *exchange = assembly->places.exchange;
    const struct ph__block *block = &exchange->blocks[index];
    const struct ph__stream *stream = stream_of(exchange, index);
    ph_real *output = (ph_real *)assembly->call->outputs[0].data + block->pieces[0].first_column;
    for (size_t i = first; i < last; i++)
        if (has_id(stream, assembly->places.ids[i])) {
            memcpy(output + i * exchange->dim, vectors, block->width * sizeof *vectors);
            vectors += block->width;
        }
}

static void assemble(void *argument, size_t first, size_t last, size_t worker)
{
    const struct assembly *assembly = argument;
    const struct ph__vector_exchange *exchange = assembly->places.exchange;
    const char *bytes = assembly->call->inputs[PH_EXCHANGE_IN_FLIGHT].data;
    for (size_t i = 0; i < exchange->num_blocks; i++) {
        const struct ph__block *block = &exchange->blocks[i];
        put_items(assembly, i, first, last, unpack_chunk(assembly, i, first / CHUNK_ITEMS, bytes, worker));
        bytes += ph__block_wire_bytes(block, exchange->sharding->forward, rows_of(&assembly->places, i));
    }
}

static ph_status wait_run(struct ph__call *call)
{
    const struct ph__vector_exchange *exchange = ph__exchange_of(call);
    struct assembly assembly = {.call = call};
    PH_TRY(ph__comm_wait(exchange->sharding->comm, (uint64_t)*call->inputs[PH_EXCHANGE_TICKET].scalar));
    ph__find_item_places(
        call->backend, exchange, &call->inputs[PH_EXCHANGE_IDS], call->scratch, &assembly.places);
    ph__for_blocks(call->backend, assembly.places.num_items, CHUNK_ITEMS, assemble, &assembly);
    return PH_OK;
}

static void wait_gradient(struct ph__gradient *gradient)
{
    const struct ph__node node = *gradient->node;
    gradient->input_gradients[PH_EXCHANGE_IN_FLIGHT] = ph__gradient_start(
        gradient->builder, node.attributes, gradient->output_gradients[0], node.inputs[PH_EXCHANGE_IDS]);
}

const struct ph__op ph__op_exchange_items_wait = {
    .name = "exchange_items_wait",
    .traits = PH_OP_HAS_EFFECT | PH_OP_CALLS_LIBRARY | PH_OP_AWAITS,
    .infer = wait_infer,
    .gradient = wait_gradient,
    .cost = ph__moved_cost,
    .scratch_bytes = wait_scratch_bytes,
    .run = wait_run,
};

/* ---- the way back ---- */

struct cut {
    const struct ph__item_places *places;
    size_t block;
    const ph_real *dy;
    ph_real *vectors;
};

static void cut_chunk(void *argument, size_t first, size_t last, size_t worker)
{
    const struct cut *cut = argument;
    const struct ph__item_places *places = cut->places;
    const struct ph__vector_exchange *exchange = places->exchange;
    const struct ph__block *block = &exchange->blocks[cut->block];
    const struct ph__stream *stream = stream_of(exchange, cut->block);
    const size_t row = places->begins[first / CHUNK_ITEMS * exchange->num_blocks + cut->block];
    const ph_real *dy = cut->dy + block->pieces[0].first_column;
    ph_real *vector = cut->vectors + row * block->width;
    (void)worker;
    for (size_t i = first; i < last; i++)
        if (has_id(stream, places->ids[i])) {
            memcpy(vector, dy + i * exchange->dim, block->width * sizeof *vector);
            vector += block->width;
        }
}

void ph__cut_items(const struct ph_backend *backend, const struct ph__item_places *places, size_t block,
    const ph_real *dy, ph_real *vectors_out)
{
    struct cut cut = {places, block, dy, vectors_out};
    ph__for_blocks(backend, places->num_items, CHUNK_ITEMS, cut_chunk, &cut);
}
