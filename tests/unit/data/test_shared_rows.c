/* Fields that share the rows of another: one id is one row, whichever of them it stands in. */
#include <stdlib.h>

#include "base/file/file.h"
#include "unit/data/data_fixture.h"

static const char rows[] = "label,history,item,user\n"
                           "1,a|b,c,a\n"
                           "0,c,a,b\n"
                           "1,,b,b\n"
                           "0,z|a,z,c\n";

/* history shares with item; user is apart. */
static void init_fixture(struct fixture *fixture, const char *path)
{
    fixture_init(fixture, path);
    fixture_field(fixture, "label", PH_FIELD_LABEL);
    struct ph__field_settings *history = fixture_field(fixture, "history", PH_FIELD_ID);
    history->is_list = true;
    history->shares = "item";
    fixture_field(fixture, "item", PH_FIELD_ID);
    fixture_field(fixture, "user", PH_FIELD_ID);
}

static void assert_ids(
    const struct ph_encoder *encoder, const char *path, size_t num_ids, const int64_t *wanted)
{
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 10};
    struct ph_batches *batches = fixture_open(encoder, path, &options);
    const struct ph_batch *batch = fixture_next(batches);
    assert_int_equal(batch->num_ids, num_ids);
    assert_memory_equal(batch->ids, wanted, num_ids * sizeof *wanted);
    ph_batches_close(batches);
}

static void an_id_has_one_row_in_both_fields(void **state)
{
    (void)state;
    struct fixture fixture;
    init_fixture(&fixture, fixture_file("shared.csv", rows));
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    static const int64_t ids[] = {1, 2, 3, 4, 1, 3, 1, 2, 4, 1, 2, 2, 3};
    assert_ids(encoder, fixture.settings.paths.train, 13, ids);
    static const size_t owners[] = {1, 1, 2}, num_rows[] = {5, 5, 4};
    for (size_t f = 0; f < 3; f++) {
        assert_int_equal(ph_encoder_sparse(encoder, f)->owner, owners[f]);
        assert_int_equal(ph_encoder_sparse(encoder, f)->num_rows, num_rows[f]);
    }
    /* z is an item that no row of this file has, y none at all */
    const int64_t others[] = {4, 0, 1, 0};
    assert_ids(encoder, fixture_file("others.csv", "label,history,item,user\n1,z|y,a,z\n"), 4, others);
    ph_encoder_destroy(encoder);
}

/* z is there once as an item and once in a history; c thrice, but as a user only once. */
static void a_vocabulary_counts_the_ids_of_both(void **state)
{
    (void)state;
    struct fixture fixture;
    init_fixture(&fixture, fixture_file("counts.csv", rows));
    fixture.settings.min_count = 2;
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_int_equal(ph_encoder_sparse(encoder, 1)->num_rows, 5);
    assert_int_equal(ph_encoder_sparse(encoder, 2)->num_rows, 2);
    ph_encoder_destroy(encoder);
    fixture.settings.min_count = 3;
    encoder = fixture_encoder(&fixture);
    assert_int_equal(ph_encoder_sparse(encoder, 0)->num_rows, 2); /* a */
    ph_encoder_destroy(encoder);
}

/* As fields that were given the same rows and the same seed. */
static void hashed_and_raw_ids_have_the_owners_rows(void **state)
{
    (void)state;
    const char *path = fixture_file("numbers.csv", "label,item,history\n1,7,3|7\n0,1000,1000|7|12\n");
    static const enum ph__field_encoding encodings[] = {PH_ENCODING_RAW, PH_ENCODING_HASH};
    for (size_t e = 0; e < sizeof encodings / sizeof *encodings; e++) {
        const enum ph__field_encoding encoding = encodings[e];
        struct ph_encoder *encoders[2];
        for (int shares = 0; shares < 2; shares++) {
            struct fixture fixture;
            fixture_init(&fixture, path);
            fixture_field(&fixture, "label", PH_FIELD_LABEL);
            struct ph__field_settings *fields[] = {fixture_field(&fixture, "item", PH_FIELD_ID),
                fixture_field(&fixture, "history", PH_FIELD_ID)};
            fields[1]->is_list = true;
            for (int i = 0; i < 2 - shares; i++) {
                fields[i]->encoding = encoding;
                fields[i]->rows = 5000;
                fields[i]->hash_seed = encoding == PH_ENCODING_HASH ? 3 : -1;
            }
            fields[1]->shares = shares ? "item" : "";
            encoders[shares] = fixture_encoder(&fixture);
        }
        const struct ph_batches_options options = {.size = sizeof options, .batch_size = 10};
        struct ph_batches *apart = fixture_open(encoders[0], path, &options),
                          *shared = fixture_open(encoders[1], path, &options);
        const struct ph_batch *a = fixture_next(apart), *b = fixture_next(shared);
        assert_int_equal(a->num_ids, 7);
        assert_int_equal(b->num_ids, 7);
        assert_memory_equal(a->ids, b->ids, 7 * sizeof *a->ids);
        assert_int_equal(ph_encoder_sparse(encoders[1], 1)->num_rows, 5000);
        assert_int_equal(ph_encoder_sparse(encoders[1], 1)->owner, 0);
        ph_batches_close(apart);
        ph_batches_close(shared);
        ph_encoder_destroy(encoders[0]);
        ph_encoder_destroy(encoders[1]);
    }
}

