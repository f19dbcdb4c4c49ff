#include "shard/block_rows.h"

#include "base/memory.h"
#include "shard/request_exchange.h"

size_t ph__exchange_rows(const struct ph_vector_exchange *exchange, const struct ph_block *block)
{
    const struct ph_sharding *sharding = exchange->sharding;
    return exchange->is_of_items ? ph__requests_sent(sharding, block->rank, block->stream)
                                 : ph__sharding_samples(sharding, sharding->rank) * block->count;
}

size_t ph__own_begin(const struct ph_vector_exchange *exchange, size_t lookup, size_t rank)
{
    const struct ph_block *block = &exchange->blocks[exchange->own_first + lookup];
    return exchange->is_of_items ? ph__requests_begin(exchange->sharding, block->stream, rank)
                                 : exchange->sharding->bounds[rank] * block->count;
}

size_t ph__own_rows(const struct ph_vector_exchange *exchange, size_t lookup, size_t rank)
{
    return ph__own_begin(exchange, lookup, rank + 1) - ph__own_begin(exchange, lookup, rank);
}

size_t ph__block_wire_bytes(const struct ph_block *block, enum ph_wire wire, size_t rows)
{
    return ph__size_align(ph__wire_bytes(wire, rows, block->width));
}

/* An item has its columns from one of the blocks that cut their rows. */
static size_t most_rows(
    const struct ph_call *call, const struct ph_vector_exchange *exchange, const struct ph_block *block)
{
    return exchange->is_of_items ? call->extents[PH_SYMBOL_IDS]
                                 : call->extents[PH_SYMBOL_BATCH] * block->count;
}

size_t ph__block_most_numbers(const struct ph_call *call, const struct ph_vector_exchange *exchange)
{
    size_t most = 0;
    for (size_t i = 0; i < exchange->num_blocks; i++) {
        const struct ph_block *block = &exchange->blocks[i];
        const size_t numbers = most_rows(call, exchange, block) * block->width;
        most = numbers > most ? numbers : most;
    }
    return most;
}

/* A run of rows begins on a line of its own, and its scales where a float may. */
enum { RUN_BYTES = PH_ALIGNMENT + sizeof(float) };

size_t ph__exchange_most_bytes(
    const struct ph_call *call, const struct ph_vector_exchange *exchange, enum ph_wire wire)
{
    size_t bytes = 0;
    for (size_t i = 0; i < exchange->num_blocks; i++) {
        const struct ph_block *block = &exchange->blocks[i];
        const bool is_counted = exchange->is_of_items && block->pieces[0].is_added;
        const size_t rows = is_counted ? 0 : most_rows(call, exchange, block);
        bytes += ph__block_wire_bytes(block, wire, rows) + RUN_BYTES;
    }
    return bytes;
}

size_t ph__own_most_bytes(
    const struct ph_call *call, const struct ph_vector_exchange *exchange, enum ph_wire wire)
{
    size_t bytes = 0;
    if (wire == PH_WIRE_FP32)
        return 0;
    for (size_t i = 0; i < exchange->own_count; i++) {
        const struct ph_block *block = &exchange->blocks[exchange->own_first + i];
        const size_t rows = exchange->is_of_items ? call->extents[PH_SYMBOL_REQUESTS]
                                                  : call->extents[PH_SYMBOL_GLOBAL_BATCH] * block->count;
        bytes += ph__block_wire_bytes(block, wire, rows) + exchange->sharding->world_size * RUN_BYTES;
    }
    return bytes;
}
