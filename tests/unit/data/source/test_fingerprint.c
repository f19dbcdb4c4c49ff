/* What is remembered of files while rows are read from them. */
#include "data/source/fingerprint.h"

#include "base/file/file.h"
#include "base/file/stream.h"
#include "data/batch/batches.h"
#include "unit/data/array_fixture.h"
#include "unit/data/data_fixture.h"

#define NUM_ROWS 900
#define BATCH 100

/* Rows of a label and two ids: as text, compressed where the name's ending says so. */
static const char *write_rows(const char *name, int num_rows)
{
    const char *path = test_path(name);
    struct ph__writer *writer;
    assert_ok(ph__writer_open(path, &writer));
    assert_ok(ph__writer_printf(writer, "label,user,item\n"));
    for (int i = 0; i < num_rows; i++)
        assert_ok(ph__writer_printf(writer, "%d,%d,%d\n", i % 2, i % 97, i % 31));
    assert_ok(ph__writer_finish(writer));
    ph__writer_close(writer);
    return path;
}

static const char *write_text(const char *name)
{
    return write_rows(name, NUM_ROWS);
}

/* The same as arrays, in MLPerf's layout. */
static const char *write_arrays(void)
{
    static float labels[NUM_ROWS], dense[NUM_ROWS];
    static int32_t sparse[NUM_ROWS];
    for (int i = 0; i < NUM_ROWS; i++) {
        labels[i] = (float)(i % 2);
        dense[i] = (float)(i % 5);
        sparse[i] = i % 31;
    }
    npy_file("set_labels.npy", "<f4", "(900,)", labels, sizeof labels);
    npy_file("set_dense.npy", "<f4", "(900, 1)", dense, sizeof dense);
    npy_file("set_sparse.npy", "<i4", "(900, 1)", sparse, sizeof sparse);
    return test_path("set");
}

static struct ph_encoder *encoder_of(const char *path, bool is_arrays)
{
    struct fixture fixture;
    fixture_init(&fixture, path);
    fixture.settings.format = is_arrays ? PH_DATA_NPY : PH_DATA_CSV;
    if (is_arrays)
        fixture_field(&fixture, "I1", PH_FIELD_DENSE);
    fixture_label_and_ids(&fixture);
    return fixture_encoder(&fixture);
}

static struct ph_batches *open_recorded(const struct ph_encoder *encoder, const char *path,
    struct ph__fingerprint *fingerprint, const struct ph_position *start)
{
    struct ph_batches *batches;
    const struct ph_batches_options options = {
        .size = sizeof options, .batch_size = BATCH, .reading.num_prefetched = 3, .start = start};
    assert_ok(ph__batches_open(
        encoder, &(struct ph__rows_origin){.path = path, .fingerprint = fingerprint}, &options, &batches));
    return batches;
}

/* The whole file has been read. */
static void expect_whole(const struct ph__read_prefix *part, const char *path)
{
    struct ph__arena arena = {0};
    char *text;
    size_t size;
    assert_ok(ph__file_read(&arena, path, 1 << 24, &text, &size));
    assert_int_equal(part->num_bytes, size);
    assert_int_equal(part->checksum, ph__checksum(text, size));
    ph__arena_fini(&arena);
}

static void files_are_known_by_their_bytes_as_they_lie(void **state)
{
    (void)state;
    static const char *const names[] = {"rows.csv", "rows.csv.gz", "rows.csv.zst"};
    for (size_t i = 0; i < 3; i++) {
        const char *path = write_text(names[i]);
        struct ph_encoder *encoder = encoder_of(path, false);
        struct ph__fingerprint fingerprint;
        struct ph__read_place place;
        assert_ok(ph__fingerprint_look(&fingerprint, path, &(struct ph__input_beside){.are_arrays = false}));
        struct ph_batches *batches = open_recorded(encoder, path, &fingerprint, NULL);
        while (fixture_next(batches) != NULL)
            ;
        ph__batches_read_place(batches, &place);
        assert_int_equal(place.front, 0);
        expect_whole(&place.prefixes[0], path);
        ph_batches_close(batches);
        ph__fingerprint_fini(&fingerprint);
        ph_encoder_destroy(encoder);
    }
}

