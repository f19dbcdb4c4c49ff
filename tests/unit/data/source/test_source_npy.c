/* Arrays as users meet them: through an encoder and batches. */
#include <math.h>
#include <unistd.h>

#include "data/encode/encoder.h"
#include "unit/data/array_fixture.h"
#include "unit/data/pass_fixture.h"

#define NUM_ROWS 700

/* One data set twice: as CSV and as an archive. */
struct twins {
    const char *csv, *npz;
};

static struct twins write_twins(bool is_deflated)
{
    static float click[NUM_ROWS], price[NUM_ROWS][2];
    static int64_t user[NUM_ROWS];
    static uint16_t tags[NUM_ROWS][3];
    char *text = malloc(NUM_ROWS * 100);
    size_t size = (size_t)sprintf(text, "click,price_1,price_2,user,tags\n");
    uint32_t random = (uint32_t)test_seed();
    for (int i = 0; i < NUM_ROWS; i++) {
        random = random * 1664525u + 1013904223u;
        click[i] = (float)(random >> 31);
        price[i][0] = (float)(random >> 20 & 0xff) / 4;
        price[i][1] = -(float)(random >> 10 & 0xff) / 8;
        user[i] = (int64_t)(random >> 8 & 0x3f) - 30;
        for (int k = 0; k < 3; k++)
            tags[i][k] = (uint16_t)(random >> (9 * k) & 0x1ff);
        size += (size_t)sprintf(text + size, "%g,%.9g,%.9g,%lld,%u|%u|%u\n", (double)click[i],
            (double)price[i][0], (double)price[i][1], (long long)user[i], tags[i][0], tags[i][1], tags[i][2]);
    }
    static struct archive archive;
    memset(&archive, 0, sizeof archive);
    const struct {
        const char *name, *type, *shape;
        const void *rows;
        size_t size;
    } arrays[] = {
        {"click.npy", "<f4", "(700,)", click, sizeof click},
        {"price.npy", "<f4", "(700, 2)", price, sizeof price},
        {"user.npy", "<i8", "(700, 1)", user, sizeof user},
        {"tags.npy", "<u2", "(700, 3)", tags, sizeof tags},
    };
    for (size_t i = 0; i < 4; i++) {
        static struct bytes bytes;
        bytes.size = 0;
        bytes_add_npy(&bytes, arrays[i].type, arrays[i].shape, arrays[i].rows, arrays[i].size);
        archive_add(&archive, arrays[i].name, &bytes, is_deflated);
    }
    struct twins twins = {fixture_file("twin.csv", text), archive_file(&archive, "twin.npz")};
    free(text);
    return twins;
}

static struct ph_encoder *twin_encoder(const char *train, enum ph__data_format format, bool is_list)
{
    struct fixture fixture;
    fixture_init(&fixture, train);
    fixture.settings.format = format;
    fixture.settings.min_count = 2;
    fixture_field(&fixture, "click", PH_FIELD_LABEL);
    fixture_field(&fixture, "price*", PH_FIELD_DENSE)->transform = PH_TRANSFORM_STANDARDISE;
    fixture_field(&fixture, "user", PH_FIELD_ID)->is_group = true;
    fixture_field(&fixture, "tags", PH_FIELD_ID)->is_list = is_list;
    return fixture_encoder(&fixture);
}

/* The arrays' list needs no list: true; what is learnt from them is what is learnt from text. */
static void arrays_and_text_give_the_same_batches(void **state)
{
    (void)state;
    for (int is_deflated = 0; is_deflated <= 1; is_deflated++) {
        struct twins twins = write_twins(is_deflated != 0);
        struct ph_encoder *csv = twin_encoder(twins.csv, PH_DATA_CSV, true);
        struct ph_encoder *npz = twin_encoder(twins.npz, PH_DATA_NPY, false);
        for (int is_shuffled = 0; is_shuffled <= 1; is_shuffled++) {
            struct ph_batches_options options = {.size = sizeof options,
                .batch_size = 64,
                .reading.is_shuffled = is_shuffled != 0,
                .seed = 5,
                .reading.shuffle_bytes = 4096};
            assert_int_equal(assert_same_pass(fixture_open(npz, twins.npz, &options),
                                 fixture_open(csv, twins.csv, &options)),
                NUM_ROWS);
        }
        ph_encoder_destroy(csv);
        ph_encoder_destroy(npz);
    }
}

