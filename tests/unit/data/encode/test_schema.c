/* The schema as users meet it: ph_encoder_create with fields that fit the file, or do not. */
#include "data/encode/encoder.h"
#include "unit/data/data_fixture.h"

static void a_star_is_every_column_without_an_entry_of_its_own(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, fixture_file("star.csv", "user,click,C1,C2,price\n7,1,a,b,2.5\n"));
    fixture_field(&fixture, "C*", PH_FIELD_IGNORE);
    fixture_field(&fixture, "*", PH_FIELD_ID);
    fixture_field(&fixture, "click", PH_FIELD_LABEL);
    fixture_field(&fixture, "C2", PH_FIELD_ID);
    fixture_field(&fixture, "price", PH_FIELD_DENSE);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_int_equal(ph_encoder_num_tasks(encoder), 1);
    assert_int_equal(ph_encoder_num_dense(encoder), 1);
    assert_string_equal(ph_encoder_dense_name(encoder, 0), "price");
    assert_int_equal(ph_encoder_num_sparse(encoder), 2);
    assert_string_equal(ph_encoder_sparse(encoder, 0)->name, "user");
    assert_string_equal(ph_encoder_sparse(encoder, 1)->name, "C2");
    ph_encoder_destroy(encoder);
}

static void id_fields_inherit_what_they_do_not_say(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, fixture_file("inherit.csv", "label,a,b,c\n1,1,2,3\n"));
    fixture.settings.encoding = PH_ENCODING_HASH;
    fixture.settings.rows = 50;
    fixture_label_and_ids(&fixture);
    fixture_field(&fixture, "b", PH_FIELD_ID)->rows = 70;
    fixture_field(&fixture, "c", PH_FIELD_ID)->encoding = PH_ENCODING_VOCABULARY;
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_int_equal(ph_encoder_sparse(encoder, 0)->num_rows, 50);
    assert_int_equal(ph_encoder_sparse(encoder, 1)->num_rows, 70);
    assert_int_equal(ph_encoder_sparse(encoder, 2)->num_rows, 2);
    ph_encoder_destroy(encoder);
}

static void a_schema_without_vocabulary_or_pattern_needs_no_file(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, NULL);
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "price", PH_FIELD_DENSE);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_int_equal(ph_encoder_num_dense(encoder), 1);
    ph_encoder_destroy(encoder);
}

static void criteo_brings_its_own_schema(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, NULL);
    fixture.settings.format = PH_DATA_CRITEO;
    fixture.settings.encoding = PH_ENCODING_HASH;
    fixture.settings.rows = 1000;
    fixture_field(&fixture, "C3", PH_FIELD_IGNORE);
    fixture_field(&fixture, "C2", PH_FIELD_ID)->rows = 9;
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_int_equal(ph_encoder_num_dense(encoder), 13);
    assert_int_equal(ph_encoder_num_sparse(encoder), 25);
    assert_string_equal(ph_encoder_dense_name(encoder, 12), "I13");
    assert_int_equal(ph_encoder_sparse(encoder, 0)->num_rows, 1000);
    assert_int_equal(ph_encoder_sparse(encoder, 1)->num_rows, 9);
    assert_string_equal(ph_encoder_sparse(encoder, 2)->name, "C4");
    ph_encoder_destroy(encoder);
}

/* ---- what is refused ---- */

static void assert_refused(struct fixture *fixture, ph_status status, const char *part)
{
    struct ph_encoder *encoder = NULL;
    assert_fails(ph_encoder_create(&fixture->settings, &encoder), status, part);
    assert_null(encoder);
}

static void a_schema_that_cannot_be_is_refused(void **state)
{
    (void)state;
    const char *path = fixture_file("schema.csv", "label,a,b\n1,1,2\n");
    struct fixture fixture;
    fixture_init(&fixture, path);
    assert_refused(&fixture, PH_ERROR_CONFIG, "data.fields is missing");

    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    assert_refused(&fixture, PH_ERROR_CONFIG, "schema.csv:1: column 'a' has no entry");

    fixture_field(&fixture, "*", PH_FIELD_IGNORE);
    assert_refused(&fixture, PH_ERROR_CONFIG, "a model needs at least one");

    fixture_field(&fixture, "a", PH_FIELD_ID)->encoding = PH_ENCODING_RAW;
    assert_refused(&fixture, PH_ERROR_CONFIG, "'a': raw ids need rows");

    fixture.fields[2].rows = 10;
    fixture_field(&fixture, "ab", PH_FIELD_ID);
    assert_refused(&fixture, PH_ERROR_CONFIG, "no column 'ab'");

    fixture_init(&fixture, path);
    fixture_field(&fixture, "*", PH_FIELD_ID);
    assert_refused(&fixture, PH_ERROR_CONFIG, "no column is a label");

    fixture_init(&fixture, path);
    fixture_field(&fixture, "label", PH_FIELD_LABEL)->is_list = true;
    fixture_field(&fixture, "*", PH_FIELD_ID);
    assert_refused(&fixture, PH_ERROR_CONFIG, "only id fields may be lists");

    fixture_init(&fixture, path);
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "*", PH_FIELD_ID)->is_group = true;
    assert_refused(&fixture, PH_ERROR_CONFIG, "'b': another field is the group already");
}

