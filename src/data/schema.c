/* From the settings' fields and the header of the training file to columns. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/encoder.h"
#include "data/schema.h"

#define CRITEO_COUNTS 13
#define CRITEO_CATEGORIES 26

/* What a format's columns are where the settings say nothing else. */
static const struct ph_field_settings criteo_fields[] = {
    {.name = "label", .from = "", .kind = PH_FIELD_LABEL},
    {.name = "I*", .from = "", .kind = PH_FIELD_DENSE, .transform = PH_TRANSFORM_LOG1P},
    {.name = "C*", .from = "", .kind = PH_FIELD_ID, .encoding = PH_ENCODING_INHERIT, .hash_seed = -1},
};

/* As the click models of the literature use Avazu: the time as hour, weekday and weekend, the impression's own id not at
 * all. */
#define AVAZU_ID(column, part_of_time, file_column)                                                    \
    {                                                                                                  \
        .name = (column), .from = (file_column), .kind = PH_FIELD_ID, .encoding = PH_ENCODING_INHERIT, \
        .hash_seed = -1, .part = (part_of_time)                                                        \
    }
static const struct ph_field_settings avazu_fields[] = {
    {.name = "id", .from = "", .kind = PH_FIELD_IGNORE},
    {.name = "click", .from = "", .kind = PH_FIELD_LABEL},
    AVAZU_ID("hour", PH_TIME_HOUR, ""),
    AVAZU_ID("weekday", PH_TIME_WEEKDAY, "hour"),
    AVAZU_ID("weekend", PH_TIME_WEEKEND, "hour"),
    AVAZU_ID("*", PH_TIME_WHOLE, ""),
};

static const struct ph_field_settings libsvm_fields[] = {
    {.name = "label", .from = "", .kind = PH_FIELD_LABEL},
    {.name = "*", .from = "", .kind = PH_FIELD_ID, .encoding = PH_ENCODING_INHERIT, .hash_seed = -1},
};

struct field_list {
    const struct ph_field_settings *items;
    size_t count;
};

static struct field_list built_in_fields(int format)
{
    switch ((enum ph_data_format)format) {
    case PH_DATA_CRITEO:
    case PH_DATA_NPY:
        return (struct field_list){criteo_fields, sizeof criteo_fields / sizeof *criteo_fields};
    case PH_DATA_AVAZU:
        return (struct field_list){avazu_fields, sizeof avazu_fields / sizeof *avazu_fields};
    case PH_DATA_LIBSVM:
    case PH_DATA_LIBFFM:
        return (struct field_list){libsvm_fields, sizeof libsvm_fields / sizeof *libsvm_fields};
    case PH_DATA_CSV:
    case PH_DATA_TSV:
    case PH_DATA_ARROW:
        break;
    }
    return (struct field_list){NULL, 0};
}

static struct field_list given_fields(const struct ph_data_settings *settings)
{
    return (struct field_list){settings->fields.items, settings->fields.count};
}

/* The entry for a column of the file: exact names first, then patterns in their order. */
static const struct ph_field_settings *find_field(struct field_list fields, const char *name)
{
    for (size_t i = 0; i < fields.count; i++)
        if (!ph__field_is_derived(&fields.items[i]) && !ph__field_is_pattern(&fields.items[i]) &&
            strcmp(fields.items[i].name, name) == 0)
            return &fields.items[i];
    for (size_t i = 0; i < fields.count; i++) {
        const char *pattern = fields.items[i].name;
        if (ph__field_is_pattern(&fields.items[i]) && strncmp(pattern, name, strlen(pattern) - 1) == 0)
            return &fields.items[i];
    }
    return NULL;
}

static bool has_name(struct field_list fields, const char *name)
{
    for (size_t i = 0; i < fields.count; i++)
        if (strcmp(fields.items[i].name, name) == 0)
            return true;
    return false;
}

/* A column of the file. */
struct file_column {
    const char *name;
    bool is_list;
    uint64_t header_line; /* that names it; 0: none does */
};

/* ":3", or nothing where no line names the columns. */
#define LINE_BYTES 24
static const char *line_of(uint64_t header_line, char text[LINE_BYTES])
{
    text[0] = '\0';
    if (header_line > 0)
        snprintf(text, LINE_BYTES, ":%" PRIu64, header_line);
    return text;
}

/* What rows of libsvm and libffm cannot be taken for. */
static ph_status check_libsvm_field(
    const struct ph_data_settings *settings, const struct ph_field_settings *field, const char *name)
{
    if (settings->format != PH_DATA_LIBSVM && settings->format != PH_DATA_LIBFFM)
        return PH_OK;
    if (ph__field_is_derived(field))
        return ph_fail(PH_ERROR_CONFIG,
            "data.fields: '%s': a field of libsvm and libffm files becomes one feature, of its own name",
            name);
    const bool is_label = strcmp(name, "label") == 0;
    if (field->kind != PH_FIELD_IGNORE && field->kind != (is_label ? PH_FIELD_LABEL : PH_FIELD_ID))
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s': in libsvm and libffm files it is %s", name,
            is_label ? "the label" : "a list of ids");
    return PH_OK;
}

