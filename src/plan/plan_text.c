/* Writes plans as text: the file, and the tables for people, in the same words. */
#include <string.h>

#include "base/format/text_table.h"
#include "base/option/option.h"
#include "base/text/number.h"
#include "plan/plan_choice.h"
#include "plan/plan_units.h"

static bool holds_some(const struct ph__plan *plan, const struct ph__plan_table *table, size_t rank)
{
    for (size_t i = 0; i < table->num_shards; i++)
        if (plan->shards[table->first_shard + i].rank == rank)
            return true;
    return false;
}

/* Names the ranks that hold some of the table, in runs: "0-3, 6"; "all" for data_parallel. In the arena;
 * NULL: out of memory. */
static const char *ranks_text(
    const struct ph__plan *plan, const struct ph__plan_table *table, struct ph__arena *arena)
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

/* ---- the file ---- */

static ph_status write_places(const struct ph__plan_table *table, struct ph__writer *writer)
{
    const enum ph__place place = ph__shard_kind_place(table->kind);
    if (place == PH_PLACE_NONE)
        return PH_OK;
    PH_TRY(ph__writer_printf(writer, ", %s: ", ph__place_name(place)));
    if (place == PH_PLACE_RANK || place == PH_PLACE_HOST)
        return ph__writer_printf(writer, "%u", table->places[0]);
    for (size_t i = 0; i < table->num_places; i++)
        PH_TRY(ph__writer_printf(writer, "%s%u", i == 0 ? "[" : ", ", table->places[i]));
    return ph__writer_printf(writer, "]");
}

/* Writes a name as a key. YAML wants a question mark before a key of more than 1024 characters; a byte may
 * take six. */
static ph_status write_name(const char *name, struct ph__writer *writer)
{
    const bool is_long = strlen(name) > 1024 / 6 - 2;
    if (strlen(name) > PH_PLAN_MAX_NAME)
        return ph_fail(PH_ERROR_CONFIG,
            "table '%.60s...': a name in a plan file must have at most %d bytes, and this one has %zu", name,
            PH_PLAN_MAX_NAME, strlen(name));
    PH_TRY(ph__writer_printf(writer, is_long ? "  ? " : "  "));
    PH_TRY(ph__config_write_text(writer, name));
    return ph__writer_printf(writer, is_long ? "\n  : " : ": ");
}

static ph_status write_table(const struct ph__plan *plan, const struct ph__plan_table *table,
    struct ph__arena *arena, struct ph__writer *writer)
{
    char bytes[PH_NUMBER_TEXT_BYTES];
    const char *ranks = ranks_text(plan, table, arena);
    if (ranks == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__writer_printf(writer, "  # %s%s, ranks: %s\n", ph__bytes_text(table->bytes, bytes),
        table->kind == PH_SHARD_DATA_PARALLEL ? " each" : "", ranks));
    PH_TRY(write_name(table->name, writer));
    PH_TRY(ph__writer_printf(writer, "{kind: %s", ph__shard_kind_name(table->kind)));
    PH_TRY(write_places(table, writer));
    return ph__writer_printf(writer, "}\n");
}

static ph_status write_towers(const struct ph__plan *plan, struct ph__writer *writer)
{
    if (plan->num_towers > 0)
        PH_TRY(ph__writer_printf(writer, "towers: # their layers run on one host, beside their tables\n"));
    for (size_t i = 0; i < plan->num_towers; i++) {
        PH_TRY(write_name(plan->towers[i].of.name, writer));
        PH_TRY(ph__writer_printf(writer, "%u\n", plan->towers[i].host));
    }
    return PH_OK;
}

ph_status ph__plan_write(const struct ph__plan *plan, struct ph__writer *writer)
{
    struct ph__arena arena = {0};
    PH_TRY(ph__writer_printf(writer,
        "# Which rank holds which rows and columns of which table.\n"
        "version: 1\nworld_size: %zu\nranks_per_host: %zu\ntables:\n",
        plan->topology.world_size, plan->topology.ranks_per_host));
    ph_status status = PH_OK;
    for (size_t i = 0; i < plan->num_tables && status == PH_OK; i++)
        status = write_table(plan, &plan->tables[i], &arena, writer);
    ph__arena_fini(&arena);
    if (status == PH_OK)
        status = write_towers(plan, writer);
    return status == PH_OK ? ph__plan_units_write(&plan->units, writer) : status;
}

ph_status ph__plan_save(const struct ph__plan *plan, const char *path)
{
    struct ph__writer *writer;
    PH_TRY(ph__writer_open_atomic(path, &writer));
    return ph__writer_end(writer, ph__plan_write(plan, writer));
}

/* ---- tables for people ---- */

