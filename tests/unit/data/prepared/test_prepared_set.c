#include <unistd.h>

#include "data/prepared/prepared_set.h"
#include "data/source/input_file.h"
#include "unit/data/prepare_fixture.h"

static struct ph_encoder *prepare(const char *folder)
{
    struct fixture fixture;
    struct ph_prepare_summary summary;
    prepare_fixture_init(&fixture, prepare_file("train.csv", PREPARE_ROWS, 1));
    assert_ok(prepare_into(&fixture, folder, 2, &summary));
    return prepare_encoder(folder);
}

static char *read_text(const char *path, size_t *size)
{
    struct ph_arena arena = {0};
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
        "is not the part that manifest.json of its folder tells of");
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
    const struct ph_batches_options options = {.batch_size = 100, .num_prefetched = 2};
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
        cmocka_unit_test(the_manifest_tells_what_the_parts_hold),
        cmocka_unit_test(every_flipped_or_cut_byte_of_the_manifest_is_found),
        cmocka_unit_test(parts_that_are_missing_exchanged_or_of_another_set_are_found),
        cmocka_unit_test(another_encoder_is_refused),
        cmocka_unit_test(damage_in_the_rows_arrives_as_an_error_of_the_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