/* A column called `name`, of the file's column `from`. */
static ph_status add_field(const struct ph_data_settings *settings, const struct ph_field_settings *given,
    const char *name, struct file_column from, struct ph_encoder *encoder)
{
    struct ph__column *column;
    struct ph_field_settings implied = *given, *field = &implied;
    implied.is_list |= from.is_list && given->kind != PH_FIELD_IGNORE;
    PH_TRY(check_libsvm_field(settings, given, name));
    PH_TRY(ph__encoder_add_column(encoder, name, from.name, &column));
    column->kind = (enum ph_field_kind)field->kind;
    column->transform = (enum ph_dense_transform)field->transform;
    column->missing = (float)field->missing;
    column->has_indicator = field->has_indicator && column->kind == PH_FIELD_DENSE;
    if (column->kind == PH_FIELD_ID)
        return ph__schema_set_id(settings, field, column);
    if (field->is_list || field->is_group)
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s': only id fields may be lists or groups", name);
    return PH_OK;
}

/* The features that are made of the file's column `from` under names of their own; what `without` names is left out. */
static ph_status add_derived(const struct ph_data_settings *settings, struct field_list fields,
    struct field_list without, struct file_column from, struct ph_encoder *encoder, bool *is_any)
{
    for (size_t i = 0; i < fields.count; i++) {
        const struct ph_field_settings *field = &fields.items[i];
        if (!ph__field_is_derived(field) || strcmp(field->from, from.name) != 0 ||
            has_name(without, field->name))
            continue;
        PH_TRY(add_field(settings, field, field->name, from, encoder));
        *is_any = true;
    }
    return PH_OK;
}

/* Everything that one column of the file becomes. */
static ph_status add_file_column(
    const struct ph_data_settings *settings, struct file_column from, struct ph_encoder *encoder)
{
    const char *name = from.name;
    const struct field_list given = given_fields(settings), built_in = built_in_fields(settings->format);
    const struct ph_field_settings *field = find_field(given, name);
    bool is_any = false;
    char line[LINE_BYTES];
    if (field == NULL)
        field = find_field(built_in, name);
    if (field != NULL)
        PH_TRY(add_field(settings, field, name, from, encoder));
    PH_TRY(add_derived(settings, given, (struct field_list){NULL, 0}, from, encoder, &is_any));
    PH_TRY(add_derived(settings, built_in, given, from, encoder, &is_any));
    if (field == NULL && !is_any)
        return ph_fail(PH_ERROR_CONFIG,
            "%s%s: column '%s' has no entry in data.fields (kind: ignore leaves a column out)",
            settings->train != NULL ? settings->train : "data.train", line_of(from.header_line, line), name);
    return PH_OK;
}

static ph_status add_column(
    const struct ph_data_settings *settings, const char *name, struct ph_encoder *encoder)
{
    return add_file_column(settings, (struct file_column){name, false, 0}, encoder);
}

static ph_status build_criteo(const struct ph_data_settings *settings, struct ph_encoder *encoder)
{
    char name[16];
    PH_TRY(add_column(settings, "label", encoder));
    for (int i = 1; i <= CRITEO_COUNTS; i++) {
        snprintf(name, sizeof name, "I%d", i);
        PH_TRY(add_column(settings, name, encoder));
    }
    for (int i = 1; i <= CRITEO_CATEGORIES; i++) {
        snprintf(name, sizeof name, "C%d", i);
        PH_TRY(add_column(settings, name, encoder));
    }
    return PH_OK;
}

static ph_status build_libsvm(
    const struct ph_data_settings *settings, size_t num_fields, struct ph_encoder *encoder)
{
    char name[24];
    PH_TRY(add_column(settings, "label", encoder));
    if (settings->format == PH_DATA_LIBSVM)
        return add_column(settings, "features", encoder);
    for (size_t i = 0; i < num_fields; i++) {
        snprintf(name, sizeof name, "%zu", i);
        PH_TRY(add_column(settings, name, encoder));
    }
    return PH_OK;
}

static ph_status build_from_names(
    const struct ph_data_settings *settings, const struct ph__file_shape *shape, struct ph_encoder *encoder)
{
    for (size_t i = 0; i < shape->num_names; i++) {
        bool is_list = shape->is_list != NULL && shape->is_list[i];
        const struct file_column column = {shape->names[i], is_list, shape->header_line};
        PH_TRY(add_file_column(settings, column, encoder));
    }
    return PH_OK;
}

static ph_status build_from_fields(const struct ph_data_settings *settings, struct ph_encoder *encoder)
{
    struct field_list fields = given_fields(settings);
    for (size_t i = 0; i < fields.count; i++) {
        const struct ph_field_settings *field = &fields.items[i];
        if (ph__field_is_pattern(field))
            return ph_fail(PH_ERROR_CONFIG,
                "data.fields: '%s': a pattern needs a data.train whose header can be looked at before",
                field->name);
        const char *from = ph__field_is_derived(field) ? field->from : field->name;
        PH_TRY(add_field(settings, field, field->name, (struct file_column){from, false, 0}, encoder));
    }
    return PH_OK;
}

