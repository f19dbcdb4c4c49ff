/* Reads a config: defaults, then the file's nodes, then the sets. All find their keys in the same way.
 *
 * Each option has a state beside the settings: whether it was given and, for a list of records, where each
 * record began and which of its members were given, so that an error for a missing member has the record's
 * line. */
#include "base/option/option.h"

#include <string.h>

#include "base/format/yaml.h"
#include "base/memory/memory.h"
#include "base/option/option_find.h"
#include "base/option/option_value.h"

#define MAX_RECORDS ((size_t)1 << 16)

/* ---- assignment ---- */

static ph_status apply_default(
    const struct ph__config_reading *reading, const struct ph__option *option, void *member)
{
    if (option->default_text == NULL || option->type == PH_OPTION_RECORDS)
        return PH_OK; /* required, or empty: the settings are zeroed */
    if (ph__option_parse(option, option->default_text, reading->arena, member) != PH_OK)
        return ph_fail(PH_ERROR_BUG, "the default of option '%s': %s", option->key, ph_error_text());
    return PH_OK;
}

static ph_status begin_records(
    const struct ph__config_reading *reading, const struct ph__config_target *target, size_t count)
{
    const struct ph__option_table *records = target->option->records;
    size_t num_members = 0;
    if (count > MAX_RECORDS || !ph__size_mul(count, records->num_options, &num_members))
        return ph_fail(PH_ERROR_CONFIG, "%s: a list of %zu items is too long", reading->where, count);
    struct ph__record_list list = {.count = count};
    list.items = ph__arena_alloc_array(reading->arena, count, records->settings_size);
    target->state->members_given = ph__arena_alloc_array(reading->arena, num_members, sizeof(bool));
    target->state->record_where = ph__arena_alloc_array(reading->arena, count, sizeof(const char *));
    if (list.items == NULL || target->state->members_given == NULL || target->state->record_where == NULL)
        return PH_ERROR_MEMORY;
    *(struct ph__record_list *)target->member = list;
    for (size_t i = 0; i < records->num_options && count > 0; i++) {
        const struct ph__option *inner = &records->options[i];
        PH_TRY(apply_default(reading, inner, ph__option_member(inner, list.items)));
    }
    for (size_t r = 0; r < count; r++) {
        target->state->record_where[r] = reading->where;
        if (r > 0)
            memcpy(ph__config_record(target, r), list.items, records->settings_size);
    }
    return PH_OK;
}

static void *member_place(const struct ph__config_target *target)
{
    return ph__option_member(target->inner, ph__config_record(target, target->index));
}

static void mark_member(const struct ph__config_target *target)
{
    const struct ph__option_table *records = target->option->records;
    size_t member = (size_t)(target->inner - records->options);
    target->state->members_given[target->index * records->num_options + member] = true;
}

static ph_status apply_member(
    const struct ph__config_reading *reading, const struct ph__config_target *target, const char *text)
{
    PH_TRY(ph__option_parse(target->inner, text, reading->arena, member_place(target)));
    mark_member(target);
    return PH_OK;
}

static ph_status apply_item(
    const struct ph__config_reading *reading, const struct ph__config_target *target, const char *text)
{
    if (target->option->type == PH_OPTION_TEXTS)
        return ph__option_parse_text_item(text, target->index, reading->arena, target->member);
    return ph__option_parse_item(target->option, text, target->index, target->member);
}

/* Returns what the target takes; NULL when out of memory. */
static const char *wanted_by(const struct ph__config_reading *reading, const struct ph__config_target *target)
{
    switch (target->kind) {
    case PH_TARGET_RECORD:
        return "a mapping";
    case PH_TARGET_ITEM:
        return target->option->type == PH_OPTION_INTEGERS ? "an integer" : "a text";
    case PH_TARGET_MEMBER_ITEM:
        return "a text";
    case PH_TARGET_MEMBER:
        return ph__option_wanted(target->inner, reading->arena);
    case PH_TARGET_OPTION:
        break;
    }
    return ph__option_wanted(target->option, reading->arena);
}

