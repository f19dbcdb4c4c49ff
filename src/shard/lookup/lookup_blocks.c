/* Works out, on every rank for all ranks, which streams of requests a rank gets for a lookup and which blocks
 * of vectors it gives. */
#include <assert.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/text/utf8.h"
#include "plan/plan_traffic.h"
#include "shard/lookup/block_rows.h"
#include "shard/lookup/lookup_pass.h"

/* Finds the number of this stream among the rank's, adding it where it is missing. */
static ph_status find_stream(
    struct ph__lookup_pass *pass, size_t rank, const struct ph__stream *wanted, size_t *stream_out)
{
    struct ph__stream_list *list = &pass->sharding->streams[rank];
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].feature == wanted->feature && list->items[i].first_row == wanted->first_row &&
            list->items[i].num_rows == wanted->num_rows) {
            *stream_out = i;
            return PH_OK;
        }
    PH_TRY(ph__array_reserve((void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items));
    *stream_out = list->count;
    list->items[list->count++] = *wanted;
    return PH_OK;
}

static ph_status stream_of(struct ph__lookup_pass *pass, const struct ph__spread_lookup *lookup,
    size_t feature, size_t rank, const struct ph__table_shard *shard, size_t *stream_out)
{
    const struct ph_table_slice *slice = &lookup->declaration->slices[lookup->slices[feature]];
    const size_t *selected = lookup->features.selected;
    const struct ph__stream stream = {.feature = (uint32_t)(selected != NULL ? selected[feature] : feature),
        .name = ph__arena_strdup(&pass->sharding->arena, ph__last_word(slice->name, '.')),
        .first_row = shard->first_row,
        .num_rows = shard->num_rows,
        .whole_rows = slice->num_rows};
    return stream.name != NULL ? find_stream(pass, rank, &stream, stream_out) : PH_ERROR_MEMORY;
}

/* Finds the group of this key, adding it where it is missing; groups has room, since the world's widths are
 * few. */
static struct ph__shard_group *find_group(struct ph__lookup_pass *pass,
    const struct ph__spread_lookup *lookup, struct ph__shard_group *groups, size_t *num_groups,
    struct ph__shard_key key, bool is_of_host)
{
    for (size_t i = 0; i < *num_groups; i++)
        if (ph__shard_key_equal(groups[i].key, key) && groups[i].is_of_host == is_of_host)
            return &groups[i];
    struct ph__shard_group *group = &groups[(*num_groups)++];
    *group = (struct ph__shard_group){.key = key,
        .is_of_host = is_of_host,
        .pieces = ph__pass_take(pass, lookup->num_features, sizeof *group->pieces),
        .streams = ph__pass_take(pass, lookup->num_features, sizeof *group->streams),
        .slices = ph__pass_take(pass, lookup->num_features, sizeof *group->slices)};
    return group;
}

/* Inserts the piece so that streams ascend. */
static void insert_piece(struct ph__shard_group *group, size_t stream, size_t slice, struct ph__piece piece)
{
    size_t at = group->count++;
    for (; at > 0 && group->streams[at - 1] > stream; at--) {
        group->streams[at] = group->streams[at - 1];
        group->slices[at] = group->slices[at - 1];
        group->pieces[at] = group->pieces[at - 1];
    }
    group->streams[at] = stream;
    group->slices[at] = slice;
    group->pieces[at] = piece;
}

/* Returns true when the host adds up the shard's vectors, as it does all of a tower's. Items are never
 * summed: they go straight to the rank that asks. */
static bool is_of_host(const struct ph__lookup_pass *pass, const struct ph__spread_lookup *lookup,
    const struct ph__plan_table *table, const struct ph__table_shard *shard)
{
    return lookup->tower != NULL || (!lookup->exchange->is_of_items &&
                                        ph__shard_is_summed_on_host(pass->sharding->plan, table, shard));
}

