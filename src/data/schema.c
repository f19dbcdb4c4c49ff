/* From the settings' fields and the header of the training file to columns. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "data/encoder.h"

#define CRITEO_COUNTS 13
#define CRITEO_CATEGORIES 26

static bool is_pattern(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && name[length - 1] == '*';
}

static const struct ph_field_settings *field_at(const struct ph_record_list *fields, size_t index)
{
    return (const struct ph_field_settings *)fields->items + index;
}

/* Exact names first, then patterns in their order. */
static const struct ph_field_settings *find_field(const struct ph_record_list *fields, const char *name)
{
    for (size_t i = 0; i < fields->count; i++)
        if (strcmp(field_at(fields, i)->name, name) == 0 && !is_pattern(name))
            return field_at(fields, i);
    for (size_t i = 0; i < fields->count; i++) {
        const char *pattern = field_at(fields, i)->name;
        if (is_pattern(pattern) && strncmp(pattern, name, strlen(pattern) - 1) == 0)
            return field_at(fields, i);
    }
    return NULL;
}

static ph_status set_id_encoding(
    const struct ph_data_settings *settings, const struct ph_field_settings *field, struct ph__column *column)
{
    int encoding = field->encoding == PH_ENCODING_INHERIT ? settings->encoding : field->encoding;
    int64_t rows = field->rows != 0 ? field->rows : settings->rows;
    column->encoding = (enum ph_field_encoding)encoding;
    column->min_count = (uint64_t)(field->min_count != 0 ? field->min_count : settings->min_count);
    column->hash_seed = (uint64_t)(field->hash_seed >= 0 ? field->hash_seed : settings->hash_seed);
    column->is_list = field->is_list;
    column->max_length = field->max_length == 0 ? SIZE_MAX : (size_t)field->max_length;
    column->is_group = field->is_group;
    if (encoding == PH_ENCODING_VOCABULARY)
        return PH_OK;
    column->num_rows = (uint64_t)rows;
    if (encoding == PH_ENCODING_RAW && rows < 1)
        return ph_fail(
            PH_ERROR_CONFIG, "data.fields: '%s': raw ids need rows, the size of the table", column->name);
    if (encoding == PH_ENCODING_HASH && rows < 2)
        return ph_fail(
            PH_ERROR_CONFIG, "data.fields: '%s': hashed ids need rows of at least 2", column->name);
    return PH_OK;
}

static ph_status add_field(const struct ph_data_settings *settings, const struct ph_field_settings *field,
    const char *name, struct ph_encoder *encoder)
{
    struct ph__column *column;
    PH_TRY(ph__encoder_add_column(encoder, name, &column));
    column->kind = (enum ph_field_kind)field->kind;
    column->transform = (enum ph_dense_transform)field->transform;
    column->missing = (float)field->missing;
    if (column->kind == PH_FIELD_ID)
        return set_id_encoding(settings, field, column);
    if (field->is_list || field->is_group)
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s': only id fields may be lists or groups", name);
    return PH_OK;
}

static ph_status add_criteo_column(const struct ph_data_settings *settings, const char *name,
    const struct ph_field_settings *built_in, struct ph_encoder *encoder)
{
    const struct ph_field_settings *field = find_field(&settings->fields, name);
    return add_field(settings, field != NULL ? field : built_in, name, encoder);
}

/* Criteo's columns; data.fields may give some of them another meaning. */
static ph_status build_criteo(const struct ph_data_settings *settings, struct ph_encoder *encoder)
{
    const struct ph_field_settings label = {.kind = PH_FIELD_LABEL};
    const struct ph_field_settings count = {.kind = PH_FIELD_DENSE, .transform = PH_TRANSFORM_LOG1P};
    const struct ph_field_settings category = {
        .kind = PH_FIELD_ID, .encoding = PH_ENCODING_INHERIT, .hash_seed = -1};
    char name[16];
    PH_TRY(add_criteo_column(settings, "label", &label, encoder));
    for (int i = 1; i <= CRITEO_COUNTS; i++) {
        snprintf(name, sizeof name, "I%d", i);
        PH_TRY(add_criteo_column(settings, name, &count, encoder));
    }
    for (int i = 1; i <= CRITEO_CATEGORIES; i++) {
        snprintf(name, sizeof name, "C%d", i);
        PH_TRY(add_criteo_column(settings, name, &category, encoder));
    }
    return PH_OK;
}

static ph_status build_from_header(
    const struct ph_data_settings *settings, char *const *names, size_t num_names, struct ph_encoder *encoder)
{
    for (size_t i = 0; i < num_names; i++) {
        const struct ph_field_settings *field = find_field(&settings->fields, names[i]);
        if (field == NULL)
            return ph_fail(PH_ERROR_CONFIG,
                "%s:1: column '%s' has no entry in data.fields (kind: ignore leaves a column out)",
                settings->train, names[i]);
        PH_TRY(add_field(settings, field, names[i], encoder));
    }
    return PH_OK;
}

static ph_status build_from_fields(const struct ph_data_settings *settings, struct ph_encoder *encoder)
{
    for (size_t i = 0; i < settings->fields.count; i++) {
        const struct ph_field_settings *field = field_at(&settings->fields, i);
        if (is_pattern(field->name))
            return ph_fail(PH_ERROR_CONFIG,
                "data.fields: '%s': a pattern needs data.train with a header to match", field->name);
        PH_TRY(add_field(settings, field, field->name, encoder));
    }
    return PH_OK;
}

/* Every entry without a '*' must have met a column: a misspelt name would otherwise go unnoticed. */
static ph_status check_all_fields_used(
    const struct ph_data_settings *settings, const struct ph_encoder *encoder)
{
    for (size_t i = 0; i < settings->fields.count; i++) {
        const char *name = field_at(&settings->fields, i)->name;
        if (is_pattern(name) || ph__encoder_find(encoder, name) != NULL)
            continue;
        if (settings->format == PH_DATA_CRITEO)
            return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s' is no column of the Criteo format", name);
        return ph_fail(PH_ERROR_CONFIG, "%s:1: the header has no column '%s' that data.fields names",
            settings->train, name);
    }
    return PH_OK;
}

static ph_status read_separators(const struct ph_data_settings *settings, struct ph_encoder *encoder)
{
    const char *texts[] = {settings->separator, settings->list_separator};
    char separators[] = {settings->format == PH_DATA_CSV ? ',' : '\t', '|'};
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

ph_status ph__schema_build(
    const struct ph_data_settings *settings, char *const *names, size_t num_names, struct ph_encoder *encoder)
{
    encoder->format = (enum ph_data_format)settings->format;
    encoder->has_header = settings->has_header && settings->format != PH_DATA_CRITEO;
    PH_TRY(read_separators(settings, encoder));
    if (settings->format == PH_DATA_CRITEO)
        PH_TRY(build_criteo(settings, encoder));
    else if (settings->fields.count == 0)
        return ph_fail(PH_ERROR_CONFIG, "data.fields: the schema is missing, for example "
                                        "[{name: label, kind: label}, {name: \"*\", kind: id}]");
    else if (num_names > 0)
        PH_TRY(build_from_header(settings, names, num_names, encoder));
    else
        PH_TRY(build_from_fields(settings, encoder));
    return check_all_fields_used(settings, encoder);
}
