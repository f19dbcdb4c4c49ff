/* Builds columns from the settings' fields and the header of the training file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/text/name_index.h"
#include "data/encode/encoder.h"
#include "data/encode/schema.h"

#define CRITEO_COUNTS 13
#define CRITEO_CATEGORIES 26

/* ---- formats ---- */

bool ph__has_quotes(enum ph__data_format format)
{
    return format == PH_DATA_CSV || format == PH_DATA_AVAZU || format == PH_DATA_GRAPH;
}

char ph__default_separator(enum ph__data_format format)
{
    return ph__has_quotes(format) ? ',' : '\t'; /* formats with quotes quote cells that hold commas */
}

bool ph__has_header(const struct ph_data_settings *settings)
{
    switch (settings->format) {
    case PH_DATA_CSV:
    case PH_DATA_TSV:
        return settings->has_header;
    case PH_DATA_AVAZU:
    case PH_DATA_GRAPH:
        return true;
    case PH_DATA_CRITEO:
    case PH_DATA_LIBSVM:
    case PH_DATA_LIBFFM:
    case PH_DATA_NPY:
    case PH_DATA_ARROW:
        break;
    }
    return false;
}

/* ---- entries: given, or built into a format ---- */

/* Columns of a format where the settings have no entry for them. */
static const struct ph__field_settings criteo_fields[] = {
    {.name = "label", .from = "", .kind = PH_FIELD_LABEL},
    {.name = "I*", .from = "", .kind = PH_FIELD_DENSE, .transform = PH_TRANSFORM_LOG1P},
    {.name = "C*", .from = "", .kind = PH_FIELD_ID, .encoding = PH_ENCODING_INHERIT, .hash_seed = -1},
};

/* Avazu as the click models of the literature use it: the time as hour, weekday and weekend, without the
 * impression's own id. */
#define AVAZU_ID(column, time_component, file_column)                                                  \
    {                                                                                                  \
        .name = (column), .from = (file_column), .kind = PH_FIELD_ID, .encoding = PH_ENCODING_INHERIT, \
        .hash_seed = -1, .part = (time_component)                                                      \
    }
static const struct ph__field_settings avazu_fields[] = {
    {.name = "id", .from = "", .kind = PH_FIELD_IGNORE},
    {.name = "click", .from = "", .kind = PH_FIELD_LABEL},
    AVAZU_ID("hour", PH_TIME_HOUR, ""),
    AVAZU_ID("weekday", PH_TIME_WEEKDAY, "hour"),
    AVAZU_ID("weekend", PH_TIME_WEEKEND, "hour"),
    AVAZU_ID("*", PH_TIME_WHOLE, ""),
};

static const struct ph__field_settings libsvm_fields[] = {
    {.name = "label", .from = "", .kind = PH_FIELD_LABEL},
    {.name = "*", .from = "", .kind = PH_FIELD_ID, .encoding = PH_ENCODING_INHERIT, .hash_seed = -1},
};

struct entries {
    const struct ph__field_settings *items;
    size_t count;
};

static struct entries built_in_entries(enum ph__data_format format)
{
    switch (format) {
    case PH_DATA_CRITEO:
    case PH_DATA_NPY:
        return (struct entries){criteo_fields, sizeof criteo_fields / sizeof *criteo_fields};
    case PH_DATA_AVAZU:
        return (struct entries){avazu_fields, sizeof avazu_fields / sizeof *avazu_fields};
    case PH_DATA_LIBSVM:
    case PH_DATA_LIBFFM:
        return (struct entries){libsvm_fields, sizeof libsvm_fields / sizeof *libsvm_fields};
    case PH_DATA_CSV:
    case PH_DATA_TSV:
    case PH_DATA_ARROW:
    case PH_DATA_GRAPH:
        break;
    }
    return (struct entries){NULL, 0};
}

/* Entries indexed by their names and by the columns that features are made of. */
struct field_list {
    struct entries entries;
    struct ph__name_index names;   /* names of all entries */
    struct ph__name_index sources; /* columns that derived entries are made of */
    size_t *derived;               /* numbers of the derived entries, ascending */
    size_t *patterns, num_patterns;
    bool *is_met; /* (entries) true: some column of the file takes the entry */
};

static void field_list_fini(struct field_list *fields)
{
    ph__name_index_fini(&fields->names);
    ph__name_index_fini(&fields->sources);
    free(fields->derived);
    free(fields->patterns);
    free(fields->is_met);
}

