/* Towers of a plan. */
#include <string.h>

#include "base/memory/memory.h"
#include "plan/plan_choice.h"

const struct ph__plan_tower *ph__plan_find_tower(const struct ph__plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->num_towers; i++)
        if (strcmp(plan->towers[i].of.name, name) == 0)
            return &plan->towers[i];
    return NULL;
}

/* Checks that the table lies whole on the tower's host. */
static ph_status check_table(
    const struct ph__plan *plan, const struct ph__plan_table *table, const struct ph__plan_tower *tower)
{
    const struct ph__table_shard *shards = plan->shards + table->first_shard;
    if (table->kind != PH_SHARD_TABLE_WISE && table->kind != PH_SHARD_TABLE_ROW_WISE)
        return ph_fail(PH_ERROR_CONFIG,
            "tower '%s' is on host %u, but its table '%s' is %s: tables of a tower must be table_wise or "
            "table_row_wise, on its host",
            tower->of.name, tower->host, table->name, ph__shard_kind_name(table->kind));
    for (size_t i = 0; i < table->num_shards; i++)
        if (shards[i].rank / plan->topology.ranks_per_host != tower->host)
            return ph_fail(PH_ERROR_CONFIG,
                "tower '%s' is on host %u, but its table '%s' is on host %zu: a tower must not be split "
                "over hosts",
                tower->of.name, tower->host, table->name,
                (size_t)shards[i].rank / plan->topology.ranks_per_host);
    return PH_OK;
}

/* Completes a tower by the facts that its tables give; its name is known. */
static ph_status complete(
    struct ph__plan *plan, const struct ph__table_facts *tables, struct ph__plan_tower *tower)
{
    const char *name = ph__arena_strdup(&plan->arena, tower->of.name);
    for (size_t i = 0; i < plan->num_tables && name != NULL; i++) {
        if (tables[i].tower == NULL || strcmp(tables[i].tower->name, name) != 0)
            continue;
        tower->of = *tables[i].tower;
        plan->tables[i].tower = tower;
        PH_TRY(check_table(plan, &plan->tables[i], tower));
    }
    tower->of.name = name;
    return name != NULL ? PH_OK : PH_ERROR_MEMORY;
}

ph_status ph__plan_add_towers(struct ph__plan *plan, const struct ph__table_facts *tables,
    const struct ph__plan_tower *towers, size_t num_towers)
{
    plan->towers = ph__arena_alloc_array(&plan->arena, num_towers, sizeof *plan->towers);
    if (plan->towers == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_towers; i++) {
        plan->towers[i] = towers[i];
        PH_TRY(complete(plan, tables, &plan->towers[plan->num_towers++]));
    }
    return PH_OK;
}