/* Groups a rank's shards for the lookup, and finds its streams; groups_out (num_features). */
static ph_status group_shards(struct ph__lookup_pass *pass, const struct ph__spread_lookup *lookup,
    size_t rank, struct ph__shard_group *groups, size_t *num_groups_out)
{
    *num_groups_out = 0;
    for (size_t i = 0; i < lookup->num_features; i++) {
        const struct ph__plan_table *table = lookup->plans[i];
        const struct ph__table_shard *shard = ph__pass_shard_of(pass, table, rank);
        size_t stream;
        if (shard == NULL)
            continue;
        PH_TRY(stream_of(pass, lookup, i, rank, shard, &stream));
        struct ph__shard_group *group = find_group(pass, lookup, groups, num_groups_out,
            ph__shard_key_of(shard, table), is_of_host(pass, lookup, table, shard));
        PH_TRY(ph_builder_status(pass->builder));
        insert_piece(
            group, stream, lookup->slices[i], (struct ph__piece){(uint32_t)i, shard->first_column, false});
    }
    return PH_OK;
}

/* Marks the pieces that are added to columns which an earlier block has filled: rows are cut. */
static void mark_added(struct ph__block *block, struct ph__piece *pieces, size_t dim, bool *is_filled)
{
    for (size_t i = 0; i < block->count; i++) {
        bool *columns = is_filled + pieces[i].feature * dim + pieces[i].first_column;
        pieces[i].is_added = columns[0];
        columns[0] = true;
    }
}

static bool is_mean(const struct ph__spread_lookup *lookup)
{
    const struct ph__embedding_bag_attributes *attributes = lookup->node.attributes;
    return attributes->pooling == PH_POOL_MEAN;
}

/* Adds the blocks that `rank` gives to this one, from its own groups, or from those of the first rank of its
 * host, which has all that the host has. */
static void add_blocks(const struct ph__spread_lookup *lookup, size_t rank,
    const struct ph__shard_group *groups, size_t num_groups, bool is_of_host, bool *is_filled)
{
    struct ph__vector_exchange *exchange = lookup->exchange;
    for (size_t g = 0; g < num_groups; g++) {
        if (groups[g].is_of_host != is_of_host)
            continue;
        struct ph__block *block = &lookup->blocks[exchange->num_blocks++];
        *block = (struct ph__block){.rank = (uint32_t)rank,
            .count = (uint32_t)groups[g].count,
            .width = groups[g].key.width,
            .stream = (uint32_t)groups[g].streams[0],
            .is_mean = groups[g].key.is_cut && is_mean(lookup),
            .is_of_host = is_of_host,
            .pieces = groups[g].pieces};
        mark_added(block, groups[g].pieces, exchange->dim, is_filled);
    }
}

static void keep_own_groups(
    struct ph__spread_lookup *lookup, const struct ph__shard_group *groups, size_t num_groups)
{
    size_t num_own = 0, num_host = 0;
    for (size_t g = 0; g < num_groups; g++)
        if (groups[g].is_of_host)
            lookup->host_groups[num_host++] = groups[g];
        else
            lookup->groups[num_own++] = groups[g];
    lookup->num_groups = num_own;
}

static ph_status add_blocks_of_rank(struct ph__lookup_pass *pass, struct ph__spread_lookup *lookup,
    size_t rank, struct ph__shard_group *groups, bool *is_filled)
{
    const struct ph__sharding *sharding = pass->sharding;
    const size_t first_of_host = rank - rank % sharding->plan->topology.ranks_per_host;
    size_t num_groups;
    PH_TRY(group_shards(pass, lookup, rank, groups, &num_groups));
    if (rank == sharding->rank)
        keep_own_groups(lookup, groups, num_groups);
    add_blocks(lookup, rank, groups, num_groups, false, is_filled);
    if (!ph__is_peer(sharding, rank))
        return PH_OK;
    PH_TRY(group_shards(pass, lookup, first_of_host, groups, &num_groups));
    add_blocks(lookup, rank, groups, num_groups, true, is_filled);
    return PH_OK;
}

