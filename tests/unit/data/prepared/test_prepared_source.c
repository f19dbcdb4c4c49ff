#include <unistd.h>

#include "data/prepared/prepared_source.h"
#include "data/source/input_file.h"
#include "unit/data/prepare_fixture.h"

#define ROW_FEATURE 0 /* the sparse feature whose id is the row's number */

/* 3000 rows in parts of 8 KiB of text: a dozen blocks of some 250 rows, each about 20 KB as a window counts.
 */
static struct ph_encoder *prepare(const char *folder)
{
    struct fixture fixture;
    struct ph_prepare_summary summary;
    prepare_fixture_init(&fixture, prepare_file("train.csv", PREPARE_ROWS, 1));
    assert_ok(prepare_into(&fixture, folder, 2, &summary));
    return prepare_encoder(folder);
}

static const char *train_of(const char *folder)
{
    char name[256];
    snprintf(name, sizeof name, "%s/train", folder);
    return test_path(name);
}

/* The number of each row, in the order of the pass; returns how many. */
static size_t row_numbers(const struct ph_encoder *encoder, const char *path,
    const struct ph_batches_options *options, int64_t numbers[PREPARE_ROWS])
{
    struct ph_batches *batches = fixture_open(encoder, path, options);
    const struct ph_batch *batch;
    size_t count = 0;
    while ((batch = fixture_next(batches)) != NULL)
        for (size_t b = 0; b < batch->num_samples; b++) {
            assert_true(count < PREPARE_ROWS);
            numbers[count++] = batch->ids[ROW_FEATURE * batch->num_samples + b];
        }
    ph_batches_close(batches);
    return count;
}

static size_t num_in_place(const int64_t numbers[PREPARE_ROWS])
{
    size_t count = 0;
    for (size_t i = 0; i < PREPARE_ROWS; i++)
        count += numbers[i] == (int64_t)i;
    return count;
}

static void a_shuffled_pass_gives_every_row_once(void **state)
{
    (void)state;
    static int64_t numbers[PREPARE_ROWS], again[PREPARE_ROWS], later[PREPARE_ROWS];
    struct ph_encoder *encoder = prepare("once");
    static const size_t windows[] = {1, 50000, 65536, 100000, 1 << 30};
    for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
        struct ph_batches_options options = {.size = sizeof options,
            .batch_size = 64,
            .reading.is_shuffled = true,
            .reading.shuffle_bytes = windows[w],
            .seed = test_seed()};
        bool is_seen[PREPARE_ROWS] = {false};
        assert_int_equal(row_numbers(encoder, train_of("once"), &options, numbers), PREPARE_ROWS);
        for (size_t i = 0; i < PREPARE_ROWS; i++) {
            assert_false(is_seen[numbers[i]]);
            is_seen[numbers[i]] = true;
        }
        assert_true(num_in_place(numbers) < 50);
        options.batch_size = 1000; /* the order is the same for any batch size, and with a thread */
        options.reading.num_prefetched = 2;
        row_numbers(encoder, train_of("once"), &options, again);
        assert_memory_equal(again, numbers, sizeof numbers);
        options.epoch = 1;
        row_numbers(encoder, train_of("once"), &options, later);
        assert_memory_not_equal(later, numbers, sizeof numbers);
    }
    ph_encoder_destroy(encoder);
}

static void the_blocks_of_a_window_come_from_all_over(void **state)
{
    (void)state;
    static int64_t numbers[PREPARE_ROWS];
    struct ph_encoder *encoder = prepare("over");
    const struct ph_batches_options options = {.size = sizeof options,
        .batch_size = 64,
        .reading.is_shuffled = true,
        .reading.shuffle_bytes = 100000,
        .seed = test_seed()};
    row_numbers(encoder, train_of("over"), &options, numbers);
    /* the first 500 rows are of a window of at most 5 blocks: neither the first rows, nor one block alone */
    size_t num_far = 0, num_early = 0;
    for (size_t i = 0; i < 500; i++) {
        num_early += numbers[i] < 1000;
        for (size_t k = 0; k < i; k++)
            num_far += llabs(numbers[i] - numbers[k]) > 500;
    }
    assert_true(num_far > 20000);
    assert_true(num_early < 500);
    ph_encoder_destroy(encoder);
}

static void a_pass_in_order_gives_the_rows_as_they_lie(void **state)
{
    (void)state;
    static int64_t numbers[PREPARE_ROWS];
    struct ph_encoder *encoder = prepare("order");
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 1000};
    assert_int_equal(row_numbers(encoder, train_of("order"), &options, numbers), PREPARE_ROWS);
    assert_int_equal(num_in_place(numbers), PREPARE_ROWS);
    ph_encoder_destroy(encoder);
}

