/* Prints the effective config as YAML, and the keys for docs/CONFIG.md and --help. */
#include <inttypes.h>
#include <string.h>

#include "base/option/option.h"
#include "base/option/option_value.h"
#include "base/text/utf8.h"

/* Tells whether YAML needs an escape: controls, line breaks, byte order marks and noncharacters. */
static bool is_escaped(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
           code == 0xfeff || code == 0xfffe || code == 0xffff;
}

ph_status ph__config_write_text(struct ph__writer *writer, const char *text)
{
    size_t left = strlen(text);
    PH_TRY(ph__writer_write(writer, "\"", 1));
    while (left > 0) {
        uint32_t code;
        size_t size = ph__utf8_decode(text, left, &code);
        if (size == 0)
            return ph_fail(PH_ERROR_USAGE, "'%s' is not UTF-8: a config cannot hold it", text);
        if (code == '"' || code == '\\')
            PH_TRY(ph__writer_printf(writer, "\\%c", (int)code));
        else if (is_escaped(code))
            PH_TRY(ph__writer_printf(writer, "\\u%04" PRIx32, code));
        else
            PH_TRY(ph__writer_write(writer, text, size));
        text += size;
        left -= size;
    }
    return ph__writer_write(writer, "\"", 1);
}

/* Writes ["a", "b"]. */
static ph_status write_texts(struct ph__writer *writer, const struct ph__text_list *list)
{
    PH_TRY(ph__writer_write(writer, "[", 1));
    for (size_t i = 0; i < list->count; i++) {
        PH_TRY(ph__writer_write(writer, ", ", i > 0 ? 2 : 0));
        PH_TRY(ph__config_write_text(writer, list->items[i]));
    }
    return ph__writer_write(writer, "]", 1);
}

/* Writes the value of a key; not for RECORDS. */
static ph_status write_value(struct ph__writer *writer, const struct ph__option *option, void *settings)
{
    if (option->type == PH_OPTION_TEXTS)
        return write_texts(writer, ph__option_member(option, settings));
    struct ph__arena arena = {0};
    const char *text = ph__option_text(option, ph__option_member(option, settings), &arena);
    ph_status status = PH_ERROR_MEMORY;
    if (text != NULL) {
        bool is_text = option->type == PH_OPTION_TEXT || option->type == PH_OPTION_PATH;
        if (is_text)
            status = ph__config_write_text(writer, text);
        else
            status = ph__writer_printf(writer, option->type == PH_OPTION_INTEGERS ? "[%s]" : "%s", text);
    }
    ph__arena_fini(&arena);
    return status;
}

ph_status ph__config_write_path(struct ph__writer *writer, const char *path)
{
    static const struct ph__option option = {.type = PH_OPTION_PATH};
    return write_value(writer, &option, &path);
}

static ph_status write_records(
    struct ph__writer *writer, const struct ph__option *option, void *settings, const char *indent)
{
    const struct ph__option_table *records = option->records;
    const struct ph__record_list *list = ph__option_member(option, settings);
    if (list->count == 0)
        return ph__writer_printf(writer, "%s%s: []\n", indent, option->key);
    PH_TRY(ph__writer_printf(writer, "%s%s:\n", indent, option->key));
    for (size_t r = 0; r < list->count; r++) {
        void *record = (char *)list->items + r * records->settings_size;
        for (size_t i = 0; i < records->num_options; i++) {
            const struct ph__option *inner = &records->options[i];
            PH_TRY(ph__writer_printf(writer, "%s  %s %s: ", indent, i == 0 ? "-" : " ", inner->key));
            PH_TRY(write_value(writer, inner, record));
            PH_TRY(ph__writer_printf(writer, "\n"));
        }
    }
    return PH_OK;
}

