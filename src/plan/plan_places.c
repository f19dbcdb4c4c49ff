/* Places for tables whose kind is decided and whose place is not: by bytes alone, which every rank knows alike. */
#include <stdlib.h>

#include "base/sizes.h"
#include "plan/plan_choice.h"

struct placing {
    const struct ph_topology *topology;
    const struct ph_table_facts *tables;
    size_t num_tables;
    struct ph_plan_choice *choices;
    struct ph_arena *arena;
    uint64_t *rank_bytes;          /* (world_size) so far */
    uint32_t *order;               /* (world_size) scratch: ranks or hosts, the emptiest first */
    struct ph_table_shard *shards; /* (world_size) scratch */
};

/* Of the kind's places, ranks or hosts, how many there are. */
static size_t count_all(const struct placing *placing, enum ph_shard_kind kind)
{
    const struct ph_topology *topology = placing->topology;
    return ph__shard_kind_is_of_hosts(kind) ? ph__num_hosts(topology) : topology->world_size;
}

/* How many places a table of the kind takes. */
static size_t count_places(const struct placing *placing, size_t table, enum ph_shard_kind kind)
{
    const size_t columns = ph__column_parts(&placing->tables[table]);
    switch (kind) {
    case PH_SHARD_ROW_WISE:
        return placing->topology->world_size;
    case PH_SHARD_COLUMN_WISE:
        return ph__min(placing->topology->world_size, columns);
    case PH_SHARD_GRID:
        return ph__min(ph__num_hosts(placing->topology), columns);
    default:
        return 1;
    }
}

/* Whether the table goes to all ranks or hosts, however full they are. */
static bool goes_everywhere(const struct placing *placing, size_t table, enum ph_shard_kind kind)
{
    return kind == PH_SHARD_DATA_PARALLEL || count_places(placing, table, kind) == count_all(placing, kind);
}

static void add_bytes(struct placing *placing, size_t table)
{
    const struct ph_table_facts *facts = &placing->tables[table];
    const size_t count =
        ph__table_shards(placing->topology, facts, &placing->choices[table], 0, placing->shards);
    for (size_t i = 0; i < count; i++)
        placing->rank_bytes[placing->shards[i].rank] +=
            ph__part_bytes(facts, placing->shards[i].num_rows, placing->shards[i].num_columns);
}

static uint64_t bytes_at(const struct placing *placing, bool is_host, size_t place)
{
    const size_t num_local = is_host ? placing->topology->ranks_per_host : 1;
    uint64_t bytes = 0;
    for (size_t i = 0; i < num_local; i++)
        bytes += placing->rank_bytes[place * num_local + i];
    return bytes;
}

static int ascending(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

/* The `wanted` emptiest of count places come first, in ascending order. */
static void choose_emptiest(const struct placing *placing, bool is_host, size_t count, size_t wanted)
{
    uint32_t *order = placing->order;
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    for (size_t i = 0; i < wanted; i++) {
        size_t best = i;
        for (size_t j = i + 1; j < count; j++) {
            const uint64_t bytes = bytes_at(placing, is_host, order[j]),
                           least = bytes_at(placing, is_host, order[best]);
            best = bytes < least || (bytes == least && order[j] < order[best]) ? j : best;
        }
        const uint32_t chosen = order[best];
        order[best] = order[i];
        order[i] = chosen;
    }
    qsort(order, wanted, sizeof *order, ascending);
}

static ph_status place_table(struct placing *placing, size_t table)
{
    struct ph_plan_choice *choice = &placing->choices[table];
    const size_t wanted = count_places(placing, table, choice->kind);
    uint32_t *places = ph__arena_alloc_array(placing->arena, wanted, sizeof *places);
    if (places == NULL)
        return PH_ERROR_MEMORY;
    choose_emptiest(
        placing, ph__shard_kind_is_of_hosts(choice->kind), count_all(placing, choice->kind), wanted);
    for (size_t i = 0; i < wanted; i++)
        places[i] = placing->order[i];
    choice->places = places;
    choice->num_places = wanted;
    add_bytes(placing, table);
    return PH_OK;
}

/* The largest table that still has no place; num_tables: all have. */
static size_t largest_left(const struct placing *placing)
{
    size_t largest = placing->num_tables;
    uint64_t most = 0;
    for (size_t i = 0; i < placing->num_tables; i++) {
        const struct ph_plan_choice *choice = &placing->choices[i];
        if (choice->num_places > 0 || choice->kind == PH_SHARD_DATA_PARALLEL)
            continue;
        const uint64_t bytes =
            ph__part_bytes(&placing->tables[i], placing->tables[i].num_rows, placing->tables[i].dim);
        if (largest == placing->num_tables || bytes > most) {
            largest = i;
            most = bytes;
        }
    }
    return largest;
}

static ph_status place_all(struct placing *placing)
{
    for (size_t i = 0; i < placing->num_tables; i++) {
        const struct ph_plan_choice *choice = &placing->choices[i];
        if (choice->num_places > 0)
            add_bytes(placing, i);
        else if (choice->kind != PH_SHARD_DATA_PARALLEL && goes_everywhere(placing, i, choice->kind))
            PH_TRY(place_table(placing, i));
    }
    for (size_t i; (i = largest_left(placing)) < placing->num_tables;)
        PH_TRY(place_table(placing, i));
    return PH_OK;
}

ph_status ph__plan_places(const struct ph_topology *topology, const struct ph_table_facts *tables,
    size_t num_tables, struct ph_plan_choice *choices, struct ph_arena *arena)
{
    const size_t world_size = topology->world_size;
    struct placing placing = {
        .topology = topology, .tables = tables, .num_tables = num_tables, .choices = choices, .arena = arena};
    placing.rank_bytes = ph__arena_alloc_array(arena, world_size, sizeof *placing.rank_bytes);
    placing.order = ph__arena_alloc_array(arena, world_size, sizeof *placing.order);
    placing.shards = ph__arena_alloc_array(arena, world_size, sizeof *placing.shards);
    if (placing.rank_bytes == NULL || placing.order == NULL || placing.shards == NULL)
        return PH_ERROR_MEMORY;
    return place_all(&placing);
}