/* Indexes the entries; call field_list_fini also on failure. */
static ph_status field_list_init(struct field_list *fields, struct entries entries)
{
    *fields = (struct field_list){.entries = entries};
    fields->derived = calloc(entries.count + 1, sizeof *fields->derived);
    fields->patterns = calloc(entries.count + 1, sizeof *fields->patterns);
    fields->is_met = calloc(entries.count + 1, sizeof *fields->is_met);
    if (fields->derived == NULL || fields->patterns == NULL || fields->is_met == NULL)
        return ph__out_of_memory("data.fields: %zu entries", entries.count);
    for (size_t i = 0; i < entries.count; i++) {
        const struct ph__field_settings *field = &entries.items[i];
        PH_TRY(ph__name_index_add(&fields->names, field->name));
        if (ph__field_is_pattern(field))
            fields->patterns[fields->num_patterns++] = i;
        if (!ph__field_is_derived(field))
            continue;
        fields->derived[fields->sources.count] = i;
        PH_TRY(ph__name_index_add(&fields->sources, field->from));
    }
    return PH_OK;
}

/* Returns the entry for a column of the file, or NULL: exact names first, then patterns in their order. */
static const struct ph__field_settings *find_field(const struct field_list *fields, const char *name)
{
    const struct ph__field_settings *items = fields->entries.items;
    const size_t exact = ph__name_index_find(&fields->names, name);
    if (exact != PH_NO_NAME && !ph__field_is_derived(&items[exact]) && !ph__field_is_pattern(&items[exact]))
        return &items[exact];
    for (size_t i = 0; i < fields->num_patterns; i++) {
        const char *pattern = items[fields->patterns[i]].name;
        if (strncmp(pattern, name, strlen(pattern) - 1) == 0)
            return &items[fields->patterns[i]];
    }
    return NULL;
}

/* ---- columns of the file ---- */

/* A schema under construction. */
struct building {
    const struct ph_data_settings *settings;
    struct field_list given, built_in;
    struct ph_encoder *encoder;
};

struct file_column {
    const char *name;
    bool is_list;
    uint64_t header_line; /* number of the line that names it; 0: no header line */
};

/* Writes ":3", or nothing where no line names the columns. */
#define LINE_BYTES 24
static const char *line_of(uint64_t header_line, char text[LINE_BYTES])
{
    text[0] = '\0';
    if (header_line > 0)
        snprintf(text, LINE_BYTES, ":%" PRIu64, header_line);
    return text;
}

/* Refuses entries that the fixed columns of libsvm and libffm cannot have. */
static ph_status check_libsvm_field(
    const struct ph_data_settings *settings, const struct ph__field_settings *field, const char *name)
{
    if (settings->format != PH_DATA_LIBSVM && settings->format != PH_DATA_LIBFFM)
        return PH_OK;
    if (ph__field_is_derived(field))
        return ph_fail(PH_ERROR_CONFIG,
            "data.fields: '%s': a field of libsvm and libffm files is one feature with its own name: remove "
            "'from'",
            name);
    const bool is_label = strcmp(name, "label") == 0;
    if (field->kind != PH_FIELD_IGNORE && field->kind != (is_label ? PH_FIELD_LABEL : PH_FIELD_ID))
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s': must be %s in libsvm and libffm files", name,
            is_label ? "the label" : "a list of ids");
    return PH_OK;
}

/* Adds a column called `name`, made from the file's column `from`. */
static ph_status add_one(const struct building *building, const struct ph__field_settings *given,
    const char *name, struct file_column from)
{
    const struct ph_data_settings *settings = building->settings;
    struct ph__column *column;
    struct ph__field_settings implied = *given, *field = &implied;
    implied.is_list |= from.is_list && given->kind != PH_FIELD_IGNORE;
    PH_TRY(check_libsvm_field(settings, given, name));
    PH_TRY(ph__encoder_add_column(building->encoder, name, from.name, &column));
    column->kind = field->kind;
    column->transform = field->transform;
    column->missing = (float)field->missing;
    column->has_indicator = field->has_indicator && column->kind == PH_FIELD_DENSE;
    if (column->kind == PH_FIELD_ID)
        return ph__schema_set_id(settings, field, column);
    if (field->is_list || field->is_group)
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s': only id fields may be lists or groups", name);
    return PH_OK;
}

/* Adds the columns of a label with classes, "label.class"; of any other field one column. */
static ph_status add_field(const struct building *building, const struct ph__field_settings *given,
    const char *name, struct file_column from)
{
    struct ph__arena arena = {0};
    ph_status status = PH_OK;
    if (given->classes.count == 0)
        return add_one(building, given, name, from);
    for (size_t i = 0; i < given->classes.count && status == PH_OK; i++) {
        const char *task = ph__arena_printf(&arena, "%s.%s", name, given->classes.items[i]);
        status = task != NULL ? add_one(building, given, task, from) : PH_ERROR_MEMORY;
        if (status == PH_OK)
            building->encoder->columns[building->encoder->num_columns - 1].class_start = strlen(name) + 1;
    }
    ph__arena_fini(&arena);
    return status;
}

