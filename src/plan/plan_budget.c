/* Whether a plan that somebody else has made keeps to what a rank may spend. */
#include <stdlib.h>

#include "base/text/number.h"
#include "plan/plan_choice.h"

/* What a rank has of a table: of one that is cut, its shard. */
static uint64_t bytes_on(
    const struct ph_plan *plan, const struct ph_table_facts *tables, size_t table, size_t rank)
{
    const struct ph_plan_table *planned = &plan->tables[table];
    const struct ph_table_shard *shards = plan->shards + planned->first_shard;
    if (planned->kind == PH_SHARD_DATA_PARALLEL)
        return planned->bytes;
    for (size_t i = 0; i < planned->num_shards; i++)
        if (shards[i].rank == rank)
            return ph__part_bytes(&tables[table], shards[i].num_rows, shards[i].num_columns);
    return 0;
}

static ph_status refuse(const struct ph_plan *plan, const struct ph_table_facts *tables, size_t rank,
    uint64_t held_bytes, uint64_t rank_bytes)
{
    char held[PH_NUMBER_TEXT_BYTES], allowed[PH_NUMBER_TEXT_BYTES], missing[PH_NUMBER_TEXT_BYTES],
        largest[PH_NUMBER_TEXT_BYTES];
    size_t most = 0;
    for (size_t i = 0; i < plan->num_tables; i++)
        if (bytes_on(plan, tables, i, rank) > bytes_on(plan, tables, most, rank))
            most = i;
    return ph_fail(PH_ERROR_MEMORY,
        "rank %zu of %zu would hold %s of tables with their optimizer's slots, where %s are allowed: %s are "
        "missing; the most is of table '%s', %s",
        rank, plan->topology.world_size, ph__bytes_text(held_bytes, held),
        ph__bytes_text(rank_bytes, allowed), ph__bytes_text(held_bytes - rank_bytes, missing),
        tables[most].name, ph__bytes_text(bytes_on(plan, tables, most, rank), largest));
}

static void add_bytes(const struct ph_plan *plan, const struct ph_table_facts *tables, uint64_t *held)
{
    for (size_t i = 0; i < plan->num_shards; i++) {
        const struct ph_table_shard *shard = &plan->shards[i];
        held[shard->rank] += ph__part_bytes(&tables[shard->table], shard->num_rows, shard->num_columns);
    }
    for (size_t i = 0; i < plan->num_tables; i++)
        for (size_t r = 0; plan->tables[i].kind == PH_SHARD_DATA_PARALLEL && r < plan->topology.world_size;
             r++)
            held[r] += plan->tables[i].bytes;
}

ph_status ph__plan_check_bytes(
    const struct ph_plan *plan, const struct ph_table_facts *tables, uint64_t rank_bytes)
{
    const size_t world_size = plan->topology.world_size;
    size_t fullest = 0;
    if (rank_bytes == 0)
        return PH_OK;
    uint64_t *held = calloc(world_size, sizeof *held);
    if (held == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for the bytes of %zu ranks", world_size);
    add_bytes(plan, tables, held);
    for (size_t rank = 0; rank < world_size; rank++)
        if (held[rank] > held[fullest])
            fullest = rank;
    const uint64_t most = held[fullest];
    free(held);
    return most > rank_bytes ? refuse(plan, tables, fullest, most, rank_bytes) : PH_OK;
}
