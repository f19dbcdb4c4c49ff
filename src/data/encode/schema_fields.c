/* Entries of data.fields: refuses, before columns are built, impossible entries and keys without effect; and
 * sets how an id column's ids become rows of a table. */
#include <string.h>

#include "base/memory/memory.h"
#include "base/text/name_index.h"
#include "base/text/number.h"
#include "data/encode/cell_text.h"
#include "data/encode/encoder.h"
#include "data/encode/schema.h"

static bool has_boundaries(const struct ph__field_settings *field)
{
    return field->boundaries != NULL && field->boundaries[0] != '\0';
}

static enum ph__field_encoding encoding_of(
    const struct ph_data_settings *settings, const struct ph__field_settings *field)
{
    return field->encoding == PH_ENCODING_INHERIT ? settings->encoding : field->encoding;
}

/* ---- checks of entries ---- */

static ph_status check_name(const struct ph__field_settings *field, struct ph__name_index *earlier)
{
    if (ph__field_is_derived(field) && ph__field_is_pattern(field))
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s': a field with 'from' must have a name without '*'",
            field->name);
    if (ph__name_index_find(earlier, field->name) != PH_NO_NAME)
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s' has two entries", field->name);
    return ph__name_index_add(earlier, field->name);
}

static ph_status check_names(const struct ph__field_settings *fields, size_t count)
{
    struct ph__name_index names = {0};
    ph_status status = PH_OK;
    for (size_t i = 0; i < count && status == PH_OK; i++)
        status = check_name(&fields[i], &names);
    ph__name_index_fini(&names);
    return status;
}

/* A key of an entry. is_given: the entry sets it to other than its default; is_used: the entry is of the kind
 * that the key is for, which `user` names in errors. */
struct key {
    const char *name;
    bool is_given, is_used;
    const char *user;
};

static ph_status check_used(const char *field, const struct key *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (keys[i].is_given && !keys[i].is_used)
            return ph_fail(
                PH_ERROR_CONFIG, "data.fields: '%s': %s is only for %s", field, keys[i].name, keys[i].user);
    return PH_OK;
}

static ph_status check_dense_keys(const struct ph__field_settings *field)
{
    const bool is_dense = field->kind == PH_FIELD_DENSE;
    const bool is_standardised =
        field->transform == PH_TRANSFORM_STANDARDISE || field->transform == PH_TRANSFORM_LOG1P_STANDARDISE;
    const struct key keys[] = {
        {"transform", field->transform != PH_TRANSFORM_NONE, is_dense, "dense fields"},
        {"missing", field->missing != 0, is_dense && !is_standardised,
            "dense fields that are not standardised"},
        {"missing_indicator", field->has_indicator, is_dense, "dense fields"},
        {"classes", field->classes.count > 0, field->kind == PH_FIELD_LABEL, "labels"},
    };
    return check_used(field->name, keys, sizeof keys / sizeof keys[0]);
}

/* Refuses keys that a field takes over from the field whose rows it shares. */
static ph_status check_own_keys(const struct ph__field_settings *field)
{
    const bool is_own = !ph__field_is_sharing(field);
    const char *const user = "fields without shares";
    const struct key keys[] = {
        {"encoding", field->encoding != PH_ENCODING_INHERIT, is_own, user},
        {"rows", field->rows != 0, is_own, user},
        {"min_count", field->min_count != 0, is_own, user},
        {"hash_seed", field->hash_seed >= 0, is_own, user},
        {"buckets", field->num_buckets != 0, is_own, user},
        {"boundaries", has_boundaries(field), is_own, user},
        {"shares", !is_own, field->kind == PH_FIELD_ID, "ids"},
    };
    return check_used(field->name, keys, sizeof keys / sizeof keys[0]);
}

static ph_status check_id_keys(
    const struct ph_data_settings *settings, const struct ph__field_settings *field, bool may_be_list)
{
    const bool is_id = field->kind == PH_FIELD_ID;
    const enum ph__field_encoding encoding = encoding_of(settings, field);
    const bool is_hash = is_id && encoding == PH_ENCODING_HASH;
    const bool is_bucket = is_id && encoding == PH_ENCODING_BUCKET;
    const struct key keys[] = {
        {"encoding", field->encoding != PH_ENCODING_INHERIT, is_id, "ids"},
        {"rows", field->rows != 0, is_hash || (is_id && encoding == PH_ENCODING_RAW), "raw and hashed ids"},
        {"min_count", field->min_count != 0, is_id && encoding == PH_ENCODING_VOCABULARY,
            "ids with a vocabulary"},
        {"hash_seed", field->hash_seed >= 0, is_hash, "hashed ids"},
        {"buckets", field->num_buckets != 0, is_bucket, "encoding bucket"},
        {"boundaries", has_boundaries(field), is_bucket, "encoding bucket"},
        {"part", field->part != PH_TIME_WHOLE, is_id, "ids"},
        {"weighted", field->is_weighted, is_id, "lists of ids"},
        {"max_length", field->max_length != 0, is_id && (field->is_list || may_be_list), "lists of ids"},
    };
    return check_used(field->name, keys, sizeof keys / sizeof keys[0]);
}

