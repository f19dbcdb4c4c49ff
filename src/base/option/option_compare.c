/* Compares two readings of the same tables, and one reading with the defaults. */
#include "base/option/option.h"

#include <stdlib.h>
#include <string.h>

#include "base/option/option_value.h"

/* Returns "train." for a section, "" for the top level; NULL when out of memory. */
static const char *prefix_of(const struct ph__option_table *table, struct ph__arena *arena)
{
    return ph__arena_printf(arena, "%s%s", table->section, table->section[0] != '\0' ? "." : "");
}

/* ---- two readings ---- */

struct comparison {
    struct ph__arena *arena;
    struct ph__key_filter filter;
    const char *rule;
};

/* Compares a key's values. prefix: "train." for a section, "optimizer.groups[2]." for a record. */
static ph_status compare_value(const struct comparison *comparison, const struct ph__option *option,
    const char *prefix, void *before, void *after)
{
    struct ph__arena *arena = comparison->arena;
    const char *was = ph__option_text(option, ph__option_member(option, before), arena);
    const char *is = ph__option_text(option, ph__option_member(option, after), arena);
    if (was == NULL || is == NULL)
        return PH_ERROR_MEMORY;
    if (strcmp(was, is) == 0)
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG, "%s%s was '%s' and is now '%s', but %s", prefix, option->key, was, is,
        comparison->rule);
}

static ph_status compare_records(const struct comparison *comparison, const struct ph__option *option,
    const char *prefix, void *before, void *after)
{
    struct ph__arena *arena = comparison->arena;
    const struct ph__option_table *records = option->records;
    const struct ph__record_list *was = ph__option_member(option, before);
    const struct ph__record_list *is = ph__option_member(option, after);
    if (was->count != is->count)
        return ph_fail(PH_ERROR_CONFIG, "%s%s had %zu items and now has %zu, but %s", prefix, option->key,
            was->count, is->count, comparison->rule);
    for (size_t r = 0; r < was->count; r++) {
        const char *inner = ph__arena_printf(arena, "%s%s[%zu].", prefix, option->key, r);
        if (inner == NULL)
            return PH_ERROR_MEMORY;
        for (size_t i = 0; i < records->num_options; i++)
            if (ph__key_is_selected(records, &records->options[i], comparison->filter))
                PH_TRY(compare_value(comparison, &records->options[i], inner,
                    (char *)was->items + r * records->settings_size,
                    (char *)is->items + r * records->settings_size));
    }
    return PH_OK;
}

static ph_status compare_section(
    const struct comparison *comparison, const struct ph__section *before, const struct ph__section *after)
{
    const struct ph__option_table *table = before->table;
    const char *prefix = prefix_of(table, comparison->arena);
    if (prefix == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < table->num_options; i++) {
        const struct ph__option *option = &table->options[i];
        const bool is_list = option->type == PH_OPTION_RECORDS;
        if (!ph__key_is_selected(table, option, comparison->filter))
            continue;
        PH_TRY((is_list ? compare_records : compare_value)(
            comparison, option, prefix, before->settings, after->settings));
    }
    return PH_OK;
}

ph_status ph__config_compare(const struct ph__section *before, const struct ph__section *after,
    size_t num_sections, struct ph__key_filter filter, const char *rule)
{
    struct ph__arena arena = {0};
    const struct comparison comparison = {&arena, filter, rule};
    ph_status status = PH_OK;
    for (size_t s = 0; s < num_sections && status == PH_OK; s++)
        status = compare_section(&comparison, &before[s], &after[s]);
    ph__arena_fini(&arena);
    return status;
}

/* ---- a reading and the defaults ---- */

ph_status ph__config_defaults(
    const struct ph__option_table *table, struct ph__arena *arena, void **settings_out)
{
    void *settings = ph__arena_alloc(arena, table->settings_size);
    if (settings == NULL)
        return PH_ERROR_MEMORY;
    memset(settings, 0, table->settings_size);
    for (size_t i = 0; i < table->num_options; i++) {
        const struct ph__option *option = &table->options[i];
        if (option->default_text != NULL && option->type != PH_OPTION_RECORDS)
            PH_TRY(
                ph__option_parse(option, option->default_text, arena, ph__option_member(option, settings)));
    }
    *settings_out = settings;
    return PH_OK;
}

struct writing {
    struct ph__writer *writer; /* into memory */
    struct ph__key_filter filter;
    bool has_defaults; /* values at their defaults are written, too */
};