/* Adds the features with names of their own that `fields` makes of the file's column `from`; skips built-in
 * entries that a given entry names. */
static ph_status add_derived(
    struct building *building, struct field_list *fields, struct file_column from, bool *is_any)
{
    for (size_t i = ph__name_index_find(&fields->sources, from.name); i != PH_NO_NAME;
         i = ph__name_index_next(&fields->sources, i)) {
        const struct ph__field_settings *field = &fields->entries.items[fields->derived[i]];
        if (fields == &building->built_in &&
            ph__name_index_find(&building->given.names, field->name) != PH_NO_NAME)
            continue;
        PH_TRY(add_field(building, field, field->name, from));
        fields->is_met[fields->derived[i]] = true;
        *is_any = true;
    }
    return PH_OK;
}

static const char *train_name(const struct ph_data_settings *settings)
{
    return settings->paths.train != NULL ? settings->paths.train : "data.train";
}

/* Adds all features that one column of the file becomes. */
static ph_status add_file_column(struct building *building, struct file_column from)
{
    struct field_list *given = &building->given;
    const struct ph__field_settings *field = find_field(given, from.name);
    bool is_any = false;
    char line[LINE_BYTES];
    if (field != NULL)
        given->is_met[field - given->entries.items] = true;
    else
        field = find_field(&building->built_in, from.name);
    if (field != NULL)
        PH_TRY(add_field(building, field, from.name, from));
    PH_TRY(add_derived(building, given, from, &is_any));
    PH_TRY(add_derived(building, &building->built_in, from, &is_any));
    if (field == NULL && !is_any)
        return ph_fail(PH_ERROR_CONFIG,
            "%s%s: column '%s' has no entry in data.fields (kind: ignore leaves a column out)",
            train_name(building->settings), line_of(from.header_line, line), from.name);
    return PH_OK;
}

static ph_status add_column(struct building *building, const char *name)
{
    return add_file_column(building, (struct file_column){name, false, 0});
}

static ph_status build_criteo(struct building *building)
{
    char name[16];
    PH_TRY(add_column(building, "label"));
    for (int i = 1; i <= CRITEO_COUNTS; i++) {
        snprintf(name, sizeof name, "I%d", i);
        PH_TRY(add_column(building, name));
    }
    for (int i = 1; i <= CRITEO_CATEGORIES; i++) {
        snprintf(name, sizeof name, "C%d", i);
        PH_TRY(add_column(building, name));
    }
    return PH_OK;
}

static ph_status build_libsvm(struct building *building, size_t num_fields)
{
    char name[24];
    PH_TRY(add_column(building, "label"));
    if (building->settings->format == PH_DATA_LIBSVM)
        return add_column(building, "features");
    for (size_t i = 0; i < num_fields; i++) {
        snprintf(name, sizeof name, "%zu", i);
        PH_TRY(add_column(building, name));
    }
    return PH_OK;
}

static ph_status build_from_names(struct building *building, const struct ph__file_shape *shape)
{
    for (size_t i = 0; i < shape->num_names; i++) {
        bool is_list = shape->is_list != NULL && shape->is_list[i];
        const struct file_column column = {shape->names[i], is_list, shape->header_line};
        PH_TRY(add_file_column(building, column));
    }
    return PH_OK;
}

static ph_status build_from_fields(struct building *building)
{
    const struct entries *entries = &building->given.entries;
    for (size_t i = 0; i < entries->count; i++) {
        const struct ph__field_settings *field = &entries->items[i];
        if (ph__field_is_pattern(field))
            return ph_fail(PH_ERROR_CONFIG,
                "data.fields: '%s': a pattern needs a data.train whose header can be read beforehand",
                field->name);
        const char *from = ph__field_is_derived(field) ? field->from : field->name;
        PH_TRY(add_field(building, field, field->name, (struct file_column){from, false, 0}));
        building->given.is_met[i] = true;
    }
    return PH_OK;
}

/* ---- building ---- */

static ph_status fail_unmet(
    const struct ph_data_settings *settings, uint64_t header_line, const struct ph__field_settings *field)
{
    const char *name = ph__field_is_derived(field) ? field->from : field->name;
    char line[LINE_BYTES];
    if (ph__field_is_pattern(field))
        return ph_fail(PH_ERROR_CONFIG,
            "data.fields: '%s': no column without an entry of its own matches this pattern", name);
    if (settings->format == PH_DATA_CRITEO || settings->format == PH_DATA_LIBSVM ||
        settings->format == PH_DATA_LIBFFM)
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s' is not a column of this format", name);
    if (settings->format == PH_DATA_NPY)
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s' is not a column of the arrays of %s", name,
            train_name(settings));
    if (settings->paths.train == NULL)
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s' is not a column of the data", name);
    return ph_fail(PH_ERROR_CONFIG, "%s%s: the header has no column '%s', which data.fields names",
        settings->paths.train, line_of(header_line, line), name);
}

