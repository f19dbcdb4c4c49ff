#include <string.h>

#include "base/option/option.h"
#include "base/text/number.h"
#include "plan/plan_choice.h"
#include "plan/plan_text.h"

static ph_status write_places(const struct ph_plan_table *table, struct ph_writer *writer)
{
    const enum ph_place place = ph__shard_kind_place(table->kind);
    if (place == PH_PLACE_NONE)
        return PH_OK;
    PH_TRY(ph__writer_printf(writer, ", %s: ", ph__place_name(place)));
    if (place == PH_PLACE_RANK || place == PH_PLACE_HOST)
        return ph__writer_printf(writer, "%u", table->places[0]);
    for (size_t i = 0; i < table->num_places; i++)
        PH_TRY(ph__writer_printf(writer, "%s%u", i == 0 ? "[" : ", ", table->places[i]));
    return ph__writer_printf(writer, "]");
}

/* YAML wants a question mark before a key that is written in more than 1024 characters; one of a byte may take six. */
static ph_status write_name(const char *name, struct ph_writer *writer)
{
    const bool is_long = strlen(name) > 1024 / 6 - 2;
    if (strlen(name) > PH_PLAN_MAX_NAME)
        return ph_fail(PH_ERROR_CONFIG,
            "table '%.60s...': a plan file holds names of up to %d bytes, and this one has %zu", name,
            PH_PLAN_MAX_NAME, strlen(name));
    PH_TRY(ph__writer_printf(writer, is_long ? "  ? " : "  "));
    PH_TRY(ph__config_write_text(writer, name));
    return ph__writer_printf(writer, is_long ? "\n  : " : ": ");
}

static ph_status write_table(const struct ph_plan *plan, const struct ph_plan_table *table,
    struct ph_arena *arena, struct ph_writer *writer)
{
    char bytes[PH_NUMBER_TEXT_BYTES];
    const char *ranks = ph__plan_ranks_text(plan, table, arena);
    if (ranks == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__writer_printf(writer, "  # %s%s, ranks: %s\n", ph__bytes_text(table->bytes, bytes),
        table->kind == PH_SHARD_DATA_PARALLEL ? " each" : "", ranks));
    PH_TRY(write_name(table->name, writer));
    PH_TRY(ph__writer_printf(writer, "{kind: %s", ph__shard_kind_name(table->kind)));
    PH_TRY(write_places(table, writer));
    return ph__writer_printf(writer, "}\n");
}

ph_status ph__plan_write(const struct ph_plan *plan, struct ph_writer *writer)
{
    struct ph_arena arena = {0};
    PH_TRY(ph__writer_printf(writer,
        "# Which rank holds which rows and columns of which table.\n"
        "version: 1\nworld_size: %zu\nranks_per_host: %zu\ntables:\n",
        plan->topology.world_size, plan->topology.ranks_per_host));
    ph_status status = PH_OK;
    for (size_t i = 0; i < plan->num_tables && status == PH_OK; i++)
        status = write_table(plan, &plan->tables[i], &arena, writer);
    ph__arena_fini(&arena);
    return status;
}

ph_status ph__plan_save(const struct ph_plan *plan, const char *path)
{
    struct ph_writer *writer;
    PH_TRY(ph__writer_open_atomic(path, &writer));
    ph_status status = ph__plan_write(plan, writer);
    if (status == PH_OK)
        status = ph__writer_finish(writer);
    ph__writer_close(writer);
    return status;
}