/* Leaves the pass behind each batch and takes it up again. */
static void assert_can_be_left_anywhere(
    const struct ph_encoder *encoder, const char *path, const struct ph_batches_options *options)
{
    struct ph_batches *whole = fixture_open(encoder, path, options);
    struct ph_position position = {{0}};
    const struct ph_batch *batch;
    do {
        struct ph_batches_options resumed_options = *options;
        resumed_options.start = &position;
        struct ph_batches *resumed = fixture_open(encoder, path, &resumed_options);
        const struct ph_batch *wanted = fixture_next(resumed);
        batch = fixture_next(whole);
        if (batch != NULL)
            assert_batches_equal(wanted, batch);
        else
            assert_null(wanted);
        ph_batches_close(resumed);
        ph_batches_position(whole, &position);
    } while (batch != NULL);
    ph_batches_close(whole);
}

static void a_pass_can_be_left_and_taken_up_anywhere(void **state)
{
    (void)state;
    struct ph_encoder *encoder = prepare("left");
    static const size_t windows[] = {1, 50000, 65536, 100000, 1 << 30};
    for (size_t w = 0; w < sizeof windows / sizeof *windows; w++)
        for (int is_downsampled = 0; is_downsampled < 2; is_downsampled++) {
            struct ph_batches_options options = {.size = sizeof options,
                .batch_size = 101,
                .reading.is_shuffled = true,
                .reading.shuffle_bytes = windows[w],
                .seed = test_seed(),
                .reading.negative_rate = is_downsampled ? 0.1 : 1};
            assert_can_be_left_anywhere(encoder, train_of("left"), &options);
            options.reading.is_shuffled = false;
            assert_can_be_left_anywhere(encoder, train_of("left"), &options);
        }
    ph_encoder_destroy(encoder);
}

static size_t window_bytes(const struct ph_encoder *encoder, const char *folder, size_t num_rows)
{
    struct ph__prepared_set *set;
    struct ph__rows rows = {0};
    assert_ok(ph__prepared_set_open(folder, encoder, &set));
    struct ph__block_decoder decoder = {.layout = ph__prepared_set_layout(set)};
    for (size_t i = 0; i < ph__prepared_set_num_blocks(set); i++)
        assert_ok(ph__prepared_set_decode(set, i, &decoder, &rows));
    size_t bytes = (size_t)ph__rows_bytes(num_rows, rows.starts[num_rows]);
    ph__rows_fini(&rows);
    ph__block_decoder_fini(&decoder);
    ph__prepared_set_close(set);
    return bytes;
}

static void what_just_fits_in_the_window_has_the_order_of_the_text(void **state)
{
    (void)state;
    struct ph_encoder *encoder = prepare("fits");
    static int64_t text[PREPARE_ROWS], prepared[PREPARE_ROWS];
    /* a window over text reads on while its rows take less than its bytes: all but the last row must */
    size_t all_but_one = window_bytes(encoder, train_of("fits"), PREPARE_ROWS - 1);
    for (int more = 0; more < 3; more++) {
        const struct ph_batches_options options = {.size = sizeof options,
            .batch_size = 100,
            .reading.is_shuffled = true,
            .reading.shuffle_bytes = all_but_one + (size_t)more,
            .seed = test_seed()};
        row_numbers(encoder, test_path("train.csv"), &options, text);
        row_numbers(encoder, train_of("fits"), &options, prepared);
        if (more > 0)
            assert_memory_equal(prepared, text, sizeof text);
        else
            assert_memory_not_equal(prepared, text, sizeof text);
    }
    ph_encoder_destroy(encoder);
}

static void a_position_of_other_data_is_refused(void **state)
{
    (void)state;
    struct ph_encoder *encoder = prepare("position");
    struct ph_batches *batches = NULL;
    const struct ph_position beyond = {{1000}}, far = {{0, 0, 0, 0, 0, 0, 100000}};
    struct ph_batches_options options = {.size = sizeof options, .batch_size = 10, .start = &beyond};
    assert_fails(ph_batches_open(encoder, train_of("position"), &options, &batches), PH_ERROR_DATA,
        "fewer than the 1000 that were read");
    options.start = &far;
    assert_fails(ph_batches_open(encoder, train_of("position"), &options, &batches), PH_ERROR_DATA,
        "has fewer rows than when reading stopped");
    assert_null(batches);
    ph_encoder_destroy(encoder);
}

/* ---- what is wrong with a set ---- */

static char *read_text(const char *path, size_t *size)
{
    struct ph__arena arena = {0};
    char *text;
    assert_ok(ph__file_read(&arena, path, 1 << 30, &text, size));
    char *copy = malloc(*size + 1);
    assert_non_null(copy);
    memcpy(copy, text, *size + 1);
    ph__arena_fini(&arena);
    return copy;
}