/* Writes "PREFIX.KEY=VALUE\n" for each selected value. */
static ph_status write_values(const struct writing *writing, const struct ph__option_table *table,
    const char *prefix, void *settings, void *defaults, struct ph__arena *arena)
{
    for (size_t i = 0; i < table->num_options; i++) {
        const struct ph__option *option = &table->options[i];
        if (option->type == PH_OPTION_RECORDS || !ph__key_is_selected(table, option, writing->filter))
            continue;
        const char *value = ph__option_text(option, ph__option_member(option, settings), arena);
        const char *plain = ph__option_text(option, ph__option_member(option, defaults), arena);
        if (value == NULL || plain == NULL)
            return PH_ERROR_MEMORY;
        if (writing->has_defaults || strcmp(value, plain) != 0)
            PH_TRY(ph__writer_printf(writing->writer, "%s%s=%s\n", prefix, option->key, value));
    }
    return PH_OK;
}

static ph_status write_record(const struct writing *writing, const struct ph__option_table *records,
    const char *prefix, void *record, void *defaults)
{
    struct ph__arena arena = {0};
    const ph_status status = write_values(writing, records, prefix, record, defaults, &arena);
    ph__arena_fini(&arena);
    return status;
}

static ph_status write_records(const struct writing *writing, const struct ph__option *option,
    const char *prefix, void *settings, struct ph__arena *arena)
{
    const struct ph__record_list *list = ph__option_member(option, settings);
    void *defaults = NULL;
    PH_TRY(ph__config_defaults(option->records, arena, &defaults));
    for (size_t r = 0; r < list->count; r++) {
        void *record = (char *)list->items + r * option->records->settings_size;
        const char *inner = ph__arena_printf(arena, "%s%s[%zu].", prefix, option->key, r);
        if (inner == NULL)
            return PH_ERROR_MEMORY;
        PH_TRY(write_record(writing, option->records, inner, record, defaults));
    }
    return PH_OK;
}

static ph_status write_section(
    const struct writing *writing, const struct ph__section *section, struct ph__arena *arena)
{
    const struct ph__option_table *table = section->table;
    const char *prefix = prefix_of(table, arena);
    void *defaults = NULL;
    if (prefix == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__config_defaults(table, arena, &defaults));
    PH_TRY(write_values(writing, table, prefix, section->settings, defaults, arena));
    for (size_t i = 0; i < table->num_options; i++)
        if (table->options[i].type == PH_OPTION_RECORDS &&
            ph__key_is_selected(table, &table->options[i], writing->filter))
            PH_TRY(write_records(writing, &table->options[i], prefix, section->settings, arena));
    return PH_OK;
}

/* Copies the written text into the arena. */
static ph_status keep_text(struct ph__writer *writer, struct ph__arena *arena, const char **text_out)
{
    size_t size = 0;
    char *bytes = ph__writer_take(writer, &size);
    char *text = ph__arena_alloc(arena, size + 1); /* zeroed */
    if (text != NULL && size > 0)
        memcpy(text, bytes, size);
    free(bytes);
    *text_out = text;
    return text != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static ph_status finish_text(const struct writing *writing, const struct ph__section *sections,
    size_t num_sections, struct ph__arena *arena, const char **text_out)
{
    for (size_t i = 0; i < num_sections; i++)
        PH_TRY(write_section(writing, &sections[i], arena));
    PH_TRY(ph__writer_finish(writing->writer));
    return keep_text(writing->writer, arena, text_out);
}

static ph_status write_text(struct writing writing, const struct ph__section *sections, size_t num_sections,
    struct ph__arena *arena, const char **text_out)
{
    PH_TRY(ph__writer_open_memory("settings", SIZE_MAX, &writing.writer));
    const ph_status status = finish_text(&writing, sections, num_sections, arena, text_out);
    ph__writer_close(writing.writer);
    return status;
}

ph_status ph__config_changes(const struct ph__section *sections, size_t num_sections,
    struct ph__key_filter filter, struct ph__arena *arena, const char **text_out)
{
    return write_text((struct writing){.filter = filter}, sections, num_sections, arena, text_out);
}

ph_status ph__config_values(const struct ph__section *sections, size_t num_sections,
    struct ph__key_filter filter, struct ph__arena *arena, const char **text_out)
{
    const struct writing writing = {.filter = filter, .has_defaults = true};
    return write_text(writing, sections, num_sections, arena, text_out);
}