static ph_status print_tables(const struct ph__plan *plan, struct ph__writer *writer)
{
    static const struct ph__text_column columns[] = {{"table", false}, {"kind", false}, {"ranks", false},
        {"rows", true}, {"columns", true}, {"bytes", true}};
    struct ph__text_table text;
    ph__text_table_init(&text, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < plan->num_tables; i++) {
        const struct ph__plan_table *table = &plan->tables[i];
        const char *ranks = ranks_text(plan, table, &text.arena);
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
    const struct ph__plan *plan, const struct ph__plan_load *loads, struct ph__writer *writer)
{
    static const struct ph__text_column columns[] = {{"rank", true}, {"host", true}, {"bytes", true},
        {"ms a step", true}, {"computing", true}, {"communicating", true}, {"table bytes sent a step", true}};
    struct ph__text_table text;
    ph__text_table_init(&text, columns, sizeof columns / sizeof *columns);
    for (size_t rank = 0; rank < plan->topology.world_size; rank++) {
        char bytes[PH_NUMBER_TEXT_BYTES];
        ph__text_table_cell(&text, "%zu", rank);
        ph__text_table_cell(&text, "%zu", rank / plan->topology.ranks_per_host);
        ph__text_table_cell(&text, "%s", ph__bytes_text(loads[rank].bytes, bytes));
        ph__text_table_number(&text, "%.3f", 1e3 * loads[rank].seconds);
        ph__text_table_number(&text, "%.3f", 1e3 * loads[rank].compute_seconds);
        ph__text_table_number(&text, "%.3f", 1e3 * (loads[rank].seconds - loads[rank].compute_seconds));
        ph__text_table_cell(&text, "%s", ph__bytes_text((uint64_t)loads[rank].sent_bytes, bytes));
    }
    ph_status status = ph__text_table_write(&text, writer);
    ph__text_table_fini(&text);
    return status;
}

/* Says where towers run, and what a planner has weighed. */
static ph_status print_towers(const struct ph__plan *plan, struct ph__writer *writer)
{
    const bool is_on_hosts = plan->num_towers > 0, is_weighed = plan->tower_seconds > 0;
    for (size_t i = 0; i < plan->num_towers; i++)
        PH_TRY(ph__writer_printf(writer, "%s '%s' on host %u", i == 0 ? "\nTowers:" : ",",
            plan->towers[i].of.name, plan->towers[i].host));
    if (is_on_hosts && !is_weighed)
        return ph__writer_printf(writer, ".\n");
    if (!is_weighed)
        return PH_OK;
    if (!is_on_hosts)
        PH_TRY(ph__writer_printf(writer, "\nTowers: on every rank (flat)"));
    return ph__writer_printf(writer,
        ". The busiest rank takes %.3f ms a step with towers on hosts, and %.3f ms with towers on every "
        "rank (flat).\n",
        1e3 * plan->tower_seconds, 1e3 * plan->flat_seconds);
}

ph_status ph__plan_print(
    const struct ph__plan *plan, const struct ph__plan_load *loads, struct ph__writer *writer)
{
    PH_TRY(print_tables(plan, writer));
    PH_TRY(print_towers(plan, writer));
    PH_TRY(ph__writer_printf(writer, "\n"));
    PH_TRY(print_loads(plan, loads, writer));
    return ph__plan_units_print(&plan->units, writer);
}

static const char *end_name(const struct ph__plan_links *links)
{
    return links->are_hosts ? "host" : "rank";
}

static void add_row(const struct ph__plan_links *links, size_t from, struct ph__text_table *text)
{
    ph__text_table_cell(text, "%s %zu", end_name(links), from);
    for (size_t to = 0; to < links->count; to++) {
        char bytes[PH_NUMBER_TEXT_BYTES];
        const double sent = links->bytes[from * links->count + to];
        ph__text_table_cell(text, "%s", from == to ? "–" : ph__bytes_text((uint64_t)sent, bytes));
    }
}

static ph_status print(const struct ph__plan_links *links, struct ph__arena *arena, struct ph__writer *writer)
{
    struct ph__text_column *columns = ph__arena_alloc_array(arena, links->count + 1, sizeof *columns);
    struct ph__text_table text;
    if (columns == NULL)
        return PH_ERROR_MEMORY;
    columns[0] = (struct ph__text_column){"all bytes sent a step by", false};
    for (size_t to = 0; to < links->count; to++) {
        columns[to + 1] =
            (struct ph__text_column){ph__arena_printf(arena, "to %s %zu", end_name(links), to), true};
        if (columns[to + 1].name == NULL)
            return PH_ERROR_MEMORY;
    }
    ph__text_table_init(&text, columns, links->count + 1);
    for (size_t from = 0; from < links->count; from++)
        add_row(links, from, &text);
    const ph_status status = ph__text_table_write(&text, writer);
    ph__text_table_fini(&text);
    return status;
}

ph_status ph__plan_links_print(const struct ph__plan_links *links, struct ph__writer *writer)
{
    struct ph__arena arena = {0};
    const ph_status status = print(links, &arena, writer);
    ph__arena_fini(&arena);
    return status;
}
