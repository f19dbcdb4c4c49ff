#include "base/format/text_table.h"
#include "base/text/number.h"
#include "plan/plan_text.h"

static ph_status print_tables(const struct ph_plan *plan, struct ph_writer *writer)
{
    static const struct ph_text_column columns[] = {{"table", false}, {"kind", false}, {"ranks", false},
        {"rows", true}, {"columns", true}, {"bytes", true}};
    struct ph_text_table text;
    ph__text_table_init(&text, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < plan->num_tables; i++) {
        const struct ph_plan_table *table = &plan->tables[i];
        const char *ranks = ph__plan_ranks_text(plan, table, &text.arena);
        char bytes[PH_NUMBER_TEXT_BYTES];
        ph__text_table_cell(&text, "%s", table->name);
        ph__text_table_cell(&text, "%s", ph__shard_kind_name(table->kind));
        ph__text_table_cell(&text, "%s", ranks != NULL ? ranks : "");
        ph__text_table_cell(&text, "%llu", (unsigned long long)table->num_rows);
        ph__text_table_cell(&text, "%u", table->dim);
        ph__text_table_cell(&text, "%s", ph__bytes_text(table->bytes, bytes));
        if (ranks == NULL)
            text.status = PH_ERROR_MEMORY;
    }
    ph_status status = ph__text_table_write(&text, writer);
    ph__text_table_fini(&text);
    return status;
}

static ph_status print_loads(
    const struct ph_plan *plan, const struct ph_plan_load *loads, struct ph_writer *writer)
{
    static const struct ph_text_column columns[] = {{"rank", true}, {"host", true}, {"bytes", true},
        {"ms a step", true}, {"table bytes sent a step", true}};
    struct ph_text_table text;
    ph__text_table_init(&text, columns, sizeof columns / sizeof *columns);
    for (size_t rank = 0; rank < plan->topology.world_size; rank++) {
        char bytes[PH_NUMBER_TEXT_BYTES];
        ph__text_table_cell(&text, "%zu", rank);
        ph__text_table_cell(&text, "%zu", rank / plan->topology.ranks_per_host);
        ph__text_table_cell(&text, "%s", ph__bytes_text(loads[rank].bytes, bytes));
        ph__text_table_number(&text, "%.3f", 1e3 * loads[rank].seconds);
        ph__text_table_cell(&text, "%s", ph__bytes_text((uint64_t)loads[rank].sent_bytes, bytes));
    }
    ph_status status = ph__text_table_write(&text, writer);
    ph__text_table_fini(&text);
    return status;
}

ph_status ph__plan_print(
    const struct ph_plan *plan, const struct ph_plan_load *loads, struct ph_writer *writer)
{
    PH_TRY(print_tables(plan, writer));
    PH_TRY(ph__writer_printf(writer, "\n"));
    return print_loads(plan, loads, writer);
}
