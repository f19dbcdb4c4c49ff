/* What there is to set: docs/CONFIG.md as Markdown tables, --help as plain text. */
#include <string.h>

#include "base/option/option.h"
#include "base/option/option_value.h"

static const char *type_name(enum ph_option_type type)
{
    static const char *const names[] = {"true or false", "integer", "number", "text", "path", "choice",
        "list of integers", "list of texts", "list of mappings"};
    return (size_t)type < sizeof names / sizeof names[0] ? names[type] : "value";
}

/* The default as a reader should see it. */
static const char *default_name(const struct ph_option *option)
{
    if (option->default_text == NULL)
        return "required";
    if (option->default_text[0] != '\0')
        return option->default_text;
    return option->type == PH_OPTION_TEXT ? "\"\"" : "none";
}

/* The words of a choice, or the range; "" when there is nothing to say. NULL: out of memory. */
static const char *range_name(const struct ph_option *option, struct ph_arena *arena)
{
    if (option->range_text != NULL)
        return option->range_text;
    const char *wanted = ph__option_wanted(option, arena);
    if (option->type == PH_OPTION_CHOICE && wanted != NULL)
        return wanted + strlen("one of ");
    return ph__option_range(option, arena);
}

/* The help, and what the traits allow. NULL: out of memory. */
static const char *meaning_of(
    const struct ph_option_table *table, const struct ph_option *option, struct ph_arena *arena)
{
    const unsigned traits = table->traits | option->traits;
    const bool is_per_rank = (traits & PH_KEY_PER_RANK) != 0 && option->type != PH_OPTION_PATH;
    return ph__arena_printf(arena, "%s%s%s", option->help,
        (traits & PH_KEY_MAY_CHANGE) != 0 ? " May change on resume." : "",
        is_per_rank ? " Ranks may differ." : "");
}

/* What Markdown would take for emphasis, a tag or the end of a cell is escaped. */
static ph_status write_cell(struct ph_writer *writer, const char *text)
{
    PH_TRY(ph__writer_write(writer, " ", 1));
    for (const char *at = text; *at != '\0'; at++) {
        if (strchr("|*<\\", *at) != NULL)
            PH_TRY(ph__writer_write(writer, "\\", 1));
        PH_TRY(ph__writer_write(writer, at, 1));
    }
    return ph__writer_write(writer, " |", 2);
}

/* | key | type | default | range | meaning | */
static ph_status write_row(struct ph_writer *writer, const struct ph_option *option, const char *prefix,
    const char *range, const char *meaning)
{
    PH_TRY(ph__writer_printf(writer, "| `%s%s` |", prefix, option->key));
    PH_TRY(write_cell(writer, type_name(option->type)));
    PH_TRY(write_cell(writer, default_name(option)));
    PH_TRY(write_cell(writer, range));
    PH_TRY(write_cell(writer, meaning));
    return ph__writer_printf(writer, "\n");
}

static ph_status write_plain(struct ph_writer *writer, const struct ph_option *option, const char *prefix,
    const char *range, const char *meaning)
{
    const char *comma = range[0] != '\0' ? ", " : "";
    PH_TRY(ph__writer_printf(writer, "  %s%s  (%s, %s%s%s)\n", prefix, option->key, type_name(option->type),
        default_name(option), comma, range));
    return ph__writer_printf(writer, "      %s\n", meaning);
}

static ph_status describe_options(struct ph_writer *writer, const struct ph_option_table *table,
    const char *prefix, bool is_markdown, struct ph_arena *arena)
{
    if (is_markdown)
        PH_TRY(ph__writer_printf(
            writer, "\n| key | type | default | range | meaning |\n|---|---|---|---|---|\n"));
    for (size_t i = 0; i < table->num_options; i++) {
        const struct ph_option *option = &table->options[i];
        const char *range = range_name(option, arena);
        const char *meaning = meaning_of(table, option, arena);
        if (range == NULL || meaning == NULL)
            return PH_ERROR_MEMORY;
        PH_TRY((is_markdown ? write_row : write_plain)(writer, option, prefix, range, meaning));
    }
    return PH_OK;
}

static ph_status describe_heading(
    struct ph_writer *writer, const char *marks, const char *title, const char *help, bool is_markdown)
{
    if (is_markdown)
        return ph__writer_printf(writer, "\n%s %s\n\n%s\n", marks, title, help);
    return ph__writer_printf(writer, "\n%s: %s\n", title, help);
}

/* A record's keys stand in a table of their own below the section's. */
static ph_status describe_records(struct ph_writer *writer, const struct ph_option *option,
    const char *prefix, bool is_markdown, struct ph_arena *arena)
{
    const char *title = ph__arena_printf(arena, "%s%s[]", prefix, option->key);
    const char *inner_prefix = title != NULL ? ph__arena_printf(arena, "%s.", title) : NULL;
    if (inner_prefix == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(describe_heading(writer, "###", title, option->records->help, is_markdown));
    return describe_options(writer, option->records, inner_prefix, is_markdown, arena);
}

static ph_status describe_table(
    struct ph_writer *writer, const struct ph_option_table *table, bool is_markdown, struct ph_arena *arena)
{
    bool is_top = table->section[0] == '\0';
    const char *prefix = is_top ? "" : ph__arena_printf(arena, "%s.", table->section);
    if (prefix == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(describe_heading(writer, "##", is_top ? "top level" : table->section, table->help, is_markdown));
    PH_TRY(describe_options(writer, table, prefix, is_markdown, arena));
    for (size_t i = 0; i < table->num_options; i++)
        if (table->options[i].type == PH_OPTION_RECORDS)
            PH_TRY(describe_records(writer, &table->options[i], prefix, is_markdown, arena));
    return PH_OK;
}

ph_status ph__config_describe(struct ph_writer *writer, const struct ph_option_table *const *tables,
    size_t num_tables, bool is_markdown)
{
    struct ph_arena arena = {0};
    ph_status status = PH_OK;
    for (size_t t = 0; t < num_tables && status == PH_OK; t++)
        status = describe_table(writer, tables[t], is_markdown, &arena);
    ph__arena_fini(&arena);
    return status;
}
