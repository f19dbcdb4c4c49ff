/* The section `dense` of a plan file. */
#include <string.h>

#include "base/format/text_table.h"
#include "base/format/yaml.h"
#include "base/option/option.h"
#include "base/text/number.h"
#include "plan/plan_units.h"

static const char *const wire_names[] = {"fp32", "fp16", "bf16"}; /* from PH_UNIT_WIRE_FP32 on */
enum { NUM_WIRES = sizeof wire_names / sizeof *wire_names };
static const char *const reduce_names[] = {"once", "every"};

struct reading {
    const char *path;
    struct ph__arena *arena;
    struct ph__dense_settings settings;
    struct ph__unit_rule *rules; /* of settings */
    size_t line;                 /* of the section; 0: there is none */
    size_t group_line;
};

static ph_status fail_key(const struct reading *reading, const struct ph__yaml_node *node, const char *what)
{
    return ph_fail(PH_ERROR_CONFIG, "%s:%zu: %s: %s", reading->path, node->line, node->key, what);
}

/* Reads one of some words as its index. */
static ph_status read_word(const struct reading *reading, const struct ph__yaml_node *node,
    const char *const *words, size_t num_words, size_t *index_out)
{
    const char *given = node->kind == PH_YAML_SCALAR ? node->text : "";
    for (*index_out = 0; *index_out < num_words; ++*index_out)
        if (strcmp(words[*index_out], given) == 0)
            return PH_OK;
    const char *known = "", *nearest = ph__nearest_word(given, words, num_words);
    for (size_t i = 0; i < num_words && known != NULL; i++)
        known = ph__arena_printf(reading->arena, "%s%s%s", known, i > 0 ? ", " : "", words[i]);
    if (known == NULL)
        return PH_ERROR_MEMORY;
    if (nearest != NULL)
        return ph_fail(PH_ERROR_CONFIG, "%s:%zu: %s: unknown word '%s'; did you mean '%s'?", reading->path,
            node->line, node->key, given, nearest);
    return ph_fail(PH_ERROR_CONFIG, "%s:%zu: %s: unknown word '%s': must be one of %s", reading->path,
        node->line, node->key, given, known);
}

static ph_status read_count(const struct reading *reading, const struct ph__yaml_node *node, int64_t least,
    int64_t most, uint64_t *count_out)
{
    int64_t number;
    if (node->kind != PH_YAML_SCALAR || !ph__integer_parse(node->text, &number) || number < least ||
        number > most)
        return ph_fail(PH_ERROR_CONFIG, "%s:%zu: %s: must be an integer from %lld to %lld", reading->path,
            node->line, node->key, (long long)least, (long long)most);
    *count_out = (uint64_t)number;
    return PH_OK;
}

static ph_status read_wire(
    const struct reading *reading, const struct ph__yaml_node *node, enum ph__unit_wire *wire_out)
{
    size_t index;
    PH_TRY(read_word(reading, node, wire_names, NUM_WIRES, &index));
    *wire_out = (enum ph__unit_wire)(PH_UNIT_WIRE_FP32 + index);
    return PH_OK;
}

/* ---- lines ---- */

static ph_status read_mode(struct reading *reading, const struct ph__yaml_node *node)
{
    const char *names[PH_DENSE_MODE_COUNT];
    size_t index;
    for (size_t i = 0; i < PH_DENSE_MODE_COUNT; i++)
        names[i] = ph__dense_mode_name((enum ph__dense_mode)i);
    PH_TRY(read_word(reading, node, names, PH_DENSE_MODE_COUNT, &index));
    reading->settings.mode = (enum ph__dense_mode)index;
    return PH_OK;
}

static ph_status read_group(struct reading *reading, const struct ph__yaml_node *node)
{
    uint64_t size;
    PH_TRY(read_count(reading, node, 1, UINT32_MAX, &size));
    reading->settings.group_size = (size_t)size;
    reading->group_line = node->line;
    return PH_OK;
}

static ph_status read_unit_bytes(struct reading *reading, const struct ph__yaml_node *node)
{
    return read_count(reading, node, 1, INT64_MAX, &reading->settings.unit_bytes);
}

static ph_status read_prefetch(struct reading *reading, const struct ph__yaml_node *node)
{
    uint64_t count;
    PH_TRY(read_count(reading, node, 0, 1, &count));
    reading->settings.prefetch = (size_t)count;
    return PH_OK;
}

static ph_status read_units_wire(struct reading *reading, const struct ph__yaml_node *node)
{
    return read_wire(reading, node, &reading->settings.wire);
}

static ph_status read_reduce(struct reading *reading, const struct ph__yaml_node *node)
{
    size_t index;
    PH_TRY(read_word(reading, node, reduce_names, 2, &index));
    reading->settings.reduces_often = index == 1;
    return PH_OK;
}

static ph_status read_units(struct reading *reading, const struct ph__yaml_node *node)
{
    return node->kind == PH_YAML_MAPPING
               ? PH_OK
               : fail_key(reading, node, "must be a mapping, such as {\"top.*\": {}}");
}

