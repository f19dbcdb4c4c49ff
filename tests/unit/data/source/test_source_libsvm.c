#include <stdio.h>

#include "data/encode/encoder.h"
#include "unit/data/pass_fixture.h"

static struct ph_encoder *make_encoder(const char *train, enum ph__data_format format)
{
    struct fixture fixture;
    fixture_init(&fixture, train);
    fixture.settings.format = format;
    return fixture_encoder(&fixture);
}

static void assert_reals(const ph_real *actual, const double *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_true((double)actual[i] == wanted[i]);
}

/* All pairs are one weighted list; -1 is 0; blanks, comments and empty lines say nothing. */
static void a_libsvm_row_is_one_weighted_list(void **state)
{
    (void)state;
    const char *path = fixture_file("a.libsvm", "-1 7:0.5 3:1\n"
                                                "# a comment\n"
                                                "+1\t3:2 # 4:1\n"
                                                "\n"
                                                "0\n"
                                                "1 9:-1.5e1  7:1 \n");
    struct ph_encoder *encoder = make_encoder(path, PH_DATA_LIBSVM);
    assert_int_equal(ph_encoder_num_sparse(encoder), 1);
    assert_string_equal(ph_encoder_sparse(encoder, 0)->name, "features");
    assert_int_equal(ph_encoder_sparse(encoder, 0)->num_rows, 4); /* 7, 3 and 9, and row 0 */
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 10};
    struct ph_batches *batches = fixture_open(encoder, path, &options);
    const struct ph_batch *batch = fixture_next(batches);
    static const int32_t lengths[] = {2, 1, 0, 2};
    static const int64_t ids[] = {1, 2, 2, 3, 1};
    assert_int_equal(batch->num_samples, 4);
    assert_memory_equal(batch->lengths, lengths, sizeof lengths);
    assert_memory_equal(batch->ids, ids, sizeof ids);
    assert_reals(batch->id_weights, (const double[]){0.5, 1, 2, -15, 1}, 5);
    assert_reals(batch->labels, (const double[]){0, 1, 0, 1}, 4);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

/* Fields are columns by their number, counted in the file; a field may come in pieces. */
static void libffm_fields_are_lists_of_their_own(void **state)
{
    (void)state;
    const char *path = fixture_file("a.libffm", "1 2:20:1 0:10:0.5 2:21:2\n"
                                                "0 1:5:1\n");
    struct ph_encoder *encoder = make_encoder(path, PH_DATA_LIBFFM);
    assert_int_equal(ph_encoder_num_sparse(encoder), 3);
    assert_string_equal(ph_encoder_sparse(encoder, 2)->name, "2");
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 10};
    struct ph_batches *batches = fixture_open(encoder, path, &options);
    const struct ph_batch *batch = fixture_next(batches);
    static const int32_t lengths[] = {1, 0, 0, 1, 2, 0};
    static const int64_t ids[] = {1, 1, 1, 2};
    assert_memory_equal(batch->lengths, lengths, sizeof lengths);
    assert_memory_equal(batch->ids, ids, sizeof ids);
    assert_reals(batch->id_weights, (const double[]){0.5, 1, 1, 2}, 4);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