/* Refuses entries that no column takes: a misspelt name would go unnoticed. "*" may match no column. */
static ph_status check_all_fields_met(const struct building *building, uint64_t header_line)
{
    const struct field_list *given = &building->given;
    for (size_t i = 0; i < given->entries.count; i++)
        if (!given->is_met[i] && strcmp(given->entries.items[i].name, "*") != 0)
            return fail_unmet(building->settings, header_line, &given->entries.items[i]);
    return PH_OK;
}

static ph_status read_separators(const struct ph_data_settings *settings, struct ph_encoder *encoder)
{
    const char *texts[] = {settings->separator, settings->list_separator};
    char separators[] = {ph__default_separator(settings->format), '|'};
    for (size_t i = 0; i < 2; i++) {
        if (texts[i] == NULL || texts[i][0] == '\0')
            continue;
        const char *key = i == 0 ? "separator" : "list_separator";
        if (texts[i][1] != '\0' || (signed char)texts[i][0] < 0 || strchr("\r\n\"", texts[i][0]) != NULL)
            return ph_fail(PH_ERROR_CONFIG,
                "data.%s: '%s' must be one ASCII character other than a quote or a line end", key, texts[i]);
        separators[i] = texts[i][0];
    }
    if (separators[0] == separators[1])
        return ph_fail(PH_ERROR_CONFIG, "data.list_separator: must differ from the separator of cells");
    encoder->separator = separators[0];
    encoder->list_separator = separators[1];
    return PH_OK;
}

static ph_status add_columns(struct building *building, const struct ph__file_shape *shape)
{
    const enum ph__data_format format = building->settings->format;
    if (format == PH_DATA_CRITEO || (format == PH_DATA_NPY && shape->num_names == 0))
        return build_criteo(building);
    if (format == PH_DATA_LIBSVM || format == PH_DATA_LIBFFM)
        return build_libsvm(building, shape->num_fields);
    if (building->given.entries.count == 0 && building->built_in.entries.count == 0)
        return ph_fail(PH_ERROR_CONFIG, "data.fields is missing: give the schema, for example [{name: "
                                        "label, kind: label}, {name: \"*\", kind: id}]");
    return shape->num_names > 0 ? build_from_names(building, shape) : build_from_fields(building);
}

/* Checks the keys of a graph: a row that is left out would renumber the others. */
static ph_status set_graph(const struct ph_data_settings *settings, struct ph_encoder *encoder)
{
    const struct ph__graph_settings *graph = &settings->graph;
    if (graph->edges == NULL || graph->edges[0] == '\0')
        return ph_fail(PH_ERROR_CONFIG, "data.graph.edges is missing: name the file of edges");
    if (settings->reading.max_bad_rows > 0)
        return ph_fail(PH_ERROR_CONFIG, "data.max_bad_rows must be 0 for format graph: each row is a node");
    if (graph->train_share + graph->valid_share > 1)
        return ph_fail(PH_ERROR_CONFIG,
            "data.graph.train_share and data.graph.valid_share add up to %g, above 1",
            graph->train_share + graph->valid_share);
    return ph__encoder_set_graph(encoder, graph);
}

ph_status ph__schema_build(
    const struct ph_data_settings *settings, const struct ph__file_shape *shape, struct ph_encoder *encoder)
{
    encoder->format = settings->format;
    encoder->has_header = ph__has_header(settings);
    const bool is_libsvm = settings->format == PH_DATA_LIBSVM || settings->format == PH_DATA_LIBFFM;
    const bool is_arrays = settings->format == PH_DATA_NPY || settings->format == PH_DATA_ARROW;
    if (settings->format == PH_DATA_GRAPH)
        PH_TRY(set_graph(settings, encoder));
    PH_TRY(read_separators(settings, encoder));
    PH_TRY(ph__schema_check_fields(settings, is_libsvm || is_arrays || shape->is_list != NULL));
    struct building building = {.settings = settings, .encoder = encoder};
    const struct entries given = {settings->fields.items, settings->fields.count};
    ph_status status = field_list_init(&building.given, given);
    if (status == PH_OK)
        status = field_list_init(&building.built_in, built_in_entries(settings->format));
    if (status == PH_OK)
        status = add_columns(&building, shape);
    if (status == PH_OK)
        status = check_all_fields_met(&building, shape->header_line);
    field_list_fini(&building.given);
    field_list_fini(&building.built_in);
    return status;
}