static ph_status add_all_blocks(
    struct ph__lookup_pass *pass, struct ph__spread_lookup *lookup, bool *is_filled)
{
    struct ph__vector_exchange *exchange = lookup->exchange;
    const size_t world_size = pass->sharding->world_size;
    struct ph__shard_group *groups = ph__pass_take(pass, lookup->num_features, sizeof *groups);
    lookup->blocks = ph__pass_take(pass, world_size * lookup->num_features, sizeof *lookup->blocks);
    lookup->groups = ph__pass_take(pass, lookup->num_features, sizeof *groups);
    lookup->host_groups = ph__pass_take(pass, lookup->num_features, sizeof *groups);
    PH_TRY(ph_builder_status(pass->builder));
    for (size_t rank = 0; rank < world_size; rank++) {
        const size_t before = exchange->num_blocks;
        PH_TRY(add_blocks_of_rank(pass, lookup, rank, groups, is_filled));
        if (rank != pass->sharding->rank)
            continue;
        exchange->own_first = before;
        exchange->own_count = exchange->num_blocks - before;
    }
    exchange->blocks = lookup->blocks;
    return PH_OK;
}

static ph_status list_replicas(struct ph__lookup_pass *pass, struct ph__spread_lookup *lookup)
{
    uint32_t *features = ph__pass_take(pass, lookup->num_features, sizeof *features);
    PH_TRY(ph_builder_status(pass->builder));
    for (size_t i = 0; i < lookup->num_features; i++)
        if (ph__plan_is_replica(lookup->plans[i]))
            features[lookup->exchange->num_replicas++] = (uint32_t)i;
    lookup->exchange->replicas = features;
    return PH_OK;
}

static const char *describe_exchange(
    struct ph__lookup_pass *pass, const struct ph__spread_lookup *lookup, const char *what)
{
    return ph__arena_printf(&pass->sharding->arena, "%s of %s", what, lookup->declaration->name);
}

/* ---- partials: each rank's part of the blocks that this host gives ---- */

/* Finds the host's block of that width, which exists. */
static uint32_t find_block(const struct ph__host_sums *sums, uint32_t width)
{
    uint32_t block = 0;
    for (; sums->blocks[block].width != width; block++)
        assert(block + 1 < sums->num_blocks);
    return block;
}

static uint32_t find_piece(const struct ph__block *block, uint32_t feature)
{
    uint32_t piece = 0;
    for (; block->pieces[piece].feature != feature; piece++)
        assert(piece + 1 < block->count);
    return piece;
}

/* Adds a rank's part. is_set (num_features): the features whose vectors an earlier part has. */
static ph_status add_part(struct ph__lookup_pass *pass, struct ph__host_sums *sums, size_t rank,
    const struct ph__shard_group *group, bool *is_set)
{
    uint32_t *pieces = ph__pass_take(pass, group->count, sizeof *pieces);
    bool *is_added = ph__pass_take(pass, group->count, sizeof *is_added);
    PH_TRY(ph_builder_status(pass->builder));
    struct ph__host_partial *part = &sums->partials[sums->num_partials++];
    *part = (struct ph__host_partial){.rank = (uint32_t)rank,
        .block = find_block(sums, group->key.width),
        .count = (uint32_t)group->count,
        .pieces = pieces,
        .is_added = is_added};
    part->sets_all = part->count == sums->blocks[part->block].count;
    for (uint32_t i = 0; i < part->count; i++) {
        const uint32_t feature = group->pieces[i].feature;
        pieces[i] = find_piece(&sums->blocks[part->block], feature);
        is_added[i] = is_set[feature];
        is_set[feature] = true;
        part->sets_all = part->sets_all && !is_added[i] && pieces[i] == i;
    }
    sums->own_count += rank == pass->sharding->rank;
    return PH_OK;
}

static ph_status add_parts(
    struct ph__lookup_pass *pass, const struct ph__spread_lookup *lookup, struct ph__host_sums *sums)
{
    const struct ph__sharding *sharding = pass->sharding;
    const size_t num_local = sharding->plan->topology.ranks_per_host;
    const size_t first_of_host = sharding->rank - sharding->rank % num_local;
    struct ph__shard_group *groups = ph__pass_take(pass, lookup->num_features, sizeof *groups);
    bool *is_set = ph__pass_take(pass, lookup->num_features, sizeof *is_set);
    sums->partials = ph__pass_take(pass, num_local * lookup->num_features, sizeof *sums->partials);
    PH_TRY(ph_builder_status(pass->builder));
    for (size_t rank = first_of_host; rank < first_of_host + num_local; rank++) {
        size_t num_groups;
        PH_TRY(group_shards(pass, lookup, rank, groups, &num_groups));
        if (rank == sharding->rank)
            sums->own_first = sums->num_partials;
        for (size_t g = 0; g < num_groups; g++)
            if (groups[g].is_of_host)
                PH_TRY(add_part(pass, sums, rank, &groups[g], is_set));
    }
    return PH_OK;
}