static void a_pass_goes_on_where_it_was_left(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        struct twins twins = write_twins((variant & 1) != 0);
        struct ph_encoder *encoder = twin_encoder(twins.npz, PH_DATA_NPY, true);
        struct ph_position position;
        struct ph_batches_options options = {.size = sizeof options,
            .batch_size = 50,
            .reading.is_shuffled = (variant & 2) != 0,
            .reading.shuffle_bytes = 4096};
        struct ph_batches *whole = fixture_open(encoder, twins.npz, &options);
        for (int i = 0; i < 7; i++)
            fixture_next(whole);
        ph_batches_position(whole, &position);
        options.start = &position;
        assert_int_equal(assert_same_pass(fixture_open(encoder, twins.npz, &options), whole), NUM_ROWS - 350);
        ph_encoder_destroy(encoder);
    }
}

/* ---- MLPerf's layout ---- */

/* Two days of two rows: 13 counts, and three features of 1, 2 and 3 ids. */
static void write_day(int day, bool is_multi_hot)
{
    char name[64];
    int32_t labels[2] = {day, 1};
    float dense[2][13];
    int32_t ids[3][2][3];
    for (int i = 0; i < 26; i++)
        dense[i / 13][i % 13] = (float)(100 * day + i);
    for (int i = 0; i < 18; i++)
        ids[i / 6][i / 3 % 2][i % 3] = 20 * day + i;
    snprintf(name, sizeof name, "day_%d_labels.npy", day);
    npy_file(name, "<i4", day == 0 ? "(2,)" : "(2, 1)", labels, sizeof labels);
    snprintf(name, sizeof name, "day_%d_dense.npy", day);
    npy_file(name, "<f4", "(2, 13)", dense, sizeof dense);
    if (!is_multi_hot) {
        snprintf(name, sizeof name, "day_%d_sparse.npy", day);
        npy_file(name, "<i4", "(2, 9)", ids, sizeof ids);
        return;
    }
    struct archive archive = {.num_members = 0};
    static const char *const shapes[] = {"(2, 1)", "(2, 2)", "(2, 3)"};
    for (int k = 0; k < 3; k++) {
        struct bytes bytes = {.size = 0};
        snprintf(name, sizeof name, "%d.npy", k);
        bytes_add_npy(&bytes, "<i4", shapes[k], ids[k], (size_t)(k + 1) * 2 * sizeof(int32_t));
        archive_add(&archive, name, &bytes, false);
    }
    snprintf(name, sizeof name, "day_%d_sparse_multi_hot.npz", day);
    archive_file(&archive, name);
}

static const char *path_of(const char *name)
{
    static char paths[8][4096];
    static size_t next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", test_folder(), name);
    return path;
}

static struct ph_encoder *mlperf_encoder(const char *train)
{
    struct fixture fixture;
    fixture_init(&fixture, train);
    fixture.settings.format = PH_DATA_NPY;
    fixture.settings.encoding = PH_ENCODING_RAW;
    fixture.settings.rows = 1000;
    fixture_field(&fixture, "I*", PH_FIELD_DENSE);
    return fixture_encoder(&fixture);
}