static void arrays_are_known_file_by_file(void **state)
{
    (void)state;
    static const char *const files[] = {"set_labels.npy", "set_dense.npy", "set_sparse.npy"};
    const char *path = write_arrays();
    struct ph_encoder *encoder = encoder_of(path, true);
    struct ph__fingerprint fingerprint;
    struct ph__read_place place;
    assert_ok(ph__fingerprint_look(&fingerprint, path, &(struct ph__input_beside){.are_arrays = true}));
    assert_int_equal(fingerprint.num_files, 3);
    struct ph_batches *batches = open_recorded(encoder, path, &fingerprint, NULL);
    while (fixture_next(batches) != NULL)
        ;
    ph__batches_read_place(batches, &place);
    for (size_t i = 0; i < 3; i++)
        expect_whole(&place.prefixes[i], test_path(files[i]));
    ph_batches_close(batches);
    ph__fingerprint_fini(&fingerprint);
    ph_encoder_destroy(encoder);
}

static void files_beside_the_rows_are_compared(void **state)
{
    (void)state;
    const struct ph__input_beside beside = {.names = {"edges.csv", ""}};
    const struct ph__read_place nothing = {0};
    struct ph__fingerprint before, after;
    const char *path = test_write_file("nodes.csv", "id\n0\n1\n");
    test_write_file("edges.csv", "0,1\n");
    assert_ok(ph__fingerprint_look(&before, path, &beside));
    assert_int_equal(before.num_files, 2);
    struct ph__json *saved = ph__fingerprint_json(&before, &nothing);
    assert_ok(ph__fingerprint_compare(&before, saved, path));
    test_write_file("edges.csv", "1,0\n");
    assert_ok(ph__fingerprint_look(&after, path, &beside));
    assert_fails(ph__fingerprint_compare(&after, saved, path), PH_ERROR_DATA, "edges.csv");
    ph__json_destroy(saved);
    ph__fingerprint_fini(&before);
    ph__fingerprint_fini(&after);
}

/* Half a pass, then a fingerprint that takes up what was saved of it, and the other half. */
static void expect_carried_on(const char *path, bool is_arrays)
{
    struct ph_encoder *encoder = encoder_of(path, is_arrays);
    struct ph__fingerprint fingerprint;
    struct ph__read_place place;
    struct ph_position position;
    assert_ok(ph__fingerprint_look(&fingerprint, path, &(struct ph__input_beside){.are_arrays = is_arrays}));
    struct ph_batches *batches = open_recorded(encoder, path, &fingerprint, NULL);
    for (int i = 0; i < NUM_ROWS / BATCH / 2; i++)
        assert_non_null(fixture_next(batches));
    ph__batches_read_place(batches, &place);
    ph_batches_position(batches, &position);
    ph_batches_close(batches);
    struct ph__json *saved = ph__fingerprint_json(&fingerprint, &place);
    ph__fingerprint_fini(&fingerprint);

    assert_ok(ph__fingerprint_look(&fingerprint, path, &(struct ph__input_beside){.are_arrays = is_arrays}));
    assert_ok(ph__fingerprint_compare(&fingerprint, saved, path));
    assert_ok(ph__fingerprint_check(&fingerprint, &(struct ph__meanwhile){0}));
    ph__json_destroy(saved);
    batches = open_recorded(encoder, path, &fingerprint, &position);
    while (fixture_next(batches) != NULL)
        ;
    ph__batches_read_place(batches, &place);
    ph_batches_close(batches);
    for (size_t i = fingerprint.first[fingerprint.front]; i < fingerprint.num_files; i++)
        expect_whole(
            &place.prefixes[i - fingerprint.first[fingerprint.front]], fingerprint.files[i].file.path);
    ph__fingerprint_fini(&fingerprint);
    ph_encoder_destroy(encoder);
}

