#include "plan/plan_text.h"

static bool holds_some(const struct ph_plan *plan, const struct ph_plan_table *table, size_t rank)
{
    for (size_t i = 0; i < table->num_shards; i++)
        if (plan->shards[table->first_shard + i].rank == rank)
            return true;
    return false;
}

const char *ph__plan_ranks_text(
    const struct ph_plan *plan, const struct ph_plan_table *table, struct ph_arena *arena)
{
    const size_t world_size = plan->topology.world_size;
    const char *text = table->kind == PH_SHARD_DATA_PARALLEL ? "all" : "";
    size_t end;
    for (size_t rank = 0; rank < world_size && text != NULL; rank = end + 1) {
        for (end = rank; end < world_size && holds_some(plan, table, end);)
            end++;
        const char *comma = text[0] != '\0' ? ", " : "";
        if (end == rank + 1)
            text = ph__arena_printf(arena, "%s%s%zu", text, comma, rank);
        else if (end > rank)
            text = ph__arena_printf(arena, "%s%s%zu-%zu", text, comma, rank, end - 1);
    }
    return text;
}