static void write_bytes(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void the_manifest_tells_what_the_parts_hold(void **state)
{
    (void)state;
    struct ph_encoder *encoder = prepare("told");
    struct ph__prepared_set *set;
    assert_true(ph__input_is_prepared(test_path("told/train")));
    assert_false(ph__input_is_prepared(test_path("told")));
    assert_ok(ph__prepared_set_open(test_path("told/train"), encoder, &set));
    const struct ph__manifest *manifest = ph__prepared_set_manifest(set);
    assert_int_equal(manifest->num_rows, PREPARE_ROWS);
    assert_int_equal(ph__prepared_set_num_blocks(set), manifest->num_parts); /* small parts are one block */
    uint64_t num_rows = 0;
    for (size_t i = 0; i < ph__prepared_set_num_blocks(set); i++) {
        const struct ph__set_block *block = ph__prepared_set_block(set, i);
        assert_int_equal(block->first_row, num_rows);
        num_rows += block->num_rows;
    }
    assert_int_equal(num_rows, PREPARE_ROWS);
    ph__prepared_set_close(set);
    ph_encoder_destroy(encoder);
}

static void every_flipped_or_cut_byte_of_the_manifest_is_found(void **state)
{
    (void)state;
    struct ph_encoder *encoder = prepare("manifest");
    struct ph__prepared_set *set = NULL;
    const char *path = test_path("manifest/train/manifest.json");
    size_t size;
    char *text = read_text(path, &size);
    for (size_t i = 0; i < size; i += 7) {
        text[i] ^= 1;
        write_bytes(path, text, size);
        assert_fails(ph__prepared_set_open(test_path("manifest/train"), encoder, &set), PH_ERROR_DATA,
            "manifest/train/manifest.json: ");
        text[i] ^= 1;
        write_bytes(path, text, i);
        assert_fails(ph__prepared_set_open(test_path("manifest/train"), encoder, &set), PH_ERROR_DATA,
            "manifest/train/manifest.json: ");
    }
    assert_null(set);
    free(text);
    ph_encoder_destroy(encoder);
}

static void parts_that_are_missing_exchanged_or_of_another_set_are_found(void **state)
{
    (void)state;
    struct ph_encoder *encoder = prepare("parts");
    struct ph__prepared_set *set = NULL;
    const char *first = test_path("parts/train/part-00000-00000.phd");
    const char *second = test_path("parts/train/part-00000-00001.phd");
    const char *aside = test_path("parts/aside");
    assert_int_equal(rename(first, aside), 0);
    assert_fails(ph__prepared_set_open(test_path("parts/train"), encoder, &set), PH_ERROR_DATA,
        "part-00000-00000.phd: cannot open: No such file");
    assert_int_equal(rename(second, first), 0);
    assert_int_equal(rename(aside, second), 0);
    assert_fails(ph__prepared_set_open(test_path("parts/train"), encoder, &set), PH_ERROR_DATA,
        "the part does not match manifest.json of its folder");
    assert_null(set);
    ph_encoder_destroy(encoder);
}

static void another_encoder_is_refused(void **state)
{
    (void)state;
    struct ph_encoder *encoder = prepare("mine"), *other = NULL;
    struct ph__prepared_set *set = NULL;
    struct fixture fixture;
    prepare_fixture_init(&fixture, prepare_file("other.csv", 50, 9));
    other = fixture_encoder(&fixture);
    assert_fails(ph__prepared_set_open(test_path("mine/train"), other, &set), PH_ERROR_DATA,
        "was prepared with another encoder");
    prepare_fixture_init(&fixture, test_path("train.csv"));
    ph_encoder_destroy(other);
    other = fixture_encoder(&fixture); /* the same, but not loaded from a file */
    assert_ok(ph__prepared_set_open(test_path("mine/train"), other, &set));
    ph__prepared_set_close(set);
    ph_encoder_destroy(other);
    ph_encoder_destroy(encoder);
}

static void damage_in_the_rows_arrives_as_an_error_of_the_pass(void **state)
{
    (void)state;
    struct ph_encoder *encoder = prepare("damaged");
    const char *path = test_path("damaged/train/part-00000-00004.phd");
    size_t size;
    char *bytes = read_text(path, &size);
    bytes[size / 2] ^= 1;
    write_bytes(path, bytes, size);
    free(bytes);
    const struct ph_batches_options options = {
        .size = sizeof options, .batch_size = 100, .reading.num_prefetched = 2};
    struct ph_batches *batches = fixture_open(encoder, test_path("damaged/train"), &options);
    const struct ph_batch *batch = NULL;
    size_t num_samples = 0;
    ph_status status;
    while ((status = ph_batches_next(batches, &batch)) == PH_OK) {
        assert_non_null(batch);
        num_samples += batch->num_samples;
    }
    assert_fails(status, PH_ERROR_DATA, "part-00000-00004.phd: block 0 is damaged");
    assert_true(num_samples > 0);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shuffled_pass_gives_every_row_once),
        cmocka_unit_test(the_blocks_of_a_window_come_from_all_over),
        cmocka_unit_test(a_pass_in_order_gives_the_rows_as_they_lie),
        cmocka_unit_test(a_pass_can_be_left_and_taken_up_anywhere),
        cmocka_unit_test(what_just_fits_in_the_window_has_the_order_of_the_text),
        cmocka_unit_test(a_position_of_other_data_is_refused),
        cmocka_unit_test(the_manifest_tells_what_the_parts_hold),
        cmocka_unit_test(every_flipped_or_cut_byte_of_the_manifest_is_found),
        cmocka_unit_test(parts_that_are_missing_exchanged_or_of_another_set_are_found),
        cmocka_unit_test(another_encoder_is_refused),
        cmocka_unit_test(damage_in_the_rows_arrives_as_an_error_of_the_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