static char *saved_text(const struct ph_encoder *encoder, const char *path)
{
    static struct ph__arena arena;
    char *text = NULL;
    size_t size;
    assert_ok(ph_encoder_save(encoder, path));
    assert_ok(ph__file_read(&arena, path, 1 << 20, &text, &size));
    return text;
}

/* What shares nothing is still written as before there was sharing. */
static void a_saved_encoder_shares_as_before(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_encoder *loaded = NULL;
    const char *path = fixture_file("shared.json", "");
    init_fixture(&fixture, fixture_file("saved.csv", rows));
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    char *text = saved_text(encoder, path);
    assert_non_null(strstr(text, "\"version\": 3"));
    assert_non_null(strstr(text, "\"shares\": \"item\""));
    assert_ok(ph_encoder_load(path, &loaded));
    static const int64_t ids[] = {1, 2, 3, 4, 1, 3, 1, 2, 4, 1, 2, 2, 3};
    assert_ids(loaded, fixture.settings.paths.train, 13, ids);
    assert_int_equal(ph_encoder_sparse(loaded, 0)->owner, 1);
    assert_string_equal(saved_text(loaded, path), text);
    ph_encoder_destroy(loaded);
    ph_encoder_destroy(encoder);

    fixture.fields[1].shares = "";
    encoder = fixture_encoder(&fixture);
    text = saved_text(encoder, path);
    assert_non_null(strstr(text, "\"version\": 2"));
    assert_null(strstr(text, "shares"));
    ph_encoder_destroy(encoder);
}

static void what_cannot_be_shared_is_refused(void **state)
{
    (void)state;
    static const struct {
        struct ph__field_settings history, item;
        const char *problem;
    } cases[] = {
        {{.shares = "items"}, {.kind = PH_FIELD_ID},
            "'history' shares the rows of 'items', which is not an id field"},
        {{.shares = "item"}, {.kind = PH_FIELD_DENSE}, "'item', which is not an id field"},
        {{.shares = "item"}, {.kind = PH_FIELD_IGNORE}, "'item', which is not an id field"},
        {{.shares = "item"}, {.shares = "user", .kind = PH_FIELD_ID},
            "'item', which shares those of another field"},
        {{.shares = "history"}, {.kind = PH_FIELD_ID}, "'history', which shares those of another field"},
        {{.shares = "item"}, {.kind = PH_FIELD_ID, .encoding = PH_ENCODING_LOG_BUCKET},
            "'item', whose encoding puts numbers in buckets"},
        {{.shares = "item", .min_count = 2}, {.kind = PH_FIELD_ID},
            "'history': min_count is only for fields without shares"},
        {{.shares = "item", .rows = 10}, {.kind = PH_FIELD_ID}, "'history': rows is only for fields"},
        {{.shares = "item", .encoding = PH_ENCODING_HASH}, {.kind = PH_FIELD_ID},
            "'history': encoding is only for fields"},
    };
    const char *path = fixture_file("refused.csv", "label,history,item,user\n1,2,3,4\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture fixture;
        struct ph_encoder *encoder = NULL;
        fixture_init(&fixture, path);
        fixture_field(&fixture, "label", PH_FIELD_LABEL);
        struct ph__field_settings *fields[] = {fixture_field(&fixture, "history", PH_FIELD_ID),
            fixture_field(&fixture, "item", cases[i].item.kind)};
        fixture_field(&fixture, "user", PH_FIELD_ID);
        fields[0]->shares = cases[i].history.shares;
        fields[0]->min_count = cases[i].history.min_count;
        fields[0]->rows = cases[i].history.rows;
        fields[1]->shares = cases[i].item.shares;
        if (cases[i].history.encoding != 0)
            fields[0]->encoding = cases[i].history.encoding;
        if (cases[i].item.encoding != 0)
            fields[1]->encoding = cases[i].item.encoding;
        assert_fails(ph_encoder_create(&fixture.settings, &encoder), PH_ERROR_CONFIG, cases[i].problem);
        assert_null(encoder);
    }
    struct fixture fixture;
    struct ph_encoder *encoder = NULL;
    init_fixture(&fixture, path);
    fixture.fields[1].kind = PH_FIELD_DENSE;
    fixture.fields[1].is_list = false;
    assert_fails(
        ph_encoder_create(&fixture.settings, &encoder), PH_ERROR_CONFIG, "'history': shares is only for ids");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_has_one_row_in_both_fields),
        cmocka_unit_test(a_vocabulary_counts_the_ids_of_both),
        cmocka_unit_test(hashed_and_raw_ids_have_the_owners_rows),
        cmocka_unit_test(a_saved_encoder_shares_as_before),
        cmocka_unit_test(what_cannot_be_shared_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
