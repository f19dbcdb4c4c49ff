/* What the formats of files share: patterns, bad rows, positions. */
#include "data/source/input_file.h"
#include "data/source/source.h"

#include <stdio.h>
#include <string.h>

#include "base/file/file.h"
#include "base/file/stream.h"
#include "data/encode/encoder.h"
#include "unit/data/pass_fixture.h"

#define NUM_FILES 3
#define FILE_ROWS 200

/* Three files NAME_0.csv ENDING ... of rows label,item,tags; returns the pattern of all. Every tenth row of
 * the data is bad where that is asked for. */
static const char *write_files(const char *name, const char *ending, bool has_bad_rows)
{
    static char pattern[4096];
    for (int file = 0; file < NUM_FILES; file++) {
        char path[4096];
        struct ph__writer *writer = NULL;
        snprintf(path, sizeof path, "%s/%s_%d.csv%s", test_folder(), name, file, ending);
        assert_ok(ph__writer_open(path, &writer));
        assert_ok(ph__writer_printf(writer, "label,item,tags\n"));
        for (int i = 0; i < FILE_ROWS; i++) {
            int row = file * FILE_ROWS + i;
            if (has_bad_rows && row % 10 == 5)
                assert_ok(ph__writer_printf(writer, "%d,item%d\n", row % 2, row));
            else
                assert_ok(ph__writer_printf(writer, "%d,item%d,t%d|t%d%s\n", row % 2, row, row % 7, row % 3,
                    row % 4 == 0 ? "\n" : ""));
        }
        assert_ok(ph__writer_finish(writer));
        ph__writer_close(writer);
    }
    snprintf(pattern, sizeof pattern, "%s/%s_*.csv%s", test_folder(), name, ending);
    return pattern;
}

static struct ph_encoder *make_encoder(void)
{
    struct fixture fixture;
    fixture_init(&fixture, NULL);
    fixture.settings.encoding = PH_ENCODING_HASH;
    fixture.settings.rows = 100000;
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "item", PH_FIELD_ID);
    fixture_field(&fixture, "tags", PH_FIELD_ID)->is_list = true;
    return fixture_encoder(&fixture);
}

static void a_pattern_is_its_files_in_the_order_of_names(void **state)
{
    (void)state;
    struct ph__arena arena = {0};
    const char **paths;
    size_t num_paths;
    const char *pattern = write_files("order", "", false);
    assert_ok(ph__input_list(&arena, pattern, &paths, &num_paths));
    assert_int_equal(num_paths, NUM_FILES);
    for (size_t i = 0; i < num_paths; i++) {
        char ending[32];
        snprintf(ending, sizeof ending, "/order_%zu.csv", i);
        assert_string_equal(paths[i] + strlen(paths[i]) - strlen(ending), ending);
    }
    assert_fails(ph__input_list(&arena, "/nowhere/day_*.tsv", &paths, &num_paths), PH_ERROR_DATA,
        "/nowhere/day_*.tsv: cannot list /nowhere: No such file or directory");
    char none[4096];
    snprintf(none, sizeof none, "%s/none_*.csv", test_folder());
    assert_fails(ph__input_list(&arena, none, &paths, &num_paths), PH_ERROR_DATA,
        "none_*.csv: no file matches this pattern");
    const char *odd =
        fixture_file("what[1]?.csv", "label,a\n1,2\n"); /* a file of such a name is no pattern */
    assert_ok(ph__input_list(&arena, odd, &paths, &num_paths));
    assert_int_equal(num_paths, 1);
    assert_string_equal(paths[0], odd);
    ph__arena_fini(&arena);
}

/* All rows of all files, in order: the same as one file that has them all. */
static void many_files_are_one_stream(void **state)
{
    (void)state;
    struct ph_encoder *encoder = make_encoder();
    static char text[NUM_FILES * FILE_ROWS * 40];
    size_t size = (size_t)sprintf(text, "label,item,tags\n");
    for (int row = 0; row < NUM_FILES * FILE_ROWS; row++)
        size += (size_t)sprintf(text + size, "%d,item%d,t%d|t%d\n", row % 2, row, row % 7, row % 3);
    const char *one = fixture_file("one.csv", text);
    static const char *const endings[] = {"", ".gz", ".zst"};
    for (size_t i = 0; i < 3; i++) {
        const struct ph_batches_options options = {.size = sizeof options, .batch_size = 64};
        assert_int_equal(
            assert_same_pass(fixture_open(encoder, write_files("many", endings[i], false), &options),
                fixture_open(encoder, one, &options)),
            NUM_FILES * FILE_ROWS);
    }
    ph_encoder_destroy(encoder);
}