/* The keys of the section, and below `units` those of a rule. */
static const struct key {
    const char *name;
    ph_status (*read)(struct reading *reading, const struct ph__yaml_node *node);
} keys[] = {{"mode", read_mode}, {"group", read_group}, {"unit_bytes", read_unit_bytes},
    {"prefetch", read_prefetch}, {"wire", read_units_wire}, {"reduce", read_reduce}, {"units", read_units}};
enum { NUM_KEYS = sizeof keys / sizeof *keys };

/* Reads a line below `units`: a pattern begins a rule, and "wire" belongs to the rule begun last. */
static ph_status read_rule(struct reading *reading, const struct ph__yaml_node *node, const char *pattern)
{
    struct ph__dense_settings *settings = &reading->settings;
    struct ph__unit_rule *last = settings->num_rules > 0 ? &reading->rules[settings->num_rules - 1] : NULL;
    const size_t length = last != NULL ? strlen(last->pattern) : 0;
    if (last != NULL && strncmp(pattern, last->pattern, length) == 0 &&
        strcmp(pattern + length, ".wire") == 0)
        return read_wire(reading, node, &last->wire);
    const bool is_empty = node->kind == PH_YAML_SCALAR && node->text[0] == '\0';
    if (node->kind != PH_YAML_MAPPING && !is_empty)
        return fail_key(reading, node, "must be a mapping, such as {} or {wire: bf16}");
    reading->rules[settings->num_rules++] = (struct ph__unit_rule){.pattern = pattern};
    return PH_OK;
}

/* key: the node's, behind "dense.". */
static ph_status read_key(struct reading *reading, const struct ph__yaml_node *node, const char *key)
{
    static const char units[] = "units.";
    const char *names[NUM_KEYS];
    if (strncmp(key, units, strlen(units)) == 0)
        return read_rule(reading, node, key + strlen(units));
    for (size_t i = 0; i < NUM_KEYS; i++) {
        names[i] = keys[i].name;
        if (strcmp(key, keys[i].name) == 0)
            return keys[i].read(reading, node);
    }
    const char *nearest = ph__nearest_word(key, names, NUM_KEYS);
    return ph_fail(PH_ERROR_CONFIG, "%s:%zu: unknown key 'dense.%s'%s%s%s", reading->path, node->line, key,
        nearest != NULL ? "; did you mean 'dense." : "", nearest != NULL ? nearest : "",
        nearest != NULL ? "'?" : "");
}

static ph_status read_section(struct reading *reading)
{
    static const char section[] = "dense";
    struct ph__yaml_node *nodes;
    size_t num_nodes;
    PH_TRY(ph__yaml_read(reading->arena, reading->path, &nodes, &num_nodes));
    reading->rules = ph__arena_alloc_array(reading->arena, num_nodes, sizeof *reading->rules);
    if (reading->rules == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_nodes; i++) {
        const struct ph__yaml_node *node = &nodes[i];
        if (strcmp(node->key, section) == 0) {
            reading->line = node->line;
            if (node->kind != PH_YAML_MAPPING)
                return fail_key(reading, node, "must be a mapping, such as {mode: full}");
        } else if (strncmp(node->key, "dense.", strlen("dense.")) == 0) {
            PH_TRY(read_key(reading, node, node->key + strlen("dense.")));
        }
    }
    reading->settings.rules = reading->rules;
    return PH_OK;
}

static ph_status make(
    struct reading *reading, const struct ph__dense_facts *dense, size_t num_dense, struct ph__plan *plan)
{
    struct ph__dense_settings *settings = &reading->settings;
    if (settings->group_size > 0 && !ph__dense_mode_groups(settings->mode))
        return ph_fail(PH_ERROR_CONFIG,
            "%s:%zu: dense.group: mode '%s' has one group, of all ranks: remove it", reading->path,
            reading->group_line, ph__dense_mode_name(settings->mode));
    const ph_status status = ph__plan_units_make(plan, settings, dense, num_dense);
    if (status != PH_ERROR_CONFIG)
        return status;
    const size_t line = reading->group_line > 0 ? reading->group_line : reading->line;
    return ph_fail(PH_ERROR_CONFIG, "%s:%zu: dense: %s", reading->path, line > 0 ? line : 1, ph_error_text());
}

ph_status ph__plan_units_read(const char *path, const enum ph__dense_mode *mode,
    const struct ph__dense_facts *dense, size_t num_dense, struct ph__plan *plan)
{
    struct ph__arena arena = {0};
    struct reading reading = {.path = path, .arena = &arena, .settings.prefetch = 1};
    ph_status status = read_section(&reading);
    if (mode != NULL)
        reading.settings.mode = *mode;
    if (status == PH_OK)
        status = make(&reading, dense, num_dense, plan);
    ph__arena_fini(&arena);
    return status;
}

/* ---- writing ---- */

