/* From a table's kind and place to its shards: arithmetic alone. */
#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "plan/plan_choice.h"

/* One of n runs that a count is cut into: the first (count % n) have one more. */
struct run {
    uint64_t first, count;
};

static struct run run_of(uint64_t count, size_t num_runs, size_t index)
{
    const uint64_t each = count / num_runs, more = count % num_runs;
    return (struct run){index * each + (index < more ? index : more), each + (index < more)};
}

/* The same of columns, in blocks of PH_SHARD_COLUMNS, of which the last may be narrower. */
static struct run columns_of(size_t dim, size_t num_runs, size_t index)
{
    const struct run blocks = run_of(ph__divide_up(dim, PH_SHARD_COLUMNS), num_runs, index);
    const size_t first = (size_t)blocks.first * PH_SHARD_COLUMNS;
    return (struct run){first, ph__min(blocks.count * PH_SHARD_COLUMNS, dim - first)};
}

/* What a table is cut into, and where part (column run c, row run r) is. */
struct cut {
    size_t num_row_runs, num_column_runs;
    const uint32_t *ranks; /* of part c * num_row_runs + r; NULL: the host's rank r + c */
    const uint32_t *hosts; /* of column run c; NULL: there is one */
};

static struct cut cut_of(const struct ph_topology *topology, const struct ph_table_facts *table,
    const struct ph_plan_choice *choice)
{
    const size_t num_local = topology->ranks_per_host;
    switch (choice->kind) {
    case PH_SHARD_ROW_WISE:
        return (struct cut){choice->num_places, 1, choice->places, NULL};
    case PH_SHARD_COLUMN_WISE:
        return (struct cut){1, choice->num_places, choice->places, NULL};
    case PH_SHARD_TABLE_ROW_WISE:
        return (struct cut){num_local, 1, NULL, choice->places};
    case PH_SHARD_TABLE_COLUMN_WISE:
        return (struct cut){1, ph__min(num_local, ph__column_parts(table)), NULL, NULL};
    case PH_SHARD_GRID:
        return (struct cut){num_local, choice->num_places, NULL, choice->places};
    case PH_SHARD_DATA_PARALLEL:
        return (struct cut){0};
    case PH_SHARD_TABLE_WISE:
    case PH_SHARD_KIND_COUNT:
        break;
    }
    return (struct cut){1, 1, choice->places, NULL};
}

static uint32_t rank_of(const struct ph_topology *topology, const struct ph_plan_choice *choice,
    const struct cut *cut, size_t column_run, size_t row_run)
{
    if (cut->ranks != NULL)
        return cut->ranks[column_run * cut->num_row_runs + row_run];
    const size_t host = cut->hosts != NULL ? cut->hosts[column_run] : choice->places[0];
    const size_t local = cut->hosts != NULL ? row_run : column_run;
    return (uint32_t)(host * topology->ranks_per_host + local);
}

size_t ph__table_shards(const struct ph_topology *topology, const struct ph_table_facts *table,
    const struct ph_plan_choice *choice, uint32_t table_index, struct ph_table_shard *shards_out)
{
    const struct cut cut = cut_of(topology, table, choice);
    size_t count = 0;
    for (size_t c = 0; c < cut.num_column_runs; c++) {
        const struct run columns = columns_of(table->dim, cut.num_column_runs, c);
        for (size_t r = 0; r < cut.num_row_runs; r++) {
            const struct run rows = run_of(table->num_rows, cut.num_row_runs, r);
            if (rows.count == 0)
                break; /* nor have those behind it any */
            shards_out[count++] = (struct ph_table_shard){table_index, rank_of(topology, choice, &cut, c, r),
                rows.first, rows.count, (uint32_t)columns.first, (uint32_t)columns.count};
        }
    }
    return count;
}

uint64_t ph__part_bytes(const struct ph_table_facts *table, uint64_t num_rows, size_t num_columns)
{
    const uint64_t by_column = table->weight_bytes + table->slot_bytes - table->row_slot_bytes;
    return num_rows * (ph__divide_up(by_column * num_columns, table->dim) + table->row_slot_bytes);
}