static void bad_rows_are_counted_up_to_the_limit(void **state)
{
    (void)state;
    struct ph_encoder *encoder = make_encoder();
    const char *pattern = write_files("bad", "", true);
    struct ph_batches_options options = {
        .size = sizeof options, .batch_size = 1000, .reading.max_bad_rows = 60};
    struct ph_batches *batches = fixture_open(encoder, pattern, &options);
    assert_int_equal(fixture_next(batches)->num_samples, 540);
    assert_null(fixture_next(batches));
    assert_int_equal(ph_batches_num_bad_rows(batches), 60);
    assert_non_null(strstr(ph_batches_first_bad_row(batches), "bad_0.csv:9: "));
    assert_non_null(strstr(ph_batches_first_bad_row(batches), "the row has 2 cells"));
    ph_batches_close(batches);
    /* What is read ahead of a batch does not count with it. */
    for (options.batch_size = 100; options.reading.num_prefetched <= 8; options.reading.num_prefetched += 4) {
        batches = fixture_open(encoder, pattern, &options);
        for (uint64_t rows = 100; rows <= 500; rows += 100) {
            assert_non_null(fixture_next(batches));
            assert_int_equal(ph_batches_num_bad_rows(batches), (rows + 3) / 9);
        }
        ph_batches_close(batches);
    }
    options.batch_size = 1000;
    options.reading.num_prefetched = 0;
    options.reading.max_bad_rows = 59;
    const struct ph_batch *batch;
    batches = fixture_open(encoder, pattern, &options);
    assert_fails(ph_batches_next(batches, &batch), PH_ERROR_DATA, "bad_2.csv:");
    assert_non_null(strstr(ph_error_text(), "more bad rows than data.max_bad_rows = 59"));
    ph_batches_close(batches);
    options.reading.max_bad_rows = 0;
    batches = fixture_open(encoder, pattern, &options);
    assert_fails(ph_batches_next(batches, &batch), PH_ERROR_DATA, "bad_0.csv:9: the row has 2 cells");
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

/* A pass left behind any batch and taken up again gives the batches that would have followed. */
static void assert_resumes(const struct ph_encoder *encoder, const char *path, bool is_shuffled)
{
    struct ph_batches_options options = {.size = sizeof options,
        .batch_size = 37,
        .reading.is_shuffled = is_shuffled,
        .seed = 11,
        .epoch = 2,
        .reading.shuffle_bytes = 2048,
        .reading.max_bad_rows = 100};
    for (int num_taken = 0; num_taken <= 14; num_taken += 2) {
        struct ph_position position;
        struct ph_batches *whole = fixture_open(encoder, path, &options);
        for (int i = 0; i < num_taken; i++)
            fixture_next(whole);
        ph_batches_position(whole, &position);
        struct ph_batches_options rest = options;
        rest.start = &position;
        rest.reading.num_prefetched = (size_t)num_taken % 3;
        struct ph_batches *resumed = fixture_open(encoder, path, &rest);
        assert_int_equal(assert_same_pass(resumed, whole), 540 - 37 * num_taken);
    }
}

static void positions_are_resumed_exactly(void **state)
{
    (void)state;
    static const char *const endings[] = {"", ".gz", ".zst"};
    struct ph_encoder *encoder = make_encoder();
    for (size_t i = 0; i < 3; i++)
        for (int is_shuffled = 0; is_shuffled <= 1; is_shuffled++)
            assert_resumes(encoder, write_files("resumed", endings[i], true), is_shuffled != 0);
    ph_encoder_destroy(encoder);
}

/* Row 5 of every ten is bad, which only who encodes it notices. Rows 0 to 9 are read, 10 to 253 skipped into
 * the second file, and 254 to 256 read; back at row 10, all is as it was. */
static void rows_are_skipped_and_gone_back_to(void **state)
{
    (void)state;
    static const char *const endings[] = {"", ".zst"};
    struct ph_encoder *encoder = make_encoder();
    for (size_t i = 0; i < 2; i++) {
        const struct ph__source_options options = {.max_bad_rows = 100};
        struct ph__source source;
        struct ph__rows rows = {0};
        struct ph__source_position start;
        uint64_t num_skipped;
        bool is_end = false;
        assert_ok(ph__source_open(&source, encoder, write_files("skipped", endings[i], true), &options));
        for (int row = 0; row < 9; row++)
            assert_ok(ph__source_next(&source, &rows, &is_end));
        ph__source_tell(&source, &start);
        assert_ok(ph__source_skip(&source, 244, &num_skipped));
        assert_int_equal(num_skipped, 244);
        assert_int_equal(source.num_rows, 9 + 244);
        for (int row = 0; row < 2; row++)
            assert_ok(ph__source_next(&source, &rows, &is_end));
        assert_int_equal(source.num_bad_rows, 2);
        assert_int_equal(source.num_encoded, 10 + 3);
        assert_ok(ph__source_skip(&source, 1000, &num_skipped));
        assert_int_equal(num_skipped, NUM_FILES * FILE_ROWS - 257);
        assert_ok(ph__source_return(&source, &start));
        while (!is_end)
            assert_ok(ph__source_next(&source, &rows, &is_end));
        assert_int_equal(source.num_rows, 540);
        assert_int_equal(source.num_bad_rows, 60);
        ph__source_close(&source);
        ph__rows_fini(&rows);
    }
    ph_encoder_destroy(encoder);
}

static void a_position_counts_bad_rows_on(void **state)
{
    (void)state;
    struct ph_encoder *encoder = make_encoder();
    const char *pattern = write_files("counted", "", true);
    struct ph_position position;
    struct ph_batches_options options = {
        .size = sizeof options, .batch_size = 100, .reading.max_bad_rows = 60};
    struct ph_batches *batches = fixture_open(encoder, pattern, &options);
    fixture_next(batches);
    ph_batches_position(batches, &position);
    ph_batches_close(batches);
    options.start = &position;
    batches = fixture_open(encoder, pattern, &options);
    while (fixture_next(batches) != NULL)
        continue;
    assert_int_equal(ph_batches_num_bad_rows(batches), 60);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

/* Where the first line begins that does so at `byte` or behind it. */
static uint64_t line_start(const char *text, size_t size, uint64_t byte)
{
    while (byte > 0 && byte < size && text[byte - 1] != '\n')
        byte++;
    return byte;
}

/* Appends the rows of the lines that begin in [begin, end). */
static void read_part(
    const struct ph_encoder *encoder, const char *path, uint64_t begin, uint64_t end, struct ph__rows *rows)
{
    struct ph__source source;
    const struct ph__source_position start = {.byte = begin};
    const struct ph__source_options options = {.is_one_file = true, .start = &start, .end_byte = end};
    assert_ok(ph__source_open(&source, encoder, path, &options));
    for (bool is_end = false; !is_end;)
        assert_ok(ph__source_next(&source, rows, &is_end));
    ph__source_close(&source);
}

/* A file cut anywhere into parts by bytes gives each row once, in order. */
static void parts_by_bytes_are_the_whole(void **state)
{
    (void)state;
    static const size_t part_sizes[] = {1, 7, 100, 1000, 100000};
    struct ph_encoder *encoder = make_encoder();
    struct ph__arena arena = {0};
    const char **paths;
    size_t num_paths, size;
    char *text;
    assert_ok(ph__input_list(&arena, write_files("parts", "", false), &paths, &num_paths));
    assert_ok(ph__file_read(&arena, paths[1], 1 << 20, &text, &size));
    struct ph__rows whole = {.num_rows = 0};
    read_part(encoder, paths[1], 0, 0, &whole);
    assert_int_equal(whole.num_rows, FILE_ROWS);
    for (size_t i = 0; i < sizeof part_sizes / sizeof part_sizes[0]; i++) {
        struct ph__rows rows = {.num_rows = 0};
        for (size_t byte = 0; byte < size; byte += part_sizes[i]) {
            uint64_t begin = line_start(text, size, byte), end = byte + part_sizes[i];
            if (begin < end && begin < size)
                read_part(encoder, paths[1], begin, end, &rows);
        }
        assert_int_equal(rows.num_rows, FILE_ROWS);
        assert_int_equal(ph__rows_num_words(&rows), ph__rows_num_words(&whole));
        assert_memory_equal(rows.words, whole.words, ph__rows_num_words(&whole) * sizeof *whole.words);
        ph__rows_fini(&rows);
    }
    ph__rows_fini(&whole);
    ph__arena_fini(&arena);
    ph_encoder_destroy(encoder);
}

/* Its lines before have not been counted: they are when an error wants the number. */
static void a_part_names_the_line_of_its_bad_row(void **state)
{
    (void)state;
    struct ph_encoder *encoder = make_encoder();
    struct ph__source source;
    struct ph__rows rows = {.num_rows = 0};
    bool is_end;
    const char *path = fixture_file("line.csv", "label,item,tags\n1,a,b\n0,c,d\n\n1,e\n");
    const struct ph__source_position start = {.byte = 22}; /* of line 3 */
    const struct ph__source_options options = {.is_one_file = true, .start = &start};
    assert_ok(ph__source_open(&source, encoder, path, &options));
    assert_ok(ph__source_next(&source, &rows, &is_end));
    assert_fails(ph__source_next(&source, &rows, &is_end), PH_ERROR_DATA, "line.csv:5: ");
    ph__source_close(&source);
    ph__rows_fini(&rows);
    ph_encoder_destroy(encoder);
}

/* What the reader itself fails with names the line, too, however the file is compressed. */
static void a_part_names_the_line_that_is_no_text(void **state)
{
    (void)state;
    static const char text[] = "label,item,tags\n1,a,b\n0,c,d\n\n1,\0,e\n";
    static const char *const names[] = {"zero.csv", "zero.csv.gz"};
    struct ph_encoder *encoder = make_encoder();
    for (size_t i = 0; i < 2; i++) {
        char path[4096];
        struct ph__writer *writer;
        snprintf(path, sizeof path, "%s/%s", test_folder(), names[i]);
        assert_ok(ph__writer_open(path, &writer));
        assert_ok(ph__writer_write(writer, text, sizeof text - 1));
        assert_ok(ph__writer_finish(writer));
        ph__writer_close(writer);
        struct ph__source source;
        struct ph__rows rows = {.num_rows = 0};
        bool is_end;
        const struct ph__source_position start = {.byte = 22}; /* of line 3 */
        const struct ph__source_options options = {.is_one_file = true, .start = &start};
        assert_ok(ph__source_open(&source, encoder, path, &options));
        assert_ok(ph__source_next(&source, &rows, &is_end));
        assert_fails(
            ph__source_next(&source, &rows, &is_end), PH_ERROR_DATA, ":5: the line holds a NUL byte");
        assert_non_null(strstr(ph_error_text(), names[i]));
        ph__source_close(&source);
        ph__rows_fini(&rows);
    }
    ph_encoder_destroy(encoder);
}

static void a_start_beyond_the_files_is_refused(void **state)
{
    (void)state;
    struct ph_encoder *encoder = make_encoder();
    const char *pattern = write_files("fewer", "", false);
    struct ph_batches *batches = NULL;
    const struct ph_position position = {{7, 0, 0, 0, 0, 0, 0, 0}};
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 8, .start = &position};
    assert_fails(ph_batches_open(encoder, pattern, &options, &batches), PH_ERROR_DATA, "has 3 files");
    ph_encoder_destroy(encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_is_its_files_in_the_order_of_names),
        cmocka_unit_test(many_files_are_one_stream),
        cmocka_unit_test(bad_rows_are_counted_up_to_the_limit),
        cmocka_unit_test(positions_are_resumed_exactly),
        cmocka_unit_test(rows_are_skipped_and_gone_back_to),
        cmocka_unit_test(a_position_counts_bad_rows_on),
        cmocka_unit_test(parts_by_bytes_are_the_whole),
        cmocka_unit_test(a_part_names_the_line_of_its_bad_row),
        cmocka_unit_test(a_part_names_the_line_that_is_no_text),
        cmocka_unit_test(a_start_beyond_the_files_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