ph_status ph__plan_units_print(const struct ph__plan_units *units, struct ph__writer *writer)
{
    static const struct ph__text_column columns[] = {
        {"dense unit", false}, {"parameters", true}, {"bytes", true}, {"bytes of a shard", true}};
    const struct ph__dense_settings *settings = &units->settings;
    struct ph__text_table text;
    if (units->num_units == 0)
        return PH_OK;
    ph__text_table_init(&text, columns, sizeof columns / sizeof *columns);
    for (size_t u = 0; u < units->num_units; u++) {
        const struct ph__plan_unit *unit = &units->units[u];
        char bytes[PH_NUMBER_TEXT_BYTES], own[PH_NUMBER_TEXT_BYTES];
        ph__text_table_cell(&text, "%s", unit->name);
        ph__text_table_cell(&text, "%zu", unit->num_parameters);
        ph__text_table_cell(&text, "%s", ph__bytes_text(ph__unit_numbers(unit) * sizeof(float), bytes));
        ph__text_table_cell(&text, "%s", ph__bytes_text(ph__unit_own_numbers(unit, 0) * sizeof(float), own));
    }
    ph_status status = ph__writer_printf(writer, "\nDense parameters: mode %s, over %zu ranks.\n\n",
        ph__dense_mode_name(settings->mode), settings->group_size);
    if (status == PH_OK)
        status = ph__text_table_write(&text, writer);
    ph__text_table_fini(&text);
    return status;
}

ph_status ph__dense_modes_print(const struct ph__plan *plan, const struct ph__dense_facts *dense,
    size_t num_dense, size_t num_micro_batches, struct ph__writer *writer)
{
    static const struct ph__text_column columns[] = {{"dense mode", false}, {"parameters", true},
        {"optimizer slots", true}, {"gradients", true}, {"gathered", true}, {"together", true}};
    const size_t num_modes = ph__dense_may_be_cut(dense, num_dense) ? PH_DENSE_MODE_COUNT : 1;
    struct ph__text_table text;
    ph_status status = PH_OK;
    ph__text_table_init(&text, columns, sizeof columns / sizeof *columns);
    for (size_t mode = 0; mode < num_modes && status == PH_OK; mode++) {
        struct ph__dense_bytes bytes;
        status = ph__dense_bytes_in_mode(
            plan, (enum ph__dense_mode)mode, dense, num_dense, num_micro_batches, &bytes);
        const uint64_t cells[] = {
            bytes.parameters, bytes.slots, bytes.gradients, bytes.gathered, ph__dense_bytes_sum(&bytes)};
        ph__text_table_cell(&text, "%s%s", ph__dense_mode_name((enum ph__dense_mode)mode),
            mode == plan->units.settings.mode ? " (this plan)" : "");
        for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
            char words[PH_NUMBER_TEXT_BYTES];
            ph__text_table_cell(&text, "%s", ph__bytes_text(cells[i], words));
        }
    }
    if (status == PH_OK)
        status = ph__text_table_write(&text, writer);
    ph__text_table_fini(&text);
    return status;
}

static ph_status write_rules(const struct ph__dense_settings *settings, struct ph__writer *writer)
{
    if (settings->num_rules > 0)
        PH_TRY(ph__writer_printf(writer, "  units:\n"));
    for (size_t i = 0; i < settings->num_rules; i++) {
        const struct ph__unit_rule *rule = &settings->rules[i];
        PH_TRY(ph__writer_printf(writer, "    "));
        PH_TRY(ph__config_write_text(writer, rule->pattern));
        PH_TRY(rule->wire != PH_UNIT_WIRE_OF_JOB
                   ? ph__writer_printf(writer, ": {wire: %s}\n", wire_names[rule->wire - PH_UNIT_WIRE_FP32])
                   : ph__writer_printf(writer, ": {}\n"));
    }
    return PH_OK;
}

ph_status ph__plan_units_write(const struct ph__plan_units *units, struct ph__writer *writer)
{
    const struct ph__dense_settings *settings = &units->settings;
    if (settings->mode == PH_DENSE_REPLICATED)
        return PH_OK;
    PH_TRY(ph__writer_printf(writer, "dense:\n  mode: %s\n", ph__dense_mode_name(settings->mode)));
    if (ph__dense_mode_groups(settings->mode))
        PH_TRY(ph__writer_printf(writer, "  group: %zu\n", settings->group_size));
    PH_TRY(ph__writer_printf(writer, "  unit_bytes: %llu\n  prefetch: %zu\n",
        (unsigned long long)settings->unit_bytes, settings->prefetch));
    if (settings->wire != PH_UNIT_WIRE_OF_JOB)
        PH_TRY(ph__writer_printf(writer, "  wire: %s\n", wire_names[settings->wire - PH_UNIT_WIRE_FP32]));
    PH_TRY(ph__writer_printf(writer, "  reduce: %s\n", reduce_names[settings->reduces_often]));
    return write_rules(settings, writer);
}