static ph_status refuse_target(
    const struct ph__config_reading *reading, const struct ph__config_target *target, const char *what)
{
    const char *wanted = wanted_by(reading, target);
    return wanted != NULL ? ph_fail(PH_ERROR_CONFIG, "must be %s, not %s", wanted, what) : PH_ERROR_MEMORY;
}

/* Applies a text to its target. PH_ERROR_CONFIG with the reason alone. */
static ph_status apply_text(
    const struct ph__config_reading *reading, const struct ph__config_target *target, const char *text)
{
    target->state->is_given = true;
    switch (target->kind) {
    case PH_TARGET_ITEM:
        return apply_item(reading, target, text);
    case PH_TARGET_MEMBER_ITEM:
        return ph__option_parse_text_item(text, target->item, reading->arena, member_place(target));
    case PH_TARGET_MEMBER:
        return apply_member(reading, target, text);
    case PH_TARGET_RECORD:
        return refuse_target(reading, target, "a text");
    case PH_TARGET_OPTION:
        break;
    }
    if (target->option->type != PH_OPTION_RECORDS)
        return ph__option_parse(target->option, text, reading->arena, target->member);
    if (text[0] != '\0')
        return refuse_target(reading, target, "a text");
    return begin_records(reading, target, 0);
}

/* Empties the list; its items follow as nodes of their own. */
static ph_status begin_list(const struct ph__config_reading *reading, const struct ph__config_target *target)
{
    const bool is_member = target->kind == PH_TARGET_MEMBER;
    const struct ph__option *option = is_member ? target->inner : target->option;
    void *place = is_member ? member_place(target) : target->member;
    const bool is_list = is_member || target->kind == PH_TARGET_OPTION;
    if (is_list && option->type == PH_OPTION_TEXTS)
        ((struct ph__text_list *)place)->count = 0;
    else if (is_list && option->type == PH_OPTION_INTEGERS)
        ((struct ph__integer_list *)place)->count = 0;
    else
        return refuse_target(reading, target, "a list");
    if (is_member)
        mark_member(target);
    return PH_OK;
}

static ph_status apply_sequence(
    const struct ph__config_reading *reading, const struct ph__config_target *target, size_t num_items)
{
    target->state->is_given = true;
    if (target->kind == PH_TARGET_OPTION && target->option->type == PH_OPTION_RECORDS)
        return begin_records(reading, target, num_items);
    return begin_list(reading, target);
}

/* ---- the file ---- */

/* Tells whether `name` begins with the words of `key`. */
static bool begins_with(const char *name, const char *key)
{
    const size_t length = strlen(key);
    return strncmp(name, key, length) == 0 && (name[length] == '\0' || name[length] == '.');
}

/* Tells whether `key` begins keys of the table that have words of their own ("data.graph" of
 * "data.graph.edges"). */
static bool is_group(const struct ph__option_table *table, const char *key)
{
    const size_t length = strlen(table->section);
    if (!begins_with(key, table->section) || key[length] != '.')
        return false;
    for (size_t i = 0; i < table->num_options; i++)
        if (begins_with(table->options[i].key, key + length + 1))
            return true;
    return false;
}

/* Tells whether `key` is a section or begins one ("data" of "data.synth"), or a group of keys. */
static bool is_section(const struct ph__config_reading *reading, const char *key)
{
    for (size_t s = 0; s < reading->num_sections; s++) {
        const struct ph__option_table *table = reading->sections[s].table;
        if (begins_with(table->section, key) || is_group(table, key))
            return true;
    }
    return false;
}

/* Tells whether the node lies in one of the sections. The top-level section holds the keys without a dot that
 * are not mappings. */
