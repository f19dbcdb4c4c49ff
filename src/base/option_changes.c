/* Settings as text: all of them, or those that are not at their defaults. */
#include <string.h>

#include "base/option.h"
#include "base/option_value.h"

ph_status ph__config_defaults(
    const struct ph_option_table *table, struct ph_arena *arena, void **settings_out)
{
    void *settings = ph__arena_alloc(arena, table->settings_size);
    if (settings == NULL)
        return PH_ERROR_MEMORY;
    memset(settings, 0, table->settings_size);
    for (size_t i = 0; i < table->num_options; i++) {
        const struct ph_option *option = &table->options[i];
        if (option->default_text != NULL && option->type != PH_OPTION_RECORDS)
            PH_TRY(
                ph__option_parse(option, option->default_text, arena, ph__option_member(option, settings)));
    }
    *settings_out = settings;
    return PH_OK;
}

struct writing {
    struct ph_arena *arena;
    bool has_defaults; /* values that are the defaults are written, too */
    const char *text;
};

/* Appends "PREFIX.KEY=VALUE\n" for each value that is wanted. */
static ph_status append_values(
    struct writing *writing, const struct ph_option_table *table, const char *prefix, void *settings)
{
    struct ph_arena *arena = writing->arena;
    void *defaults = NULL;
    PH_TRY(ph__config_defaults(table, arena, &defaults));
    for (size_t i = 0; i < table->num_options; i++) {
        const struct ph_option *option = &table->options[i];
        if (option->type == PH_OPTION_RECORDS)
            continue;
        const char *value = ph__option_text(option, ph__option_member(option, settings), arena);
        const char *plain = ph__option_text(option, ph__option_member(option, defaults), arena);
        if (value == NULL || plain == NULL)
            return PH_ERROR_MEMORY;
        if (writing->has_defaults || strcmp(value, plain) != 0)
            writing->text = ph__arena_printf(arena, "%s%s%s=%s\n", writing->text, prefix, option->key, value);
        if (writing->text == NULL)
            return PH_ERROR_MEMORY;
    }
    return PH_OK;
}

static ph_status append_records(
    struct writing *writing, const struct ph_option *option, const char *prefix, void *settings)
{
    const struct ph_record_list *list = ph__option_member(option, settings);
    for (size_t r = 0; r < list->count; r++) {
        void *record = (char *)list->items + r * option->records->settings_size;
        const char *inner = ph__arena_printf(writing->arena, "%s%s[%zu].", prefix, option->key, r);
        if (inner == NULL)
            return PH_ERROR_MEMORY;
        PH_TRY(append_values(writing, option->records, inner, record));
    }
    return PH_OK;
}

static ph_status append_section(struct writing *writing, const struct ph_section *section)
{
    const struct ph_option_table *table = section->table;
    const char *dot = table->section[0] != '\0' ? "." : "";
    const char *prefix = ph__arena_printf(writing->arena, "%s%s", table->section, dot);
    if (prefix == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(append_values(writing, table, prefix, section->settings));
    for (size_t i = 0; i < table->num_options; i++)
        if (table->options[i].type == PH_OPTION_RECORDS)
            PH_TRY(append_records(writing, &table->options[i], prefix, section->settings));
    return PH_OK;
}

ph_status ph__config_changes(const struct ph_section *section, struct ph_arena *arena, const char **text_out)
{
    struct writing writing = {.arena = arena, .text = ""};
    PH_TRY(append_section(&writing, section));
    *text_out = writing.text;
    return PH_OK;
}

ph_status ph__config_values(const struct ph_section *section, struct ph_arena *arena, const char **text_out)
{
    struct writing writing = {.arena = arena, .has_defaults = true, .text = ""};
    PH_TRY(append_section(&writing, section));
    *text_out = writing.text;
    return PH_OK;
}