/* A header is the first line that is not empty, and its place is said. */
static void a_header_that_does_not_fit_is_named_by_its_line(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, fixture_file("late.csv", "\n\r\nlabel,a,b\n1,1,2\n"));
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "a", PH_FIELD_ID);
    assert_refused(&fixture, PH_ERROR_CONFIG, "late.csv:3: column 'b' has no entry");
    fixture_field(&fixture, "b", PH_FIELD_ID);
    fixture_field(&fixture, "c", PH_FIELD_ID);
    assert_refused(&fixture, PH_ERROR_CONFIG, "late.csv:3: the header has no column 'c'");
    fixture.settings.fields.count = 3;
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 2};
    struct ph_batches *batches = NULL;
    const char *other = fixture_file("other.csv", "\nlabel,b\n1,2\n");
    assert_fails(ph_batches_open(encoder, other, &options, &batches), PH_ERROR_DATA,
        "other.csv:2: the header lacks column 'a'");
    ph_encoder_destroy(encoder);
}

static void separators_are_one_plain_character(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, fixture_file("separators.csv", "label,a\n1,1\n"));
    fixture_label_and_ids(&fixture);
    fixture.settings.separator = "::";
    assert_refused(&fixture, PH_ERROR_CONFIG, "data.separator");
    fixture.settings.separator = "\"";
    assert_refused(&fixture, PH_ERROR_CONFIG, "data.separator");
    fixture.settings.separator = "";
    fixture.settings.list_separator = ",";
    assert_refused(&fixture, PH_ERROR_CONFIG, "data.list_separator");
    fixture.settings.list_separator = ":";
    fixture.fields[1].is_list = true;
    ph_encoder_destroy(fixture_encoder(&fixture)); /* of ids alone it may be one */
    fixture.fields[1].is_weighted = true;
    assert_refused(&fixture, PH_ERROR_CONFIG, "data.list_separator: ':' separates id and weight");
}

static void a_header_that_names_nothing_or_twice_is_refused(void **state)
{
    (void)state;
    const char *const texts[][2] = {
        {"", "is empty"},
        {"label,,a\n", "column 2 has no name"},
        {"label,a,a\n", "two columns are called 'a'"},
        {"label,\"a\n", "a quote is not closed"},
        {"label,\xff\n", "not UTF-8"},
        {"label,a\n", "has no rows"},
        {"\n\r\n", "the file is empty; it must begin with a header"},
        {"\n\n\nlabel,,a\n", "header.csv:4: column 2 has no name"},
        {"\r\nlabel,a,a\n", "header.csv:2: two columns are called 'a'"},
        {"\n\"label\",\"a\n", "header.csv:2: column 2: a quote is not closed"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct fixture fixture;
        fixture_init(&fixture, fixture_file("header.csv", texts[i][0]));
        fixture_label_and_ids(&fixture);
        assert_refused(&fixture, PH_ERROR_DATA, texts[i][1]);
    }
}

/* "a , b", as people write lists; in quotes a name is what it is. */
static void blanks_around_names_are_not_part_of_them(void **state)
{
    (void)state;
    const char *path = fixture_file("blanks.csv", " label,  a\t, b c ,\" d \"\n1,1,1,1\n");
    struct fixture fixture;
    fixture_init(&fixture, path);
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "a", PH_FIELD_ID);
    fixture_field(&fixture, "b c", PH_FIELD_ID);
    fixture_field(&fixture, " d ", PH_FIELD_ID);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_int_equal(ph_encoder_num_sparse(encoder), 3);
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 2};
    struct ph_batches *batches =
        fixture_open(encoder, fixture_file("other.csv", "\" d \",b c,label ,a\n1,1,1,1\n"), &options);
    assert_int_equal(fixture_next(batches)->num_samples, 1);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
    fixture_init(&fixture, fixture_file("blank.csv", "label, ,a\n1,1,1\n"));
    fixture_label_and_ids(&fixture);
    assert_refused(&fixture, PH_ERROR_DATA, "blank.csv:1: column 2 has no name");
}