static bool lies_in_section(const struct ph__config_reading *reading, const struct ph__yaml_node *node)
{
    bool is_top = strchr(node->key, '.') == NULL && node->kind != PH_YAML_MAPPING;
    for (size_t s = 0; s < reading->num_sections; s++) {
        const char *section = reading->sections[s].table->section;
        size_t length = strlen(section);
        bool is_below = strncmp(section, node->key, length) == 0 && node->key[length] == '.';
        if (length == 0 ? is_top : is_below)
            return true;
    }
    return false;
}

static ph_status read_node(const struct ph__config_reading *reading, const struct ph__yaml_node *node)
{
    struct ph__config_target target;
    if (reading->skips_others && !is_section(reading, node->key) && !lies_in_section(reading, node))
        return PH_OK;
    if (is_section(reading, node->key) && !ph__config_find_option(reading, node->key, &target)) {
        bool is_empty = node->kind == PH_YAML_SCALAR && node->text[0] == '\0';
        if (node->kind == PH_YAML_MAPPING || is_empty)
            return PH_OK;
        return ph__config_fail(reading, node->key, "must be a section: lines of \"key: value\" below it");
    }
    PH_TRY(ph__config_find(reading, node->key, &target));
    ph_status status = PH_OK;
    if (node->kind == PH_YAML_SCALAR)
        status = apply_text(reading, &target, node->text);
    else if (node->kind == PH_YAML_SEQUENCE)
        status = apply_sequence(reading, &target, node->num_items);
    else if (target.kind == PH_TARGET_RECORD)
        target.state->record_where[target.index] = reading->where;
    else
        status = refuse_target(reading, &target, "a mapping");
    return status == PH_OK ? PH_OK : ph__config_fail_reason(reading, node->key, status);
}

/* Reads the file, or its text where it is given. */
static ph_status read_file(struct ph__config_reading *reading, const char *path, const char *text)
{
    struct ph__yaml_node *nodes = NULL;
    size_t num_nodes = 0;
    if (text != NULL)
        PH_TRY(ph__yaml_parse(reading->arena, path, text, strlen(text), &nodes, &num_nodes));
    else
        PH_TRY(ph__yaml_read(reading->arena, path, &nodes, &num_nodes));
    for (size_t i = 0; i < num_nodes; i++) {
        reading->where = ph__arena_printf(reading->arena, "%s:%zu", path, nodes[i].line);
        if (reading->where == NULL)
            return PH_ERROR_MEMORY;
        PH_TRY(read_node(reading, &nodes[i]));
    }
    return PH_OK;
}

/* Reads a list of mappings, which is written as in a file: data.fields=[{name: a, kind: id}]. */
static ph_status read_records_set(struct ph__config_reading *reading, const char *key, const char *value)
{
    struct ph__yaml_node *nodes = NULL;
    size_t num_nodes = 0;
    const char *text = ph__arena_printf(reading->arena, "%s: %s", key, value);
    if (text == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__yaml_parse(reading->arena, "--set", text, strlen(text), &nodes, &num_nodes));
    for (size_t i = 0; i < num_nodes; i++)
        PH_TRY(read_node(reading, &nodes[i]));
    return PH_OK;
}

static ph_status read_set(struct ph__config_reading *reading, const char *set)
{
    reading->where = ph__arena_printf(reading->arena, "--set %s", set);
    const char *equals = strchr(set, '=');
    if (reading->where == NULL)
        return PH_ERROR_MEMORY;
    if (equals == NULL || equals == set)
        return ph_fail(PH_ERROR_CONFIG, "%s: must be key=value", reading->where);
    const char *key = ph__arena_printf(reading->arena, "%.*s", (int)(equals - set), set);
    if (key == NULL)
        return PH_ERROR_MEMORY;
    struct ph__config_target target;
    PH_TRY(ph__config_find(reading, key, &target));
    const bool is_records = target.kind == PH_TARGET_OPTION && target.option->type == PH_OPTION_RECORDS;
    if (is_records && equals[1] == '[')
        return read_records_set(reading, key, equals + 1);
    ph_status status = apply_text(reading, &target, equals + 1);
    return status == PH_OK ? PH_OK : ph__config_fail_reason(reading, key, status);
}