/* Returns the symbol of the peers' samples, a run-time dimension shared by all exchanges. */
static uint32_t peer_symbol(struct ph__lookup_pass *pass)
{
    const struct ph__topology *topology = &pass->sharding->plan->topology;
    if (pass->peer_symbol == 0)
        pass->peer_symbol = ph__builder_symbol(pass->builder, "peer_samples", PH_SYMBOL_GLOBAL_BATCH,
            topology->world_size / topology->ranks_per_host, SIZE_MAX);
    if (pass->peer_symbol != 0)
        pass->builder->graph.symbols[pass->peer_symbol].divisor = topology->world_size;
    return pass->peer_symbol;
}

/* Plans the sums of this rank's host that give these blocks. */
static ph_status plan_sums(struct ph__lookup_pass *pass, struct ph__spread_lookup *lookup,
    const struct ph__block *blocks, size_t num_blocks)
{
    struct ph__vector_exchange *exchange = lookup->exchange;
    struct ph__arena *arena = &pass->sharding->arena;
    struct ph__host_sums *sums = ph__pass_take(pass, 1, sizeof *sums);
    exchange->peer_samples = ph__dim_of(1, peer_symbol(pass));
    PH_TRY(ph_builder_status(pass->builder));
    *sums = (struct ph__host_sums){.exchange = exchange,
        .channel = exchange->channel + 2,
        .what = ph__arena_printf(arena, "sums on hosts of %s", exchange->what),
        .what_gradient = ph__arena_printf(arena, "%s on hosts", exchange->what_gradient),
        .blocks = blocks,
        .num_blocks = num_blocks};
    exchange->sums = sums;
    return add_parts(pass, lookup, sums);
}

static ph_status plan_host_sums(struct ph__lookup_pass *pass, struct ph__spread_lookup *lookup)
{
    const struct ph__vector_exchange *exchange = lookup->exchange;
    const size_t num_blocks = exchange->own_count - lookup->num_groups;
    return num_blocks == 0 ? PH_OK
                           : plan_sums(pass, lookup,
                                 exchange->blocks + exchange->own_first + lookup->num_groups, num_blocks);
}

/* ---- towers ---- */

/* Returns a block of `count` vectors, all columns of count features in order. */
static ph_status tower_block(
    struct ph__lookup_pass *pass, size_t rank, size_t count, size_t width, struct ph__block *block_out)
{
    struct ph__piece *pieces = ph__pass_take(pass, count, sizeof *pieces);
    PH_TRY(ph_builder_status(pass->builder));
    for (size_t i = 0; i < count; i++)
        pieces[i].feature = (uint32_t)i;
    *block_out = (struct ph__block){.rank = (uint32_t)rank,
        .count = (uint32_t)count,
        .width = (uint32_t)width,
        .is_of_host = true,
        .pieces = pieces};
    return PH_OK;
}

/* Finds the streams of all ranks of the tower's host, and keeps this rank's groups. */
static ph_status group_tower(struct ph__lookup_pass *pass, struct ph__spread_lookup *lookup)
{
    const size_t num_local = pass->sharding->plan->topology.ranks_per_host;
    const size_t first = lookup->tower->host * num_local;
    struct ph__shard_group *groups = ph__pass_take(pass, lookup->num_features, sizeof *groups);
    lookup->host_groups = ph__pass_take(pass, lookup->num_features, sizeof *groups);
    PH_TRY(ph_builder_status(pass->builder));
    for (size_t rank = first; rank < first + num_local; rank++) {
        size_t num_groups;
        PH_TRY(group_shards(pass, lookup, rank, groups, &num_groups));
        for (size_t g = 0; g < num_groups; g++)
            if (groups[g].key.is_cut && is_mean(lookup))
                return ph_fail(PH_ERROR_CONFIG,
                    "tower '%s': model.pooling 'mean' needs tables with whole rows: plan '%s' as table_wise",
                    lookup->tower->name, lookup->declaration->slices[groups[g].slices[0]].name);
        if (rank == pass->sharding->rank)
            keep_own_groups(lookup, groups, num_groups);
    }
    return PH_OK;
}