static void without_a_file_patterns_and_vocabularies_are_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, NULL);
    fixture_label_and_ids(&fixture);
    assert_refused(&fixture, PH_ERROR_CONFIG, "'*': a pattern needs a data.train");
    fixture.fields[1].name = "a";
    assert_refused(&fixture, PH_ERROR_CONFIG, "data.train is missing");
    fixture.settings.paths.train = "/nowhere/train.csv";
    assert_refused(&fixture, PH_ERROR_DATA, "/nowhere/train.csv");
}

/* Several features of one column, beside it or in its place; a name of its own needs no column of the file.
 */
static void features_are_made_from_a_column_under_other_names(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, fixture_file("from.csv", "click,when,price\n1,14102105,2.5\n0,14102506,\n"));
    fixture_field(&fixture, "click", PH_FIELD_LABEL);
    struct ph__field_settings *hour = fixture_field(&fixture, "hour", PH_FIELD_ID);
    hour->from = "when";
    hour->part = PH_TIME_HOUR;
    struct ph__field_settings *weekend = fixture_field(&fixture, "weekend", PH_FIELD_ID);
    weekend->from = "when";
    weekend->part = PH_TIME_WEEKEND;
    fixture_field(&fixture, "price", PH_FIELD_DENSE)->has_indicator = true;
    struct ph__field_settings *bucket = fixture_field(&fixture, "bucket", PH_FIELD_ID);
    bucket->from = "price";
    bucket->encoding = PH_ENCODING_BUCKET;
    bucket->boundaries = " 1 , 2.5,10 ";
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_int_equal(ph_encoder_num_sparse(encoder), 3); /* "when" itself has no entry and is none */
    assert_string_equal(ph_encoder_sparse(encoder, 0)->name, "hour");
    assert_string_equal(ph_encoder_sparse(encoder, 1)->name, "weekend");
    assert_string_equal(ph_encoder_sparse(encoder, 2)->name, "bucket");
    assert_int_equal(
        ph_encoder_sparse(encoder, 2)->num_rows, 5); /* blank, and four between three boundaries */
    assert_int_equal(ph_encoder_num_dense(encoder), 2);
    assert_string_equal(ph_encoder_dense_name(encoder, 1), "price.missing");
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 2};
    struct ph_batches *batches = fixture_open(encoder, fixture.settings.paths.train, &options);
    const struct ph_batch *batch = fixture_next(batches);
    static const int64_t ids[] = {1, 2, 1, 2, 3, 0}; /* hours 5 and 6, Tuesday and Saturday, 2.5 and blank */
    assert_memory_equal(batch->ids, ids, sizeof ids);
    static const double dense[] = {2.5, 0, 0, 1};
    for (size_t i = 0; i < 4; i++)
        assert_true((double)batch->dense[i] == dense[i]);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

static void a_feature_from_no_column_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_encoder *encoder = NULL;
    fixture_init(&fixture, fixture_file("from_none.csv", "label,a\n1,2\n"));
    fixture_label_and_ids(&fixture);
    fixture_field(&fixture, "hour", PH_FIELD_ID)->from = "when";
    assert_fails(ph_encoder_create(&fixture.settings, &encoder), PH_ERROR_CONFIG, "no column 'when'");
}

static void an_avazu_file_without_its_header_says_so(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "10000,0,14102100,1005,0,1fbe01fe\n1,1,14102100,1002,0,a\n", /* '0' twice, as in Avazu's own rows */
        "10000,0,14102100,1005,1,1fbe01fe\n"};
    struct fixture fixture;
    for (size_t i = 0; i < 2; i++) {
        fixture_init(&fixture, fixture_file("headless.csv", rows[i]));
        fixture.settings.format = PH_DATA_AVAZU;
        assert_refused(&fixture, PH_ERROR_DATA,
            "headless.csv:1: the line is not Avazu's header, which names 'click' and 'hour'");
        fixture.settings.has_header = false;
        assert_refused(&fixture, PH_ERROR_CONFIG,
            "data.has_header: must be true for format avazu, which finds its columns");
    }
    fixture_init(&fixture, fixture_file("avazu.csv", "id,click,hour,C1\n1,0,14102100,1005\n"));
    fixture.settings.format = PH_DATA_AVAZU;
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    struct ph_batches *batches;
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 2};
    assert_fails(ph_batches_open(encoder, fixture_file("headless.csv", rows[0]), &options, &batches),
        PH_ERROR_DATA, "headless.csv:1: the line is not Avazu's header");
    ph_encoder_destroy(encoder);
}