static void a_missing_label_is_fine_for_prediction_only(void **state)
{
    (void)state;
    struct ph_encoder *encoder = make_encoder(fixture_file("labelled.libsvm", "1 7:1\n"), PH_DATA_LIBSVM);
    const char *path = fixture_file("unlabelled.libsvm", "7:1\n");
    struct ph_batches_options options = {.size = sizeof options, .batch_size = 10};
    const struct ph_batch *batch;
    struct ph_batches *batches = fixture_open(encoder, path, &options);
    assert_fails(ph_batches_next(batches, &batch), PH_ERROR_DATA,
        "unlabelled.libsvm:1: the row does not begin with a label");
    ph_batches_close(batches);
    options.needs_no_labels = true;
    batches = fixture_open(encoder, path, &options);
    assert_int_equal(fixture_next(batches)->ids[0], 1);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

static void malformed_rows_are_named(void **state)
{
    (void)state;
    static const struct {
        enum ph__data_format format;
        const char *line, *problem;
    } cases[] = {
        {PH_DATA_LIBSVM, "yes 1:1", "'yes' is not a label"},
        {PH_DATA_LIBSVM, "2 1:1", "2 is not a label in [0, 1]"},
        {PH_DATA_LIBSVM, "1 7", "'7' is not id:value"},
        {PH_DATA_LIBSVM, "1 :7", "':7' is not id:value"},
        {PH_DATA_LIBSVM, "1 7:x", "'7:x' is not id:value"},
        {PH_DATA_LIBSVM, "1 7:1e39", "'7:1e39' is not id:value"},
        {PH_DATA_LIBSVM, "1 7:nan", "'7:nan' is not id:value"},
        {PH_DATA_LIBFFM, "1 0:7", "'7' is not id:value"},
        {PH_DATA_LIBFFM, "1 a:7:1", "'a:7:1' is not field:id:value"},
        {PH_DATA_LIBFFM, "1 9:7:1", "field 9 does not exist: the encoder has 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[128], place[256];
        const char *good = cases[i].format == PH_DATA_LIBSVM ? "1 7:1\n" : "1 0:7:1\n";
        struct ph_encoder *encoder = make_encoder(fixture_file("good.txt", good), cases[i].format);
        snprintf(text, sizeof text, "%s%s\n", good, cases[i].line);
        snprintf(place, sizeof place, "bad.txt:2: %s%s", i == 1 ? "field 'label': " : "", cases[i].problem);
        const struct ph_batches_options options = {.size = sizeof options, .batch_size = 10};
        const struct ph_batch *batch;
        struct ph_batches *batches = fixture_open(encoder, fixture_file("bad.txt", text), &options);
        assert_fails(ph_batches_next(batches, &batch), PH_ERROR_DATA, place);
        ph_batches_close(batches);
        ph_encoder_destroy(encoder);
    }
}

/* A field is one list of weighted ids under its own name, and the label is the label. */
static void fields_taken_for_something_else_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *from;
        enum ph__field_kind kind;
        const char *problem;
    } cases[] = {
        {"0", NULL, PH_FIELD_DENSE, "'0': must be a list of ids in libsvm and libffm files"},
        {"0", NULL, PH_FIELD_LABEL, "'0': must be a list of ids in libsvm and libffm files"},
        {"label", NULL, PH_FIELD_ID, "'label': must be the label in libsvm and libffm files"},
        {"more", "0", PH_FIELD_ID, "'more': a field of libsvm and libffm files is one feature"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture fixture;
        struct ph_encoder *encoder = NULL;
        fixture_init(&fixture, fixture_file("fields.ffm", "1 0:7:1 1:8:1\n"));
        fixture.settings.format = PH_DATA_LIBFFM;
        fixture_field(&fixture, cases[i].name, cases[i].kind)->from = cases[i].from;
        assert_fails(ph_encoder_create(&fixture.settings, &encoder), PH_ERROR_CONFIG, cases[i].problem);
    }
}

/* An encoder that was loaded is checked, too. */
static void an_encoder_for_other_rows_is_refused(void **state)
{
    (void)state;
    const char *path = fixture_file("good.ffm", "1 0:7:1 1:8:1\n");
    struct ph_encoder *encoder = make_encoder(path, PH_DATA_LIBFFM);
    struct ph_batches *batches = NULL;
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 10};
    encoder->columns[1].is_list = false;
    assert_fails(ph_batches_open(encoder, path, &options, &batches), PH_ERROR_DATA,
        "field '0': rows of libsvm and libffm have a list of weighted ids here");
    ph_encoder_destroy(encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_libsvm_row_is_one_weighted_list),
        cmocka_unit_test(libffm_fields_are_lists_of_their_own),
        cmocka_unit_test(a_missing_label_is_fine_for_prediction_only),
        cmocka_unit_test(malformed_rows_are_named),
        cmocka_unit_test(fields_taken_for_something_else_are_refused),
        cmocka_unit_test(an_encoder_for_other_rows_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