static void a_pattern_of_labels_is_many_days(void **state)
{
    (void)state;
    write_day(0, true);
    write_day(1, true);
    struct ph_encoder *encoder = mlperf_encoder(path_of("day_*_labels.npy"));
    assert_int_equal(ph_encoder_num_dense(encoder), 13);
    assert_int_equal(ph_encoder_num_sparse(encoder), 3);
    assert_string_equal(ph_encoder_sparse(encoder, 2)->name, "C3");
    assert_false(encoder->sparse_columns[0]->is_list);
    assert_true(encoder->sparse_columns[2]->is_list);
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 4};
    struct ph_batches *batches = fixture_open(encoder, path_of("day_*_labels.npy"), &options);
    const struct ph_batch *batch = fixture_next(batches);
    assert_int_equal(batch->num_samples, 4);
    static const double labels[] = {0, 1, 1, 1};
    static const int32_t lengths[] = {1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
    static const int64_t ids[] = {
        0, 1, 20, 21, 6, 7, 8, 9, 26, 27, 28, 29, 12, 13, 14, 15, 16, 17, 32, 33, 34, 35, 36, 37};
    for (size_t b = 0; b < 4; b++) {
        assert_true((double)batch->labels[b] == labels[b]);
        for (size_t i = 0; i < 13; i++)
            assert_true(
                (double)batch->dense[13 * b + i] == 100.0 * (double)(b / 2) + (double)(13 * (b % 2) + i));
    }
    assert_memory_equal(batch->lengths, lengths, sizeof lengths);
    assert_int_equal(batch->num_ids, 24);
    assert_memory_equal(batch->ids, ids, sizeof ids);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

static void one_id_a_column_comes_from_one_array(void **state)
{
    (void)state;
    write_day(2, false);
    struct ph_encoder *encoder = mlperf_encoder(path_of("day_2")); /* without _labels.npy */
    assert_int_equal(ph_encoder_num_sparse(encoder), 9);
    assert_false(encoder->sparse_columns[8]->is_list);
    ph_encoder_destroy(encoder);
}

static void prediction_needs_no_labels(void **state)
{
    (void)state;
    write_day(3, true);
    struct ph_encoder *encoder = mlperf_encoder(path_of("day_3"));
    assert_int_equal(unlink(path_of("day_3_labels.npy")), 0);
    struct ph_batches *batches = NULL;
    struct ph_batches_options options = {.size = sizeof options, .batch_size = 4};
    assert_fails(
        ph_batches_open(encoder, path_of("day_3"), &options, &batches), PH_ERROR_DATA, "day_3_labels.npy: ");
    options.needs_no_labels = true;
    batches = fixture_open(encoder, path_of("day_3"), &options);
    assert_int_equal(fixture_next(batches)->num_samples, 2);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

static void arrays_that_disagree_are_both_named(void **state)
{
    (void)state;
    struct ph_encoder *encoder = NULL;
    struct fixture fixture;
    write_day(4, true);
    npy_file("day_4_dense.npy", "<f4", "(1, 2)", "\0\0\0\0\0\0\0\0", 8);
    fixture_init(&fixture, path_of("day_4"));
    fixture.settings.format = PH_DATA_NPY;
    assert_fails(
        ph_encoder_create(&fixture.settings, &encoder), PH_ERROR_DATA, "day_4_dense.npy: has 1 rows");
    assert_fails(ph_encoder_create(&fixture.settings, &encoder), PH_ERROR_DATA, "day_4_labels.npy has 2");
}

static void what_is_wrong_with_files_is_said(void **state)
{
    (void)state;
    struct ph_encoder *encoder = NULL;
    struct fixture fixture;
    write_day(5, true);
    fixture_init(&fixture, path_of("day_5"));
    fixture.settings.format = PH_DATA_NPY;
    npy_file("day_5_dense.npy", "<f4", "(2, 13)", "\0\0\0\0", 4);
    assert_fails(ph_encoder_create(&fixture.settings, &encoder), PH_ERROR_DATA, "the file is cut off");
    npy_file("day_5_dense.npy", "<f4", "(2, 1)", "\0\0\0\0\0\0\0\0\0", 9);
    assert_fails(ph_encoder_create(&fixture.settings, &encoder), PH_ERROR_DATA, "bytes follow the array");
    npy_file("day_5_dense.npy", "<f4", "(2, 1)", "\0\0\0\0\0\0\0\0", 8);
    assert_int_equal(unlink(path_of("day_5_sparse_multi_hot.npz")), 0);
    assert_fails(ph_encoder_create(&fixture.settings, &encoder), PH_ERROR_DATA, "day_5_sparse.npy");
    fixture.settings.paths.train = path_of("day_5_dense.npy");
    assert_fails(ph_encoder_create(&fixture.settings, &encoder), PH_ERROR_DATA, "not a set of arrays");
    fixture.settings.paths.train = path_of("nowhere");
    assert_fails(ph_encoder_create(&fixture.settings, &encoder), PH_ERROR_DATA, "nowhere_labels.npy: ");
    fixture.settings.paths.train = "-";
    assert_fails(ph_encoder_create(&fixture.settings, &encoder), PH_ERROR_DATA, "must come from files");
}

/* Rows are counted from 1. */
static void a_bad_row_is_named_by_its_number(void **state)
{
    (void)state;
    write_day(6, true);
    struct ph_encoder *encoder = mlperf_encoder(path_of("day_6_labels.npy"));
    const int32_t labels[2] = {1, 7};
    npy_file("day_6_labels.npy", "<i4", "(2,)", labels, sizeof labels);
    const struct ph_batch *batch;
    struct ph_batches_options options = {.size = sizeof options, .batch_size = 4};
    struct ph_batches *batches = fixture_open(encoder, path_of("day_6_labels.npy"), &options);
    assert_fails(ph_batches_next(batches, &batch), PH_ERROR_DATA,
        "day_6_labels.npy: row 2: field 'label': 7 is not a label in [0, 1]");
    ph_batches_close(batches);
    options.reading.max_bad_rows = 1;
    batches = fixture_open(encoder, path_of("day_6_labels.npy"), &options);
    assert_int_equal(fixture_next(batches)->num_samples, 1);
    assert_int_equal(ph_batches_num_bad_rows(batches), 1);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

static void nan_is_a_blank(void **state)
{
    (void)state;
    const float labels[2] = {NAN, 1}, dense[4] = {NAN, 3, 1, NAN};
    write_day(7, true);
    npy_file("day_7_labels.npy", "<f4", "(2,)", labels, sizeof labels);
    npy_file("day_7_dense.npy", "<f4", "(2, 2)", dense, sizeof dense);
    struct ph_encoder *encoder = mlperf_encoder(path_of("day_7"));
    struct ph_batches *batches = fixture_open(encoder, path_of("day_7"),
        &(struct ph_batches_options){.size = sizeof(struct ph_batches_options), .batch_size = 4});
    const struct ph_batch *batch = fixture_next(batches);
    assert_non_null(batch->label_mask);
    assert_true(batch->label_mask[0] == 0 && batch->label_mask[1] == 1 && batch->labels[1] == 1);
    assert_true(batch->dense[0] == 0 && batch->dense[1] > 0);
    assert_true(batch->dense[2] > 0 && batch->dense[3] == 0);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

static void ids_beyond_63_bits_are_their_digits(void **state)
{
    (void)state;
    struct archive archive = {.num_members = 0};
    struct bytes label = {.size = 0}, id = {.size = 0};
    const uint64_t ids[3] = {UINT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
    bytes_add_npy(&label, "|u1", "(3,)", "\0\1\1", 3);
    bytes_add_npy(&id, "<u8", "(3,)", ids, sizeof ids);
    archive_add(&archive, "label.npy", &label, false);
    archive_add(&archive, "C1.npy", &id, false);
    struct fixture fixture;
    fixture_init(&fixture, archive_file(&archive, "large.npz"));
    fixture.settings.format = PH_DATA_NPY;
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    const struct ph__vocabulary *vocabulary = &encoder->sparse_columns[0]->vocabulary;
    size_t length;
    assert_int_equal(vocabulary->num_words, 2);
    assert_memory_equal(ph__vocabulary_word(vocabulary, 0, &length), "18446744073709551615", 20);
    assert_memory_equal(ph__vocabulary_word(vocabulary, 1, &length), "9223372036854775808", 19);
    ph_encoder_destroy(encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_and_text_give_the_same_batches),
        cmocka_unit_test(a_pass_goes_on_where_it_was_left),
        cmocka_unit_test(a_pattern_of_labels_is_many_days),
        cmocka_unit_test(one_id_a_column_comes_from_one_array),
        cmocka_unit_test(prediction_needs_no_labels),
        cmocka_unit_test(arrays_that_disagree_are_both_named),
        cmocka_unit_test(what_is_wrong_with_files_is_said),
        cmocka_unit_test(a_bad_row_is_named_by_its_number),
        cmocka_unit_test(nan_is_a_blank),
        cmocka_unit_test(ids_beyond_63_bits_are_their_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
