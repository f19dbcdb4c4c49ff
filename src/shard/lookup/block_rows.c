#include "shard/lookup/block_rows.h"

#include "base/sizes.h"
#include "shard/lookup/request_exchange.h"

/* ---- peers ---- */

bool ph__is_peer(const struct ph__sharding *sharding, size_t rank)
{
    const size_t num_local = sharding->plan->topology.ranks_per_host;
    return rank % num_local == sharding->rank % num_local;
}

size_t ph__peer_samples_before(const struct ph__sharding *sharding, size_t rank)
{
    const size_t num_local = sharding->plan->topology.ranks_per_host;
    size_t count = 0;
    for (size_t peer = sharding->rank % num_local; peer < rank; peer += num_local)
        count += ph__sharding_samples(sharding, peer);
    return count;
}

size_t ph__peer_samples_most(const struct ph__sharding *sharding, size_t num_samples)
{
    const struct ph__topology *topology = &sharding->plan->topology;
    const size_t num_hosts = topology->world_size / topology->ranks_per_host;
    return num_hosts * (size_t)ph__divide_up(num_samples, topology->world_size);
}

/* ---- the batch that is bound ---- */

size_t ph__exchange_rows(const struct ph__vector_exchange *exchange, const struct ph__block *block)
{
    const struct ph__sharding *sharding = exchange->sharding;
    return exchange->is_of_items ? ph__requests_sent(sharding, block->rank, block->stream)
                                 : ph__sharding_samples(sharding, sharding->rank) * block->count;
}

bool ph__own_goes_to(const struct ph__vector_exchange *exchange, size_t lookup, size_t rank)
{
    return !exchange->blocks[exchange->own_first + lookup].is_of_host ||
           ph__is_peer(exchange->sharding, rank);
}

size_t ph__own_begin(const struct ph__vector_exchange *exchange, size_t lookup, size_t rank)
{
    const struct ph__sharding *sharding = exchange->sharding;
    const struct ph__block *block = &exchange->blocks[exchange->own_first + lookup];
    if (exchange->is_of_items)
        return ph__requests_begin(sharding, block->stream, rank);
    const size_t num_samples =
        block->is_of_host ? ph__peer_samples_before(sharding, rank) : sharding->bounds[rank];
    return num_samples * block->count;
}

size_t ph__own_rows(const struct ph__vector_exchange *exchange, size_t lookup, size_t rank)
{
    return ph__own_begin(exchange, lookup, rank + 1) - ph__own_begin(exchange, lookup, rank);
}

size_t ph__block_wire_bytes(const struct ph__block *block, enum ph_wire_format wire, size_t rows)
{
    return ph__size_align(ph__wire_bytes(wire, rows, block->width));
}

/* ---- upper bounds ---- */

/* Bounds a block's rows; one of items may have all of the batch's. */
static size_t most_rows(
    const struct ph__call *call, const struct ph__vector_exchange *exchange, const struct ph__block *block)
{
    return exchange->is_of_items ? call->extents[PH_SYMBOL_IDS]
                                 : call->extents[PH_SYMBOL_BATCH] * block->count;
}

size_t ph__block_most_numbers(const struct ph__call *call, const struct ph__vector_exchange *exchange)
{
    size_t most = 0;
    for (size_t i = 0; i < exchange->num_blocks; i++) {
        const struct ph__block *block = &exchange->blocks[i];
        most = ph__max(most, most_rows(call, exchange, block) * block->width);
    }
    return most;
}

size_t ph__exchange_most_bytes(
    const struct ph__call *call, const struct ph__vector_exchange *exchange, enum ph_wire_format wire)
{
    size_t bytes = 0;
    for (size_t i = 0; i < exchange->num_blocks; i++) {
        const struct ph__block *block = &exchange->blocks[i];
        const bool is_counted = exchange->is_of_items && block->pieces[0].is_added;
        const size_t rows = is_counted ? 0 : most_rows(call, exchange, block);
        bytes += ph__block_wire_bytes(block, wire, rows) + PH_RUN_BYTES;
    }
    return bytes;
}

size_t ph__own_most_rows(
    const struct ph__call *call, const struct ph__vector_exchange *exchange, size_t lookup)
{
    const struct ph__block *block = &exchange->blocks[exchange->own_first + lookup];
    if (exchange->is_of_items)
        return call->extents[PH_SYMBOL_REQUESTS];
    const size_t num_samples = call->extents[PH_SYMBOL_GLOBAL_BATCH];
    return block->count *
           (block->is_of_host ? ph__peer_samples_most(exchange->sharding, num_samples) : num_samples);
}

size_t ph__own_most_bytes(
    const struct ph__call *call, const struct ph__vector_exchange *exchange, enum ph_wire_format wire)
{
    size_t bytes = 0;
    if (wire == PH_WIRE_FP32)
        return 0;
    for (size_t i = 0; i < exchange->own_count; i++) {
        const struct ph__block *block = &exchange->blocks[exchange->own_first + i];
        bytes += ph__block_wire_bytes(block, wire, ph__own_most_rows(call, exchange, i)) +
                 exchange->sharding->world_size * PH_RUN_BYTES;
    }
    return bytes;
}
