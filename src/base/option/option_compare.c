/* Compares two readings of the same tables. */
#include "base/option/option.h"
#include "base/option/option_value.h"

#include <string.h>

struct comparison {
    struct ph_arena *arena;
    struct ph_key_filter filter;
    const char *rule;
};

/* prefix: "train." of a section, "optimizer.groups[2]." of a record. */
static ph_status compare_value(const struct comparison *comparison, const struct ph_option *option,
    const char *prefix, void *before, void *after)
{
    struct ph_arena *arena = comparison->arena;
    const char *was = ph__option_text(option, ph__option_member(option, before), arena);
    const char *is = ph__option_text(option, ph__option_member(option, after), arena);
    if (was == NULL || is == NULL)
        return PH_ERROR_MEMORY;
    if (strcmp(was, is) == 0)
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG, "%s%s was '%s' and is now '%s', but %s", prefix, option->key, was, is,
        comparison->rule);
}

static ph_status compare_records(const struct comparison *comparison, const struct ph_option *option,
    const char *prefix, void *before, void *after)
{
    struct ph_arena *arena = comparison->arena;
    const struct ph_option_table *records = option->records;
    const struct ph_record_list *was = ph__option_member(option, before);
    const struct ph_record_list *is = ph__option_member(option, after);
    if (was->count != is->count)
        return ph_fail(PH_ERROR_CONFIG, "%s%s had %zu items and has now %zu, but %s", prefix, option->key,
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
    const struct comparison *comparison, const struct ph_section *before, const struct ph_section *after)
{
    struct ph_arena *arena = comparison->arena;
    const struct ph_option_table *table = before->table;
    const char *dot = table->section[0] != '\0' ? "." : "";
    const char *prefix = ph__arena_printf(arena, "%s%s", table->section, dot);
    if (prefix == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < table->num_options; i++) {
        const struct ph_option *option = &table->options[i];
        const bool is_list = option->type == PH_OPTION_RECORDS;
        if (!ph__key_is_selected(table, option, comparison->filter))
            continue;
        PH_TRY((is_list ? compare_records : compare_value)(
            comparison, option, prefix, before->settings, after->settings));
    }
    return PH_OK;
}

ph_status ph__config_compare(const struct ph_section *before, const struct ph_section *after,
    size_t num_sections, struct ph_key_filter filter, const char *rule)
{
    struct ph_arena arena = {0};
    const struct comparison comparison = {&arena, filter, rule};
    ph_status status = PH_OK;
    for (size_t s = 0; s < num_sections && status == PH_OK; s++)
        status = compare_section(&comparison, &before[s], &after[s]);
    ph__arena_fini(&arena);
    return status;
}