/* The entries that some column of the file has met. */
static void mark_met(struct field_list fields, const struct ph_encoder *encoder, bool *is_met)
{
    for (size_t i = 0; i < encoder->num_columns; i++) {
        const char *from = encoder->columns[i].from;
        const struct ph_field_settings *field = find_field(fields, from);
        if (field != NULL)
            is_met[field - fields.items] = true;
        for (size_t k = 0; k < fields.count; k++)
            is_met[k] |= ph__field_is_derived(&fields.items[k]) && strcmp(fields.items[k].from, from) == 0;
    }
}

static ph_status fail_unmet(
    const struct ph_data_settings *settings, uint64_t header_line, const struct ph_field_settings *field)
{
    const char *name = ph__field_is_derived(field) ? field->from : field->name;
    char line[LINE_BYTES];
    if (ph__field_is_pattern(field))
        return ph_fail(
            PH_ERROR_CONFIG, "data.fields: '%s': no column starts so and has no entry of its own", name);
    if (settings->format == PH_DATA_CRITEO || settings->format == PH_DATA_LIBSVM ||
        settings->format == PH_DATA_LIBFFM)
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s' is no column of such a file", name);
    if (settings->format == PH_DATA_NPY)
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s' is no column of the arrays of %s", name,
            settings->train != NULL ? settings->train : "data.train");
    if (settings->train == NULL)
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s' is no column of the data", name);
    return ph_fail(PH_ERROR_CONFIG, "%s%s: the header has no column '%s' that data.fields names",
        settings->train, line_of(header_line, line), name);
}

/* Every entry must have met a column, or a misspelt name would go unnoticed: all but "*", the rest, which may be nothing. */
static ph_status check_all_fields_met(
    const struct ph_data_settings *settings, uint64_t header_line, const struct ph_encoder *encoder)
{
    struct field_list fields = given_fields(settings);
    bool *is_met = calloc(fields.count + 1, sizeof *is_met);
    if (is_met == NULL)
        return ph_fail(PH_ERROR_MEMORY, "data.fields: no memory for %zu entries", fields.count);
    mark_met(fields, encoder, is_met);
    size_t i = 0;
    while (i < fields.count && (is_met[i] || strcmp(fields.items[i].name, "*") == 0))
        i++;
    free(is_met);
    return i == fields.count ? PH_OK : fail_unmet(settings, header_line, &fields.items[i]);
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
                "data.%s: '%s' is not one ASCII character other than a quote or a line end", key, texts[i]);
        separators[i] = texts[i][0];
    }
    if (separators[0] == separators[1])
        return ph_fail(PH_ERROR_CONFIG, "data.list_separator: the same character separates cells");
    encoder->separator = separators[0];
    encoder->list_separator = separators[1];
    return PH_OK;
}

bool ph__has_quotes(int format)
{
    return format == PH_DATA_CSV || format == PH_DATA_AVAZU;
}

char ph__default_separator(int format)
{
    return ph__has_quotes(format) ? ',' : '\t'; /* commas are what needs quotes */
}

bool ph__has_header(const struct ph_data_settings *settings)
{
    switch ((enum ph_data_format)settings->format) {
    case PH_DATA_CSV:
    case PH_DATA_TSV:
        return settings->has_header;
    case PH_DATA_AVAZU:
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

ph_status ph__schema_build(
    const struct ph_data_settings *settings, const struct ph__file_shape *shape, struct ph_encoder *encoder)
{
    encoder->format = (enum ph_data_format)settings->format;
    encoder->has_header = ph__has_header(settings);
    const bool is_libsvm = settings->format == PH_DATA_LIBSVM || settings->format == PH_DATA_LIBFFM;
    const bool is_arrays = settings->format == PH_DATA_NPY || settings->format == PH_DATA_ARROW;
    PH_TRY(read_separators(settings, encoder));
    PH_TRY(ph__schema_check_fields(settings, is_libsvm || is_arrays || shape->is_list != NULL));
    bool is_criteo =
        settings->format == PH_DATA_CRITEO || (settings->format == PH_DATA_NPY && shape->num_names == 0);
    if (is_criteo)
        PH_TRY(build_criteo(settings, encoder));
    else if (is_libsvm)
        PH_TRY(build_libsvm(settings, shape->num_fields, encoder));
    else if (settings->fields.count == 0 && built_in_fields(settings->format).count == 0)
        return ph_fail(PH_ERROR_CONFIG, "data.fields: the schema is missing, for example "
                                        "[{name: label, kind: label}, {name: \"*\", kind: id}]");
    else if (shape->num_names > 0)
        PH_TRY(build_from_names(settings, shape, encoder));
    else
        PH_TRY(build_from_fields(settings, encoder));
    return check_all_fields_met(settings, shape->header_line, encoder);
}
