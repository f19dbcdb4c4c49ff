/* Entries of data.fields that would change nothing, as ph_encoder_create refuses them. */
#include "data/encode/schema.h"

#include "data/encode/encoder.h"
#include "unit/data/data_fixture.h"

static void assert_refused(struct fixture *fixture, const char *part)
{
    struct ph_encoder *encoder = NULL;
    assert_fails(ph_encoder_create(&fixture->settings, &encoder), PH_ERROR_CONFIG, part);
    assert_null(encoder);
}

static void init(struct fixture *fixture)
{
    fixture_init(fixture, fixture_file("fields.csv", "label,a,n_1\n1,2,3\n"));
    fixture_field(fixture, "label", PH_FIELD_LABEL);
}

static void a_pattern_that_no_column_meets_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    init(&fixture);
    fixture_field(&fixture, "*", PH_FIELD_ID);
    struct ph__field_settings *pattern = fixture_field(&fixture, "m_*", PH_FIELD_DENSE);
    assert_refused(&fixture, "'m_*': no column without an entry of its own matches this pattern");
    pattern->name = "n_*"; /* its columns have met the rest's entry, which stands before it */
    assert_refused(&fixture, "'n_*': no column without an entry of its own");
    fixture.fields[1].name = "a*";
    ph_encoder_destroy(fixture_encoder(&fixture));
    fixture_field(&fixture, "n_1", PH_FIELD_ID);
    assert_refused(&fixture, "'n_*': no column without an entry of its own");
    pattern->name = "*"; /* the rest may be nothing */
    ph_encoder_destroy(fixture_encoder(&fixture));
}

static void a_name_has_one_entry(void **state)
{
    (void)state;
    struct fixture fixture;
    init(&fixture);
    fixture_field(&fixture, "*", PH_FIELD_ID);
    fixture_field(&fixture, "a", PH_FIELD_ID);
    fixture_field(&fixture, "a", PH_FIELD_DENSE);
    assert_refused(&fixture, "'a' has two entries");
    fixture.fields[3].name = "*";
    assert_refused(&fixture, "'*' has two entries");
}

static void what_is_made_from_a_column_is_no_pattern(void **state)
{
    (void)state;
    struct fixture fixture;
    init(&fixture);
    fixture_field(&fixture, "n_*", PH_FIELD_DENSE)->from = "a";
    fixture_field(&fixture, "*", PH_FIELD_ID);
    assert_refused(&fixture, "'n_*': a field with 'from' must have a name without '*'");
}

/* Though the file has a column of the name that the feature would have had. */
static void a_feature_from_no_column_is_missed_beside_its_namesake(void **state)
{
    (void)state;
    struct fixture fixture;
    init(&fixture);
    fixture_field(&fixture, "a", PH_FIELD_ID)->from = "when";
    fixture_field(&fixture, "*", PH_FIELD_ID);
    assert_refused(&fixture, "fields.csv:1: the header has no column 'when'");
}

