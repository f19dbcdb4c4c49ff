/* From the settings of an id field to its column: how its ids become rows of a table. */
#include <string.h>

#include "base/memory/memory.h"
#include "data/encode/decimal.h"
#include "data/encode/encoder.h"
#include "data/encode/schema.h"

/* "1, 2.5, 10" */
static ph_status parse_boundaries(const char *text, struct ph__column *column)
{
    size_t capacity = 0;
    for (const char *at = text; at != NULL;) {
        at += strspn(at, " ");
        size_t length = strcspn(at, ", ");
        const char *next = at + length + strspn(at + length, " ");
        PH_TRY(ph__array_reserve(
            (void **)&column->boundaries, &capacity, column->num_boundaries + 1, sizeof *column->boundaries));
        double *boundary = &column->boundaries[column->num_boundaries];
        if (!ph__decimal_parse(at, length, boundary) || (*next != ',' && *next != '\0') ||
            (column->num_boundaries > 0 && boundary[-1] >= *boundary))
            return ph_fail(PH_ERROR_CONFIG,
                "data.fields: '%s': boundaries must be numbers that grow, with commas between them, not '%s'",
                column->name, text);
        column->num_boundaries++;
        at = *next == ',' ? next + 1 : NULL;
    }
    return PH_OK;
}

static ph_status set_buckets(const struct ph_field_settings *field, struct ph__column *column)
{
    bool has_boundaries = field->boundaries != NULL && field->boundaries[0] != '\0';
    column->num_buckets = (size_t)field->num_buckets;
    if (has_boundaries == (column->num_buckets > 0))
        return ph_fail(PH_ERROR_CONFIG,
            "data.fields: '%s': encoding bucket needs either boundaries or buckets, their number",
            column->name);
    return has_boundaries ? parse_boundaries(field->boundaries, column) : PH_OK;
}

static ph_status set_rows(
    const struct ph_data_settings *settings, const struct ph_field_settings *field, struct ph__column *column)
{
    column->num_rows = (uint64_t)(field->rows != 0 ? field->rows : settings->rows);
    if (column->encoding == PH_ENCODING_RAW && column->num_rows < 1)
        return ph_fail(
            PH_ERROR_CONFIG, "data.fields: '%s': raw ids need rows, the size of the table", column->name);
    if (column->encoding == PH_ENCODING_HASH && column->num_rows < 2)
        return ph_fail(
            PH_ERROR_CONFIG, "data.fields: '%s': hashed ids need rows of at least 2", column->name);
    return PH_OK;
}

static ph_status set_list(
    const struct ph_data_settings *settings, const struct ph_field_settings *field, struct ph__column *column)
{
    bool is_libsvm = settings->format == PH_DATA_LIBSVM || settings->format == PH_DATA_LIBFFM;
    column->is_list = field->is_list || is_libsvm;
    column->is_weighted = field->is_weighted || is_libsvm;
    column->max_length = field->max_length == 0 ? SIZE_MAX : (size_t)field->max_length;
    column->part = (enum ph_time_part)field->part;
    if (column->is_weighted && !column->is_list)
        return ph_fail(
            PH_ERROR_CONFIG, "data.fields: '%s': only the ids of a list are weighted", column->name);
    if (field->is_weighted && settings->list_separator != NULL && settings->list_separator[0] == ':')
        return ph_fail(PH_ERROR_CONFIG,
            "data.list_separator: ':' stands between id and weight in the list '%s'", column->name);
    bool is_bucket = ph__column_is_bucket(column);
    if (column->is_list && (is_bucket || column->part != PH_TIME_WHOLE))
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s': a list has neither buckets nor parts of a time",
            column->name);
    if (is_bucket && column->is_group)
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s': a number in buckets is no group", column->name);
    if (is_bucket && column->part != PH_TIME_WHOLE)
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s': the part of a time has no buckets", column->name);
    return PH_OK;
}

ph_status ph__schema_set_id(
    const struct ph_data_settings *settings, const struct ph_field_settings *field, struct ph__column *column)
{
    column->is_group = field->is_group;
    if (ph__field_is_sharing(field)) {
        PH_TRY(ph__column_share(column, field->shares));
        return set_list(settings, field, column);
    }
    column->encoding = (enum ph_field_encoding)(
        field->encoding == PH_ENCODING_INHERIT ? settings->encoding : field->encoding);
    column->min_count = (uint64_t)(field->min_count != 0 ? field->min_count : settings->min_count);
    column->hash_seed = (uint64_t)(field->hash_seed >= 0 ? field->hash_seed : settings->hash_seed);
    PH_TRY(set_list(settings, field, column));
    if (column->encoding == PH_ENCODING_RAW || column->encoding == PH_ENCODING_HASH)
        return set_rows(settings, field, column);
    return column->encoding == PH_ENCODING_BUCKET ? set_buckets(field, column) : PH_OK;
}