/* Plans the exchange of a tower's vectors among peers, and, on its host, the sums that its layers read. */
static ph_status plan_tower(struct ph__lookup_pass *pass, struct ph__spread_lookup *lookup)
{
    struct ph__vector_exchange *exchange = lookup->exchange;
    const size_t num_local = pass->sharding->plan->topology.ranks_per_host, dim = exchange->dim;
    const size_t giver = lookup->tower->host * num_local + pass->sharding->rank % num_local;
    const struct ph_type output = ph_value_type(pass->builder, lookup->tower->output);
    struct ph__block *blocks = ph__pass_take(pass, 2, sizeof *blocks);
    PH_TRY(ph_builder_status(pass->builder));
    if (output.num_dims != 3)
        return ph_fail(PH_ERROR_CONFIG, "tower '%s' gives no vectors: (B,vectors,D)", lookup->tower->name);
    exchange->num_features = output.dims[1].extent;
    exchange->dim = output.dims[2].extent;
    exchange->num_blocks = 1;
    exchange->own_count = giver == pass->sharding->rank;
    exchange->blocks = blocks;
    PH_TRY(tower_block(pass, giver, exchange->num_features, exchange->dim, &blocks[0]));
    PH_TRY(group_tower(pass, lookup));
    if (exchange->own_count == 0)
        return PH_OK;
    PH_TRY(tower_block(pass, giver, lookup->num_features, dim, &blocks[1]));
    return plan_sums(pass, lookup, &blocks[1], 1);
}

static ph_status plan_flat(struct ph__lookup_pass *pass, struct ph__spread_lookup *lookup, bool *is_filled)
{
    PH_TRY(add_all_blocks(pass, lookup, is_filled));
    PH_TRY(plan_host_sums(pass, lookup));
    return list_replicas(pass, lookup);
}

ph_status ph__plan_vector_exchange(struct ph__lookup_pass *pass, struct ph__spread_lookup *lookup)
{
    struct ph__sharding *sharding = pass->sharding;
    if (sharding->num_exchanges == PH_MAX_EXCHANGES)
        return ph_fail(PH_ERROR_CONFIG,
            "the model must have at most %d lookups whose tables lie on several ranks",
            (int)PH_MAX_EXCHANGES);
    PH_TRY(ph__array_reserve((void **)&sharding->exchanges, &sharding->exchanges_capacity,
        sharding->num_exchanges + 1, sizeof *sharding->exchanges));
    lookup->exchange = ph__pass_take(pass, 1, sizeof *lookup->exchange);
    const size_t dim = lookup->declaration->shape.dims[1];
    bool *is_filled = calloc(lookup->num_features * dim + 1, sizeof *is_filled);
    ph_status status = ph_builder_status(pass->builder);
    if (status == PH_OK && is_filled == NULL)
        status = ph__out_of_memory("a pass over lookups");
    if (status == PH_OK) {
        *lookup->exchange = (struct ph__vector_exchange){.sharding = sharding,
            .channel = (uint32_t)(PH_CHANNEL_EXCHANGES + PH_EXCHANGE_CHANNELS * sharding->num_exchanges),
            .what = describe_exchange(pass, lookup, "vectors"),
            .what_gradient = describe_exchange(pass, lookup, "gradients"),
            .num_features = lookup->num_features,
            .dim = dim,
            .is_of_items = lookup->node.op == &ph__op_embedding_rows,
            .items = ph_value_type(pass->builder, lookup->ids).dims[1]};
        sharding->exchanges[sharding->num_exchanges++] = lookup->exchange;
        status = lookup->tower != NULL ? plan_tower(pass, lookup) : plan_flat(pass, lookup, is_filled);
    }
    if (status == PH_OK && lookup->node.inputs[PH_EMBEDDING_WEIGHTS] != 0)
        sharding->has_weights = true;
    free(is_filled);
    return status;
}