static void avazu_brings_its_own_schema(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, fixture_file("avazu.csv", "id,click,hour,C1,site_id\n1,0,14102100,1005,a\n"));
    fixture.settings.format = PH_DATA_AVAZU;
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    static const char *const names[] = {"hour", "weekday", "weekend", "C1", "site_id"};
    assert_int_equal(ph_encoder_num_sparse(encoder), 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(ph_encoder_sparse(encoder, i)->name, names[i]);
    ph_encoder_destroy(encoder);
}

static void impossible_mixtures_are_refused(void **state)
{
    (void)state;
    static const struct {
        struct ph__field_settings field;
        const char *problem;
    } cases[] = {
        {{.is_list = true, .encoding = PH_ENCODING_BUCKET, .num_buckets = 3}, "a list cannot have buckets"},
        {{.is_list = true, .part = PH_TIME_HOUR}, "a list cannot have buckets"},
        {{.is_weighted = true}, "only a list can be weighted"},
        {{.encoding = PH_ENCODING_BUCKET}, "needs either boundaries or buckets"},
        {{.encoding = PH_ENCODING_BUCKET, .boundaries = "1", .num_buckets = 2},
            "either boundaries or buckets"},
        {{.encoding = PH_ENCODING_BUCKET, .boundaries = "2, 1"}, "increasing numbers"},
        {{.encoding = PH_ENCODING_BUCKET, .boundaries = "1, x"}, "increasing numbers"},
        {{.encoding = PH_ENCODING_BUCKET, .boundaries = "1 2 3"}, "increasing numbers with commas"},
        {{.encoding = PH_ENCODING_BUCKET, .boundaries = "1 x, 2"}, "increasing numbers with commas"},
        {{.encoding = PH_ENCODING_BUCKET, .boundaries = "1, 2,"}, "increasing numbers with commas"},
        {{.encoding = PH_ENCODING_BUCKET, .boundaries = " "}, "increasing numbers with commas"},
        {{.encoding = PH_ENCODING_LOG_BUCKET, .part = PH_TIME_HOUR},
            "the part of a time cannot be in buckets"},
        {{.encoding = PH_ENCODING_LOG_BUCKET, .is_group = true}, "a field in buckets cannot be a group"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture fixture;
        struct ph_encoder *encoder = NULL;
        fixture_init(&fixture, fixture_file("mixture.csv", "label,a\n1,2\n"));
        fixture_field(&fixture, "label", PH_FIELD_LABEL);
        struct ph__field_settings *field = fixture_field(&fixture, "a", PH_FIELD_ID);
        *field = cases[i].field;
        field->name = "a";
        field->kind = PH_FIELD_ID;
        field->hash_seed = -1;
        if (cases[i].field.encoding == 0)
            field->encoding = PH_ENCODING_INHERIT;
        assert_fails(ph_encoder_create(&fixture.settings, &encoder), PH_ERROR_CONFIG, cases[i].problem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_star_is_every_column_without_an_entry_of_its_own),
        cmocka_unit_test(id_fields_inherit_what_they_do_not_say),
        cmocka_unit_test(a_schema_without_vocabulary_or_pattern_needs_no_file),
        cmocka_unit_test(criteo_brings_its_own_schema),
        cmocka_unit_test(a_schema_that_cannot_be_is_refused),
        cmocka_unit_test(a_header_that_does_not_fit_is_named_by_its_line),
        cmocka_unit_test(separators_are_one_plain_character),
        cmocka_unit_test(a_header_that_names_nothing_or_twice_is_refused),
        cmocka_unit_test(without_a_file_patterns_and_vocabularies_are_refused),
        cmocka_unit_test(features_are_made_from_a_column_under_other_names),
        cmocka_unit_test(a_feature_from_no_column_is_refused),
        cmocka_unit_test(avazu_brings_its_own_schema),
        cmocka_unit_test(an_avazu_file_without_its_header_says_so),
        cmocka_unit_test(blanks_around_names_are_not_part_of_them),
        cmocka_unit_test(impossible_mixtures_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