static ph_status write_section(struct ph__writer *writer, const struct ph__section *section)
{
    const struct ph__option_table *table = section->table;
    const char *indent = table->section[0] != '\0' ? "  " : "";
    if (table->section[0] != '\0')
        PH_TRY(ph__writer_printf(writer, "%s:\n", table->section));
    for (size_t i = 0; i < table->num_options; i++) {
        const struct ph__option *option = &table->options[i];
        if (option->type == PH_OPTION_RECORDS) {
            PH_TRY(write_records(writer, option, section->settings, indent));
            continue;
        }
        PH_TRY(ph__writer_printf(writer, "%s%s: ", indent, option->key));
        PH_TRY(write_value(writer, option, section->settings));
        PH_TRY(ph__writer_printf(writer, "\n"));
    }
    return PH_OK;
}

ph_status ph__config_write(struct ph__writer *writer, const struct ph__section *sections, size_t num_sections)
{
    for (size_t s = 0; s < num_sections; s++)
        PH_TRY(write_section(writer, &sections[s]));
    return PH_OK;
}

/* ---- descriptions: docs/CONFIG.md as Markdown tables, --help as plain text ---- */

static const char *type_name(enum ph__option_type type)
{
    static const char *const names[] = {"true or false", "integer", "number", "text", "path", "choice",
        "list of integers", "list of texts", "list of mappings"};
    return (size_t)type < sizeof names / sizeof names[0] ? names[type] : "value";
}

/* Returns the default as a reader should see it. */
static const char *default_name(const struct ph__option *option)
{
    if (option->default_text == NULL)
        return "required";
    if (option->default_text[0] != '\0')
        return option->default_text;
    return option->type == PH_OPTION_TEXT ? "\"\"" : "none";
}

/* Returns the words of a choice, or the range, or "" when there is neither; NULL when out of memory. */
static const char *range_name(const struct ph__option *option, struct ph__arena *arena)
{
    if (option->range_text != NULL)
        return option->range_text;
    const char *wanted = ph__option_wanted(option, arena);
    if (option->type == PH_OPTION_CHOICE && wanted != NULL)
        return wanted + strlen("one of ");
    return ph__option_range(option, arena);
}

/* Returns the help, with what the traits allow; NULL when out of memory. */
static const char *meaning_of(
    const struct ph__option_table *table, const struct ph__option *option, struct ph__arena *arena)
{
    const unsigned traits = table->traits | option->traits;
    const bool is_per_rank = (traits & PH_KEY_PER_RANK) != 0 && option->type != PH_OPTION_PATH;
    return ph__arena_printf(arena, "%s%s%s", option->help,
        (traits & PH_KEY_MAY_CHANGE) != 0 ? " May change on resume." : "",
        is_per_rank ? " May differ between ranks." : "");
}

/* Writes a cell, escaping what Markdown would read as emphasis, a tag or the end of the cell. */
static ph_status write_cell(struct ph__writer *writer, const char *text)
{
    PH_TRY(ph__writer_write(writer, " ", 1));
    for (const char *at = text; *at != '\0'; at++) {
        if (strchr("|*<\\", *at) != NULL)
            PH_TRY(ph__writer_write(writer, "\\", 1));
        PH_TRY(ph__writer_write(writer, at, 1));
    }
    return ph__writer_write(writer, " |", 2);
}

/* Writes | key | type | default | range | meaning |. */
static ph_status write_row(struct ph__writer *writer, const struct ph__option *option, const char *prefix,
    const char *range, const char *meaning)
{
    PH_TRY(ph__writer_printf(writer, "| `%s%s` |", prefix, option->key));
    PH_TRY(write_cell(writer, type_name(option->type)));
    PH_TRY(write_cell(writer, default_name(option)));
    PH_TRY(write_cell(writer, range));
    PH_TRY(write_cell(writer, meaning));
    return ph__writer_printf(writer, "\n");
}

static ph_status write_plain(struct ph__writer *writer, const struct ph__option *option, const char *prefix,
    const char *range, const char *meaning)
{
    const char *comma = range[0] != '\0' ? ", " : "";
    PH_TRY(ph__writer_printf(writer, "  %s%s  (%s, %s%s%s)\n", prefix, option->key, type_name(option->type),
        default_name(option), comma, range));
    return ph__writer_printf(writer, "      %s\n", meaning);
}