/* ---- the whole ---- */

static ph_status begin_sections(struct ph__config_reading *reading)
{
    reading->states = ph__arena_alloc_array(reading->arena, reading->num_sections, sizeof *reading->states);
    if (reading->states == NULL)
        return PH_ERROR_MEMORY;
    for (size_t s = 0; s < reading->num_sections; s++) {
        const struct ph__section *section = &reading->sections[s];
        const struct ph__option_table *table = section->table;
        reading->states[s] =
            ph__arena_alloc_array(reading->arena, table->num_options, sizeof *reading->states[s]);
        if (reading->states[s] == NULL)
            return PH_ERROR_MEMORY;
        memset(section->settings, 0, table->settings_size);
        for (size_t i = 0; i < table->num_options; i++) {
            const struct ph__option *option = &table->options[i];
            PH_TRY(apply_default(reading, option, ph__option_member(option, section->settings)));
        }
    }
    return PH_OK;
}

static ph_status check_records(const struct ph__option_table *table, const struct ph__option *option,
    const struct ph__option_state *state, size_t count)
{
    const struct ph__option_table *records = option->records;
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < records->num_options; i++)
            if (records->options[i].default_text == NULL &&
                !state->members_given[r * records->num_options + i])
                return ph_fail(PH_ERROR_CONFIG, "%s: missing key '%s%s%s[%zu].%s'", state->record_where[r],
                    table->section, table->section[0] != '\0' ? "." : "", option->key, r,
                    records->options[i].key);
    return PH_OK;
}

static ph_status check_required(const struct ph__config_reading *reading, const char *path)
{
    for (size_t s = 0; s < reading->num_sections; s++) {
        const struct ph__option_table *table = reading->sections[s].table;
        for (size_t i = 0; i < table->num_options; i++) {
            const struct ph__option *option = &table->options[i];
            const struct ph__option_state *state = &reading->states[s][i];
            if (option->default_text == NULL && !state->is_given)
                return ph_fail(PH_ERROR_CONFIG, "%s: missing key '%s%s%s'",
                    path != NULL ? path : "no config file", table->section,
                    table->section[0] != '\0' ? "." : "", option->key);
            const struct ph__record_list *list = ph__option_member(option, reading->sections[s].settings);
            if (option->type == PH_OPTION_RECORDS)
                PH_TRY(check_records(table, option, state, list->count));
        }
    }
    return PH_OK;
}

static ph_status read_config(struct ph__config_reading *reading, const char *path, const char *text,
    const char *const *sets, size_t num_sets)
{
    reading->where = "defaults";
    PH_TRY(begin_sections(reading));
    if (path != NULL)
        PH_TRY(read_file(reading, path, text));
    for (size_t i = 0; i < num_sets; i++)
        PH_TRY(read_set(reading, sets[i]));
    return check_required(reading, path);
}

ph_status ph__config_read(const char *path, const char *const *sets, size_t num_sets,
    const struct ph__section *sections, size_t num_sections, struct ph__arena *arena)
{
    struct ph__config_reading reading = {.sections = sections, .num_sections = num_sections, .arena = arena};
    return read_config(&reading, path, NULL, sets, num_sets);
}

ph_status ph__config_read_text(const char *name, const char *text, const char *const *sets, size_t num_sets,
    const struct ph__section *sections, size_t num_sections, struct ph__arena *arena)
{
    struct ph__config_reading reading = {.sections = sections, .num_sections = num_sections, .arena = arena};
    return read_config(&reading, name, text, sets, num_sets);
}

ph_status ph__config_read_sections(
    const char *path, const struct ph__section *sections, size_t num_sections, struct ph__arena *arena)
{
    struct ph__config_reading reading = {
        .sections = sections, .num_sections = num_sections, .arena = arena, .skips_others = true};
    return read_config(&reading, path, NULL, NULL, 0);
}