static void a_saved_record_is_carried_on(void **state)
{
    (void)state;
    expect_carried_on(write_text("half.csv"), false);
    expect_carried_on(write_text("half.csv.gz"), false);
    expect_carried_on(write_arrays(), true);
    write_text("part_1.csv");
    write_text("part_2.csv");
    expect_carried_on(test_path("part_*.csv"), false);
}

/* Nothing tells of what lay between the file's beginning, which opening reads, and the place. */
static void a_pass_that_begins_within_a_file_is_not_recorded(void **state)
{
    (void)state;
    const char *path = write_rows("within.csv", 80000);
    uint64_t num_bytes;
    struct ph_encoder *encoder = encoder_of(path, false);
    struct ph__fingerprint fingerprint = {0};
    struct ph__read_place place;
    struct ph_position position;
    struct ph_batches *batches = open_recorded(encoder, path, NULL, NULL);
    for (int i = 0; i < 60000 / BATCH; i++)
        assert_non_null(fixture_next(batches));
    ph_batches_position(batches, &position);
    ph_batches_close(batches);
    assert_ok(ph__fingerprint_look(&fingerprint, path, &(struct ph__input_beside){.are_arrays = false}));
    batches = open_recorded(encoder, path, &fingerprint, &position);
    while (fixture_next(batches) != NULL)
        ;
    ph__batches_read_place(batches, &place);
    assert_ok(ph__file_size(path, &num_bytes));
    assert_true(place.prefixes[0].num_bytes < num_bytes / 2);
    ph_batches_close(batches);
    batches = open_recorded(encoder, path, &fingerprint, NULL); /* the next pass is */
    while (fixture_next(batches) != NULL)
        ;
    ph__batches_read_place(batches, &place);
    expect_whole(&place.prefixes[0], path);
    ph_batches_close(batches);
    ph__fingerprint_fini(&fingerprint);
    ph_encoder_destroy(encoder);
}

static void what_is_no_record_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"[{}]", "[{\"bytes\": 1, \"checksum\": \"0\", \"read_bytes\": 1}]"};
    const char *path = write_text("saved.csv");
    for (size_t i = 0; i < 2; i++) {
        struct ph__fingerprint fingerprint;
        struct ph__json *saved;
        assert_ok(ph__json_parse(texts[i], strlen(texts[i]), "saved", PH_ERROR_CHECKPOINT, &saved));
        assert_ok(ph__fingerprint_look(&fingerprint, path, &(struct ph__input_beside){.are_arrays = false}));
        assert_fails(ph__fingerprint_compare(&fingerprint, saved, path), PH_ERROR_CHECKPOINT,
            "saved.csv: the checkpoint's record of this file has no valid");
        ph__json_destroy(saved);
        ph__fingerprint_fini(&fingerprint);
    }
}

static void pipes_are_not_recorded(void **state)
{
    (void)state;
    struct ph__fingerprint fingerprint;
    assert_ok(ph__fingerprint_look(&fingerprint, "-", &(struct ph__input_beside){.are_arrays = false}));
    assert_int_equal(fingerprint.num_files, 0);
    assert_ok(ph__fingerprint_begin(&fingerprint, 0));
    assert_null(ph__fingerprint_checksum(&fingerprint, 0, "-"));
    ph__fingerprint_fini(&fingerprint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_known_by_their_bytes_as_they_lie),
        cmocka_unit_test(arrays_are_known_file_by_file),
        cmocka_unit_test(files_beside_the_rows_are_compared),
        cmocka_unit_test(a_saved_record_is_carried_on),
        cmocka_unit_test(a_pass_that_begins_within_a_file_is_not_recorded),
        cmocka_unit_test(what_is_no_record_is_refused),
        cmocka_unit_test(pipes_are_not_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