static void a_key_that_nothing_reads_is_refused(void **state)
{
    (void)state;
    static const struct {
        enum ph__field_kind kind;
        enum ph__field_encoding encoding;
        struct ph__field_settings given; /* zero: not */
        const char *problem;
    } cases[] = {
        {PH_FIELD_ID, PH_ENCODING_INHERIT, {.transform = PH_TRANSFORM_LOG1P}, "transform is only for dense"},
        {PH_FIELD_ID, PH_ENCODING_INHERIT, {.missing = 1}, "missing is only for dense"},
        {PH_FIELD_ID, PH_ENCODING_INHERIT, {.has_indicator = true}, "missing_indicator is only for dense"},
        {PH_FIELD_DENSE, PH_ENCODING_INHERIT, {.missing = 1, .transform = PH_TRANSFORM_STANDARDISE},
            "missing is only for dense fields that are not standardised"},
        {PH_FIELD_DENSE, PH_ENCODING_HASH, {0}, "encoding is only for ids"},
        {PH_FIELD_IGNORE, PH_ENCODING_HASH, {0}, "encoding is only for ids"},
        {PH_FIELD_WEIGHT, PH_ENCODING_INHERIT, {.rows = 9}, "rows is only for raw and hashed ids"},
        {PH_FIELD_ID, PH_ENCODING_INHERIT, {.rows = 9}, "rows is only for raw and hashed ids"},
        {PH_FIELD_ID, PH_ENCODING_LOG_BUCKET, {.rows = 9}, "rows is only for raw and hashed ids"},
        {PH_FIELD_ID, PH_ENCODING_HASH, {.rows = 9, .min_count = 2}, "min_count is only for ids with a voc"},
        {PH_FIELD_DENSE, PH_ENCODING_INHERIT, {.min_count = 2}, "min_count is only for ids with a voc"},
        {PH_FIELD_ID, PH_ENCODING_RAW, {.rows = 9, .hash_seed = 3}, "hash_seed is only for hashed ids"},
        {PH_FIELD_ID, PH_ENCODING_INHERIT, {.num_buckets = 3}, "buckets is only for encoding bucket"},
        {PH_FIELD_ID, PH_ENCODING_LOG_BUCKET, {.boundaries = "1"}, "boundaries is only for encoding bucket"},
        {PH_FIELD_DENSE, PH_ENCODING_INHERIT, {.boundaries = "1"}, "boundaries is only for encoding bucket"},
        {PH_FIELD_GROUP, PH_ENCODING_INHERIT, {.part = PH_TIME_HOUR}, "part is only for ids"},
        {PH_FIELD_DENSE, PH_ENCODING_INHERIT, {.is_weighted = true}, "weighted is only for lists of ids"},
        {PH_FIELD_ID, PH_ENCODING_INHERIT, {.max_length = 5}, "max_length is only for lists of ids"},
        {PH_FIELD_DENSE, PH_ENCODING_INHERIT, {.max_length = 5}, "max_length is only for lists of ids"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture fixture;
        init(&fixture);
        struct ph__field_settings *field = fixture_field(&fixture, "a", cases[i].kind);
        const struct ph__field_settings empty = *field;
        *field = cases[i].given;
        field->name = empty.name;
        field->kind = empty.kind;
        field->encoding = cases[i].encoding;
        field->hash_seed = cases[i].given.hash_seed != 0 ? cases[i].given.hash_seed : empty.hash_seed;
        fixture_field(&fixture, "*", PH_FIELD_ID);
        assert_refused(&fixture, cases[i].problem);
        assert_non_null(strstr(ph_error_text(), "data.fields: 'a': "));
    }
}

/* What a field inherits decides, too; and the data's own lists need no list: true. */
static void keys_that_are_read_are_fine(void **state)
{
    (void)state;
    struct fixture fixture;
    init(&fixture);
    fixture.settings.encoding = PH_ENCODING_HASH;
    struct ph__field_settings *field = fixture_field(&fixture, "*", PH_FIELD_ID);
    field->rows = 50;
    field->hash_seed = 0;
    ph_encoder_destroy(fixture_encoder(&fixture));
    fixture_init(&fixture, fixture_file("fields.svm", "1 3:1 4:1\n"));
    fixture.settings.format = PH_DATA_LIBSVM;
    fixture_field(&fixture, "features", PH_FIELD_ID)->max_length = 1;
    ph_encoder_destroy(fixture_encoder(&fixture));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_that_no_column_meets_is_refused),
        cmocka_unit_test(a_name_has_one_entry),
        cmocka_unit_test(what_is_made_from_a_column_is_no_pattern),
        cmocka_unit_test(a_feature_from_no_column_is_missed_beside_its_namesake),
        cmocka_unit_test(a_key_that_nothing_reads_is_refused),
        cmocka_unit_test(keys_that_are_read_are_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