/* ---- the plan ---------------------------------------------------------------------------------------------- */

static ph_status build_table(
    struct ph_plan *plan, const struct ph_table_facts *facts, const struct ph_plan_choice *choice)
{
    const size_t index = plan->num_tables;
    struct ph_plan_table *table = &plan->tables[index];
    const char *name = ph__arena_strdup(&plan->arena, facts->name);
    uint32_t *places = ph__arena_alloc_array(&plan->arena, choice->num_places, sizeof *places);
    if (name == NULL || places == NULL)
        return PH_ERROR_MEMORY;
    if (choice->num_places > 0)
        memcpy(places, choice->places, choice->num_places * sizeof *places);
    *table = (struct ph_plan_table){name, choice->kind, facts->num_rows, (uint32_t)facts->dim, places,
        choice->num_places, .first_shard = plan->num_shards};
    struct ph_table_shard *shards = plan->shards + plan->num_shards;
    table->num_shards = ph__table_shards(&plan->topology, facts, choice, (uint32_t)index, shards);
    for (size_t i = 0; i < table->num_shards; i++)
        table->bytes += ph__part_bytes(facts, shards[i].num_rows, shards[i].num_columns);
    if (table->num_shards == 0)
        table->bytes = ph__part_bytes(facts, facts->num_rows, facts->dim);
    plan->num_shards += table->num_shards;
    plan->num_tables++;
    return ph__name_index_add(&plan->names, name);
}

static size_t most_shards(const struct ph_topology *topology, const struct ph_plan_choice *choice)
{
    return choice->num_places * (ph__shard_kind_is_of_hosts(choice->kind) ? topology->ranks_per_host : 1);
}

ph_status ph__plan_build(const struct ph_topology *topology, const struct ph_table_facts *tables,
    size_t num_tables, const struct ph_plan_choice *choices, struct ph_plan *plan_out)
{
    struct ph_plan plan = {.topology = *topology};
    size_t num_shards = 0;
    for (size_t i = 0; i < num_tables; i++)
        num_shards += most_shards(topology, &choices[i]);
    plan.tables = ph__arena_alloc_array(&plan.arena, num_tables, sizeof *plan.tables);
    plan.shards = ph__arena_alloc_array(&plan.arena, num_shards, sizeof *plan.shards);
    ph_status status = plan.tables != NULL && plan.shards != NULL ? PH_OK : PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_tables && status == PH_OK; i++) {
        assert(tables[i].num_rows > 0 && tables[i].dim > 0);
        status = build_table(&plan, &tables[i], &choices[i]);
    }
    if (status == PH_OK)
        *plan_out = plan;
    else
        ph__plan_fini(&plan);
    return status;
}

ph_status ph__plan_replicate(const struct ph_topology *topology, const struct ph_table_facts *tables,
    size_t num_tables, struct ph_plan *plan_out)
{
    struct ph_arena arena = {0};
    struct ph_plan_choice *choices = ph__arena_alloc_array(&arena, num_tables, sizeof *choices);
    ph_status status = choices != NULL ? PH_OK : PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_tables && status == PH_OK; i++)
        choices[i].kind = PH_SHARD_DATA_PARALLEL;
    if (status == PH_OK)
        status = ph__plan_build(topology, tables, num_tables, choices, plan_out);
    ph__arena_fini(&arena);
    return status;
}

const struct ph_plan_table *ph__plan_find(const struct ph_plan *plan, const char *name)
{
    const size_t table = ph__name_index_find(&plan->names, name);
    return table != PH_NO_NAME ? &plan->tables[table] : NULL;
}

void ph__plan_fini(struct ph_plan *plan)
{
    ph__name_index_fini(&plan->names);
    ph__arena_fini(&plan->arena);
    *plan = (struct ph_plan){0};
}
