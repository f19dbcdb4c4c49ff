/* Whether the entries of data.fields can be what they say, before they meet columns: what would change nothing is refused. */
#include "base/text/name_index.h"
#include "data/encode/schema.h"

static ph_status check_name(const struct ph_field_settings *field, struct ph_name_index *earlier)
{
    if (ph__field_is_derived(field) && ph__field_is_pattern(field))
        return ph_fail(PH_ERROR_CONFIG,
            "data.fields: '%s': what is made from another column has a name of its own, without '*'",
            field->name);
    if (ph__name_index_find(earlier, field->name) != PH_NO_NAME)
        return ph_fail(PH_ERROR_CONFIG, "data.fields: '%s' has two entries", field->name);
    return ph__name_index_add(earlier, field->name);
}

static ph_status check_names(const struct ph_field_settings *fields, size_t count)
{
    struct ph_name_index names = {0};
    ph_status status = PH_OK;
    for (size_t i = 0; i < count && status == PH_OK; i++)
        status = check_name(&fields[i], &names);
    ph__name_index_fini(&names);
    return status;
}

/* A key, whether the entry says something other than its default, and whether the entry is what it is for. */
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

static ph_status check_dense_keys(const struct ph_field_settings *field)
{
    const bool is_dense = field->kind == PH_FIELD_DENSE;
    const bool is_standardised =
        field->transform == PH_TRANSFORM_STANDARDISE || field->transform == PH_TRANSFORM_LOG1P_STANDARDISE;
    const struct key keys[] = {
        {"transform", field->transform != PH_TRANSFORM_NONE, is_dense, "dense fields"},
        {"missing", field->missing != 0, is_dense && !is_standardised,
            "dense fields that are not standardised"},
        {"missing_indicator", field->has_indicator, is_dense, "dense fields"},
    };
    return check_used(field->name, keys, sizeof keys / sizeof keys[0]);
}

/* What a field takes over from the one that it shares with. */
static ph_status check_own_keys(const struct ph_field_settings *field)
{
    const bool is_own = !ph__field_is_sharing(field);
    const char *const user = "fields that share no other's rows";
    const struct key keys[] = {
        {"encoding", field->encoding != PH_ENCODING_INHERIT, is_own, user},
        {"rows", field->rows != 0, is_own, user},
        {"min_count", field->min_count != 0, is_own, user},
        {"hash_seed", field->hash_seed >= 0, is_own, user},
        {"buckets", field->num_buckets != 0, is_own, user},
        {"boundaries", field->boundaries != NULL && field->boundaries[0] != '\0', is_own, user},
        {"shares", !is_own, field->kind == PH_FIELD_ID, "ids"},
    };
    return check_used(field->name, keys, sizeof keys / sizeof keys[0]);
}

static ph_status check_id_keys(
    const struct ph_data_settings *settings, const struct ph_field_settings *field, bool may_be_list)
{
    const bool is_id = field->kind == PH_FIELD_ID;
    const int encoding = field->encoding == PH_ENCODING_INHERIT ? settings->encoding : field->encoding;
    const bool is_hash = is_id && encoding == PH_ENCODING_HASH;
    const bool is_bucket = is_id && encoding == PH_ENCODING_BUCKET;
    const struct key keys[] = {
        {"encoding", field->encoding != PH_ENCODING_INHERIT, is_id, "ids"},
        {"rows", field->rows != 0, is_hash || (is_id && encoding == PH_ENCODING_RAW), "raw and hashed ids"},
        {"min_count", field->min_count != 0, is_id && encoding == PH_ENCODING_VOCABULARY,
            "ids with a vocabulary"},
        {"hash_seed", field->hash_seed >= 0, is_hash, "hashed ids"},
        {"buckets", field->num_buckets != 0, is_bucket, "encoding bucket"},
        {"boundaries", field->boundaries != NULL && field->boundaries[0] != '\0', is_bucket,
            "encoding bucket"},
        {"part", field->part != PH_TIME_WHOLE, is_id, "ids"},
        {"weighted", field->is_weighted, is_id, "lists of ids"},
        {"max_length", field->max_length != 0, is_id && (field->is_list || may_be_list), "lists of ids"},
    };
    return check_used(field->name, keys, sizeof keys / sizeof keys[0]);
}

ph_status ph__schema_check_fields(const struct ph_data_settings *settings, bool may_be_lists)
{
    const struct ph_field_settings *fields = settings->fields.items;
    PH_TRY(check_names(fields, settings->fields.count));
    for (size_t i = 0; i < settings->fields.count; i++) {
        PH_TRY(check_dense_keys(&fields[i]));
        PH_TRY(check_own_keys(&fields[i]));
        PH_TRY(check_id_keys(settings, &fields[i], may_be_lists));
    }
    return PH_OK;
}