static ph_status describe_options(struct ph__writer *writer, const struct ph__option_table *table,
    const char *prefix, bool is_markdown, struct ph__arena *arena)
{
    if (is_markdown)
        PH_TRY(ph__writer_printf(
            writer, "\n| key | type | default | range | meaning |\n|---|---|---|---|---|\n"));
    for (size_t i = 0; i < table->num_options; i++) {
        const struct ph__option *option = &table->options[i];
        const char *range = range_name(option, arena);
        const char *meaning = meaning_of(table, option, arena);
        if (range == NULL || meaning == NULL)
            return PH_ERROR_MEMORY;
        PH_TRY((is_markdown ? write_row : write_plain)(writer, option, prefix, range, meaning));
    }
    return PH_OK;
}

static ph_status describe_heading(
    struct ph__writer *writer, const char *marks, const char *title, const char *help, bool is_markdown)
{
    if (is_markdown)
        return ph__writer_printf(writer, "\n%s %s\n\n%s\n", marks, title, help);
    return ph__writer_printf(writer, "\n%s: %s\n", title, help);
}

/* Describes a record's keys in a table of their own below the section's. */
static ph_status describe_records(struct ph__writer *writer, const struct ph__option *option,
    const char *prefix, bool is_markdown, struct ph__arena *arena)
{
    const char *title = ph__arena_printf(arena, "%s%s[]", prefix, option->key);
    const char *inner_prefix = title != NULL ? ph__arena_printf(arena, "%s.", title) : NULL;
    if (inner_prefix == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(describe_heading(writer, "###", title, option->records->help, is_markdown));
    return describe_options(writer, option->records, inner_prefix, is_markdown, arena);
}

static ph_status describe_table(struct ph__writer *writer, const struct ph__option_table *table,
    bool is_markdown, struct ph__arena *arena)
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

ph_status ph__config_describe(struct ph__writer *writer, const struct ph__option_table *const *tables,
    size_t num_tables, bool is_markdown)
{
    struct ph__arena arena = {0};
    ph_status status = PH_OK;
    for (size_t t = 0; t < num_tables && status == PH_OK; t++)
        status = describe_table(writer, tables[t], is_markdown, &arena);
    ph__arena_fini(&arena);
    return status;
}

/* ---- the schema as JSON ---- */

static ph_status add_keys(struct ph__json *table_json, const struct ph__option_table *table, unsigned traits,
    struct ph__arena *arena)
{
    struct ph__json *keys = ph__json_array();
    ph__json_set(table_json, "keys", keys);
    for (size_t i = 0; i < table->num_options; i++) {
        const struct ph__option *option = &table->options[i];
        const char *range = range_name(option, arena);
        struct ph__json *key = ph__json_object();
        ph__json_append(keys, key);
        if (range == NULL)
            return PH_ERROR_MEMORY;
        ph__json_set_text(key, "key", option->key);
        ph__json_set_text(key, "type", type_name(option->type));
        ph__json_set_text(key, "default", option->default_text);
        ph__json_set_text(key, "range", range);
        ph__json_set_text(key, "help", option->help);
        ph__json_set_bool(key, "may_change_on_resume", ((traits | option->traits) & PH_KEY_MAY_CHANGE) != 0);
        if (option->type == PH_OPTION_RECORDS) {
            struct ph__json *records = ph__json_object();
            ph__json_set(key, "records", records);
            PH_TRY(add_keys(records, option->records, traits | option->traits, arena));
        }
    }
    return PH_OK;
}

ph_status ph__config_schema_add(struct ph__json *list, const struct ph__option_table *table)
{
    struct ph__arena arena = {0};
    struct ph__json *table_json = ph__json_object();
    ph__json_append(list, table_json);
    ph__json_set_text(table_json, "section", table->section);
    ph__json_set_text(table_json, "help", table->help);
    const ph_status status = add_keys(table_json, table, table->traits, &arena);
    ph__arena_fini(&arena);
    return status;
}
