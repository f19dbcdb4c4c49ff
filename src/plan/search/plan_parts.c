#include "plan/search/plan_parts.h"

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "plan/plan_cost.h"

/* ---- parts ---- */

/* Gives rows and columns of the largest part of a table that is cut so. */
static void largest_part(const struct ph__table_facts *table, const struct ph__table_cut *cut,
    uint64_t *rows_out, size_t *columns_out)
{
    const size_t blocks = ph__divide_up(ph__divide_up(table->dim, PH_SHARD_COLUMNS), cut->num_parts);
    *rows_out = table->num_rows;
    *columns_out = table->dim;
    if (cut->kind == PH_SHARD_ROW_WISE)
        *rows_out = ph__divide_up(table->num_rows, cut->num_parts);
    if (cut->kind == PH_SHARD_COLUMN_WISE)
        *columns_out = ph__min(blocks * PH_SHARD_COLUMNS, table->dim);
}

uint64_t ph__cut_bytes(const struct ph__table_facts *table, const struct ph__table_cut *cut)
{
    uint64_t rows;
    size_t columns;
    largest_part(table, cut, &rows, &columns);
    return ph__table_shard_bytes(table, rows, columns);
}

/* Adds a part of the table to a unit's. */
static ph_status add_part(
    const struct ph__units *units, size_t table, const struct ph__table_cut *cut, struct ph__unit *unit)
{
    const struct ph__pricing *pricing = units->placing->pricing;
    const struct ph__table_facts *facts = &pricing->tables[table];
    const bool is_copied = cut->kind == PH_SHARD_DATA_PARALLEL;
    const double share = is_copied ? 1 / (double)pricing->topology->world_size : 1;
    uint64_t rows;
    size_t columns;
    largest_part(facts, cut, &rows, &columns);
    PH_TRY(ph__add_part(pricing, table, (double)rows, columns, share, unit->description));
    unit->columns += is_copied ? 0 : ph__sent_columns(facts, (double)rows, columns);
    unit->bytes += ph__cut_bytes(facts, cut);
    return pricing->model->compute(pricing->model->context, unit->description, 1, &unit->ms);
}

ph_status ph__units_cut(struct ph__units *units, const struct ph__table_cut *cuts)
{
    for (size_t u = 0; u < units->num_units; u++) {
        struct ph__unit *unit = &units->units[u];
        const struct ph__table_cut cut = cuts[unit->tables[0]];
        if (unit->cut.kind == cut.kind && unit->cut.num_parts == cut.num_parts)
            continue;
        *unit = (struct ph__unit){.tables = unit->tables, .num_tables = unit->num_tables, .cut = cut};
        for (size_t k = 0; k < unit->num_tables; k++)
            PH_TRY(add_part(units, unit->tables[k], &cut, unit));
    }
    return PH_OK;
}

ph_status ph__units_weigh(const struct ph__units *units, double *table_ms_out)
{
    static const struct ph__table_cut whole = {PH_SHARD_TABLE_WISE, 1};
    for (size_t table = 0; table < units->placing->pricing->num_tables; table++) {
        struct ph__unit alone = {0};
        PH_TRY(add_part(units, table, &whole, &alone));
        table_ms_out[table] = alone.ms;
    }
    return PH_OK;
}

/* ---- units ---- */

ph_status ph__units_init(const struct ph__placing *placing, struct ph__units *units)
{
    const struct ph__plan_limits *limits = &placing->limits;
    const size_t num_tables = placing->pricing->num_tables;
    *units = (struct ph__units){.placing = placing};
    bool *is_grouped = ph__arena_alloc_array(&units->arena, num_tables, sizeof *is_grouped);
    units->units = ph__arena_alloc_array(&units->arena, num_tables, sizeof *units->units);
    units->singles = ph__arena_alloc_array(&units->arena, num_tables, sizeof *units->singles);
    if (is_grouped == NULL || units->units == NULL || units->singles == NULL)
        return PH_ERROR_MEMORY;
    for (size_t g = 0; g < limits->num_groups; g++) {
        const struct ph__table_group *group = &limits->groups[g];
        for (size_t k = 0; !group->is_apart && k < group->num_tables; k++)
            is_grouped[group->tables[k]] = true;
        if (!group->is_apart)
            units->units[units->num_units++] =
                (struct ph__unit){.tables = group->tables, .num_tables = group->num_tables};
    }
    for (size_t table = 0; table < num_tables; table++) {
        units->singles[table] = (uint32_t)table;
        if (!is_grouped[table])
            units->units[units->num_units++] =
                (struct ph__unit){.tables = &units->singles[table], .num_tables = 1};
    }
    return PH_OK;
}

void ph__units_fini(struct ph__units *units)
{
    ph__arena_fini(&units->arena);
}