ph_status ph__schema_check_fields(const struct ph_data_settings *settings, bool may_be_lists)
{
    const struct ph__field_settings *fields = settings->fields.items;
    PH_TRY(check_names(fields, settings->fields.count));
    for (size_t i = 0; i < settings->fields.count; i++) {
        PH_TRY(check_dense_keys(&fields[i]));
        PH_TRY(check_own_keys(&fields[i]));
        PH_TRY(check_id_keys(settings, &fields[i], may_be_lists));
    }
    return PH_OK;
}

/* ---- ids ---- */

/* Parses boundaries such as "1, 2.5, 10". */
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
                "data.fields: '%s': boundaries must be increasing numbers with commas between them, not '%s'",
                column->name, text);
        column->num_boundaries++;
        at = *next == ',' ? next + 1 : NULL;
    }
    return PH_OK;
}

static ph_status set_buckets(const struct ph__field_settings *field, struct ph__column *column)
{
    column->num_buckets = (size_t)field->num_buckets;
    if (has_boundaries(field) == (column->num_buckets > 0))
        return ph_fail(PH_ERROR_CONFIG,
            "data.fields: '%s': encoding bucket needs either boundaries or buckets (their number), not both",
            column->name);
    return has_boundaries(field) ? parse_boundaries(field->boundaries, column) : PH_OK;
}

static ph_status set_rows(const struct ph_data_settings *settings, const struct ph__field_settings *field,
    struct ph__column *column)
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

static ph_status set_list(const struct ph_data_settings *settings, const struct ph__field_settings *field,
    struct ph__column *column)
{
    bool is_libsvm = settings->format == PH_DATA_LIBSVM || settings->format == PH_DATA_LIBFFM;
    column->is_list = field->is_list || is_libsvm;
    column->is_weighted = field->is_weighted || is_libsvm;
    column->max_length = field->max_length == 0 ? SIZE_MAX : (size_t)field->max_length;
    column->component = field->part;
    if (column->is_weighted && !column->is_list)
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s': only a list can be weighted", column->name);
    if (field->is_weighted && settings->list_separator != NULL && settings->list_separator[0] == ':')
        return ph_fail(PH_ERROR_CONFIG,
            "data.list_separator: ':' separates id and weight in the list '%s'; choose another",
            column->name);
    bool is_bucket = ph__column_is_bucket(column);
    if (column->is_list && (is_bucket || column->component != PH_TIME_WHOLE))
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s': a list cannot have buckets or a part of a time",
            column->name);
    if (is_bucket && column->is_group)
        return ph_fail(
            PH_ERROR_CONFIG, "data.fields: '%s': a field in buckets cannot be a group", column->name);
    if (is_bucket && column->component != PH_TIME_WHOLE)
        return ph_fail(
            PH_ERROR_CONFIG, "data.fields: '%s': the part of a time cannot be in buckets", column->name);
    return PH_OK;
}

ph_status ph__schema_set_id(const struct ph_data_settings *settings, const struct ph__field_settings *field,
    struct ph__column *column)
{
    column->is_group = field->is_group;
    if (ph__field_is_sharing(field)) {
        PH_TRY(ph__column_share(column, field->shares));
        return set_list(settings, field, column);
    }
    column->encoding = encoding_of(settings, field);
    column->min_count = (uint64_t)(field->min_count != 0 ? field->min_count : settings->min_count);
    column->hash_seed = (uint64_t)(field->hash_seed >= 0 ? field->hash_seed : settings->hash_seed);
    PH_TRY(set_list(settings, field, column));
    if (column->encoding == PH_ENCODING_RAW || column->encoding == PH_ENCODING_HASH)
        return set_rows(settings, field, column);
    return column->encoding == PH_ENCODING_BUCKET ? set_buckets(field, column) : PH_OK;
}
