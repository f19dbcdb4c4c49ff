/* Which rank of this host has what of the blocks that the host gives. */
#include <assert.h>

#include "shard/lookup/lookup_pass.h"

/* The host's block of that width: there is one. */
static uint32_t find_block(const struct ph_host_sums *sums, uint32_t width)
{
    uint32_t block = 0;
    for (; sums->blocks[block].width != width; block++)
        assert(block + 1 < sums->num_blocks);
    return block;
}

static uint32_t find_piece(const struct ph_block *block, uint32_t feature)
{
    uint32_t piece = 0;
    for (; block->pieces[piece].feature != feature; piece++)
        assert(piece + 1 < block->count);
    return piece;
}

static ph_status add_part(struct ph_lookup_pass *pass, struct ph_host_sums *sums, size_t rank,
    const struct ph_shard_group *group, struct ph_host_part *part)
{
    uint32_t *pieces = ph__pass_take(pass, group->count, sizeof *pieces);
    PH_TRY(ph_builder_status(pass->builder));
    *part = (struct ph_host_part){.rank = (uint32_t)rank,
        .block = find_block(sums, group->key.width),
        .count = (uint32_t)group->count,
        .pieces = pieces};
    for (size_t i = 0; i < group->count; i++)
        pieces[i] = find_piece(&sums->blocks[part->block], group->pieces[i].feature);
    sums->num_parts++;
    sums->own_count += rank == pass->sharding->rank;
    return PH_OK;
}

static ph_status add_parts(
    struct ph_lookup_pass *pass, const struct ph_spread_lookup *lookup, struct ph_host_sums *sums)
{
    const struct ph_sharding *sharding = pass->sharding;
    const size_t num_local = sharding->plan->topology.ranks_per_host;
    const size_t first_of_host = sharding->rank - sharding->rank % num_local;
    struct ph_host_part *parts = ph__pass_take(pass, num_local * sums->num_blocks, sizeof *parts);
    struct ph_shard_group *groups = ph__pass_take(pass, lookup->num_features, sizeof *groups);
    PH_TRY(ph_builder_status(pass->builder));
    for (size_t rank = first_of_host; rank < first_of_host + num_local; rank++) {
        size_t num_groups;
        PH_TRY(ph__group_shards(pass, lookup, rank, groups, &num_groups));
        if (rank == sharding->rank)
            sums->own_first = sums->num_parts;
        for (size_t g = 0; g < num_groups; g++)
            if (groups[g].is_of_host)
                PH_TRY(add_part(pass, sums, rank, &groups[g], &parts[sums->num_parts]));
    }
    sums->parts = parts;
    return PH_OK;
}

/* The run-time dimension of all exchanges' peers. */
static uint32_t peer_symbol(struct ph_lookup_pass *pass)
{
    if (pass->peer_symbol == 0)
        pass->peer_symbol =
            ph__builder_symbol(pass->builder, "peer_samples", PH_SYMBOL_GLOBAL_BATCH, 1, SIZE_MAX);
    return pass->peer_symbol;
}

ph_status ph__plan_host_sums(struct ph_lookup_pass *pass, struct ph_spread_lookup *lookup)
{
    struct ph_vector_exchange *exchange = lookup->exchange;
    struct ph_arena *arena = &pass->sharding->arena;
    if (exchange->own_count == lookup->num_groups)
        return PH_OK;
    struct ph_host_sums *sums = ph__pass_take(pass, 1, sizeof *sums);
    exchange->peer_samples = ph__dim_of(1, peer_symbol(pass));
    PH_TRY(ph_builder_status(pass->builder));
    *sums = (struct ph_host_sums){.exchange = exchange,
        .channel = exchange->channel + 2,
        .what = ph__arena_printf(arena, "sums on hosts of %s", exchange->what),
        .what_gradient = ph__arena_printf(arena, "%s on hosts", exchange->what_gradient),
        .blocks = exchange->blocks + exchange->own_first + lookup->num_groups,
        .num_blocks = exchange->own_count - lookup->num_groups};
    exchange->sums = sums;
    return add_parts(pass, lookup, sums);
}
