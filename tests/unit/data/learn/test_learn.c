/* Learning in parts with a bound on memory gives what one pass over everything gives. */
#include "data/learn/learn.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/file.h"
#include "unit/data/data_fixture.h"

#define NUM_ROWS 20000
#define MAX_TEXT 2000000

static const char *write_rows(void)
{
    char *text = malloc(MAX_TEXT);
    assert_non_null(text);
    size_t size = (size_t)sprintf(text, "label,item,price,tags\n");
    uint32_t state = (uint32_t)test_seed();
    for (int i = 0; i < NUM_ROWS; i++) {
        state = state * 1664525u + 1013904223u;
        uint32_t item = state >> 20;
        size += (size_t)sprintf(text + size, "%u,item%u,%g,a%u|b%u\n", state >> 31, item * item >> 12,
            (double)(state >> 8) / 1000.0 - 4000, item % 7, i % 5000);
    }
    const char *path = fixture_file("learn.csv", text);
    free(text);
    return path;
}

static void init_fixture(struct fixture *fixture, const char *train, int64_t min_count)
{
    fixture_init(fixture, train);
    fixture->settings.min_count = min_count;
    fixture_field(fixture, "label", PH_FIELD_LABEL);
    fixture_field(fixture, "item", PH_FIELD_ID);
    fixture_field(fixture, "tags", PH_FIELD_ID)->is_list = true;
    fixture_field(fixture, "price", PH_FIELD_DENSE)->transform = PH_TRANSFORM_STANDARDISE;
    struct ph__field_settings *bucket = fixture_field(fixture, "price_bucket", PH_FIELD_ID);
    bucket->from = "price";
    bucket->encoding = PH_ENCODING_BUCKET;
    bucket->num_buckets = 10;
    struct ph__field_settings *shared = fixture_field(fixture, "item_as_tag", PH_FIELD_ID);
    shared->from = "item";
    shared->shares = "tags";
}

/* The saved encoder as text. */
static char *saved_text(const struct ph_encoder *encoder, const char *name)
{
    static struct ph__arena arena;
    char path[1024], *text = NULL;
    size_t size;
    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    assert_ok(ph_encoder_save(encoder, path));
    assert_ok(ph__file_read(&arena, path, 1 << 24, &text, &size));
    return text;
}

static struct ph_encoder *unlearnt(const char *train, int64_t min_count)
{
    struct ph_encoder *encoder = NULL;
    struct fixture fixture;
    init_fixture(&fixture, train, min_count);
    assert_ok(ph__encoder_outline(&fixture.settings, &encoder));
    return encoder;
}

/* Byte offsets at which lines begin: num_parts + 1 of them, the last one the size. */
static void cut(const char *path, size_t num_parts, uint64_t *cuts)
{
    struct ph__reader *reader;
    char *line = NULL;
    size_t length, next = 0;
    uint64_t size;
    assert_ok(ph__file_size(path, &size));
    assert_ok(ph__reader_open(path, &reader));
    do {
        while (next < num_parts && ph__reader_byte(reader) >= size * next / num_parts)
            cuts[next++] = ph__reader_byte(reader);
        assert_ok(ph__reader_line(reader, &line, &length));
    } while (line != NULL);
    cuts[num_parts] = size;
    ph__reader_close(reader);
}

static uint64_t learn_parts(const struct ph_encoder *encoder, const char *train, size_t num_parts,
    uint64_t max_bytes, const char **prefixes)
{
    static struct ph__arena arena;
    uint64_t cuts[16], num_rows = 0;
    cut(train, num_parts, cuts);
    for (size_t i = 0; i < num_parts; i++) {
        const struct ph__source_position start = {.byte = cuts[i]};
        struct ph__fit_summary summary;
        prefixes[i] = ph__arena_printf(&arena, "%s/fit-%zu", test_folder(), i);
        const struct ph__learn_part part = {.path = train,
            .start = &start,
            .end_byte = cuts[i + 1],
            .prefix = prefixes[i],
            .max_bytes = max_bytes};
        assert_ok(ph__learn_part(encoder, &part, &summary));
        num_rows += summary.num_rows;
    }
    return num_rows;
}

static void remove_fits(void)
{
    char command[1200];
    snprintf(command, sizeof command, "rm -f %s/fit-*", test_folder());
    assert_int_equal(system(command), 0);
}

static void parts_make_the_encoder_of_one_pass(void **state)
{
    (void)state;
    const char *train = write_rows();
    for (int64_t min_count = 1; min_count <= 5; min_count += 4) {
        struct fixture fixture;
        init_fixture(&fixture, train, min_count);
        struct ph_encoder *whole = fixture_encoder(&fixture);
        char *wanted = saved_text(whole, "whole.json");
        for (size_t num_parts = 1; num_parts <= 7; num_parts += 3) {
            const char *prefixes[8];
            struct ph_encoder *encoder = unlearnt(train, min_count);
            uint64_t max_bytes = num_parts == 4 ? 1 : 1 << 30; /* 1: a file whenever it looks */
            assert_int_equal(learn_parts(encoder, train, num_parts, max_bytes, prefixes), NUM_ROWS);
            assert_ok(ph__learn_finish(train, prefixes, num_parts, 1 << 30, encoder));
            assert_string_equal(saved_text(encoder, "parts.json"), wanted);
            ph_encoder_destroy(encoder);
            remove_fits();
        }
        ph_encoder_destroy(whole);
    }
}

static void a_part_that_is_done_is_not_learnt_again(void **state)
{
    (void)state;
    const char *train = write_rows(), *prefixes[8];
    struct ph_encoder *encoder = unlearnt(train, 1);
    assert_int_equal(learn_parts(encoder, train, 3, 1, prefixes), NUM_ROWS);
    struct ph__fit_summary summary;
    const struct ph__learn_part part = {.path = "/nowhere/gone.csv", .prefix = prefixes[1]};
    assert_ok(ph__learn_part(encoder, &part, &summary)); /* its file is not even opened */
    assert_true(summary.num_rows > 0);
    ph_encoder_destroy(encoder);
    remove_fits();
}

static void damaged_files_are_not_believed(void **state)
{
    (void)state;
    const char *train = write_rows(), *prefixes[8];
    struct ph_encoder *encoder = unlearnt(train, 1);
    learn_parts(encoder, train, 1, 1 << 30, prefixes);
    char path[1200];
    snprintf(path, sizeof path, "%s-000.fit", prefixes[0]);
    uint64_t size;
    struct ph__fit_summary summary;
    assert_ok(ph__file_size(path, &size));
    assert_true(ph__fit_file_is_whole(path, encoder, &summary));
    uint64_t step = size / 997;
    for (uint64_t at = 0; at < size; at += step) {
        FILE *file = fopen(path, "r+b");
        assert_non_null(file);
        fseek(file, (long)at, SEEK_SET);
        int byte = fgetc(file);
        fseek(file, (long)at, SEEK_SET);
        fputc(byte ^ 0x20, file);
        fclose(file);
        bool is_whole = ph__fit_file_is_whole(path, encoder, &summary);
        file = fopen(path, "r+b");
        assert_non_null(file);
        fseek(file, (long)at, SEEK_SET);
        fputc(byte, file);
        fclose(file);
        if (is_whole && at + 8 < size) /* padding between arrays is nobody's */
            assert_true(byte == 0);
    }
    assert_int_equal(truncate(path, (off_t)size - 8), 0);
    assert_false(ph__fit_file_is_whole(path, encoder, &summary));
    assert_fails(ph__learn_finish(train, prefixes, 1, 1 << 30, encoder), PH_ERROR_DATA, "missing or damaged");
    ph_encoder_destroy(encoder);
    remove_fits();
}

static void vocabularies_beyond_the_bound_are_refused_by_name(void **state)
{
    (void)state;
    const char *train = write_rows(), *prefixes[8];
    struct ph_encoder *encoder = unlearnt(train, 1);
    learn_parts(encoder, train, 2, 1 << 30, prefixes);
    assert_fails(ph__learn_finish(train, prefixes, 2, 10000, encoder), PH_ERROR_MEMORY,
        "take more than the 10000 bytes left of prepare.vocabulary_bytes");
    ph_encoder_destroy(encoder);
    remove_fits();
}

static void more_files_than_are_merged_are_refused(void **state)
{
    (void)state;
    const size_t count = 65537;
    const char **paths = calloc(count, sizeof *paths);
    struct ph_encoder *encoder = unlearnt(write_rows(), 1);
    assert_fails(ph__fit_files_finish(paths, count, 1 << 30, encoder), PH_ERROR_CONFIG,
        "65537 files of ids to merge are more than 65536: raise prepare.vocabulary_bytes");
    ph_encoder_destroy(encoder);
    free(paths);
}

static void data_without_rows_is_named(void **state)
{
    (void)state;
    const char *train = fixture_file("none.csv", "label,item,price,tags\n"), *prefixes[8];
    struct ph_encoder *encoder = unlearnt(train, 1);
    assert_int_equal(learn_parts(encoder, train, 1, 1 << 30, prefixes), 0);
    assert_fails(
        ph__learn_finish(train, prefixes, 1, 1 << 30, encoder), PH_ERROR_DATA, "none.csv: has no rows");
    ph_encoder_destroy(encoder);
    remove_fits();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_make_the_encoder_of_one_pass),
        cmocka_unit_test(a_part_that_is_done_is_not_learnt_again),
        cmocka_unit_test(damaged_files_are_not_believed),
        cmocka_unit_test(vocabularies_beyond_the_bound_are_refused_by_name),
        cmocka_unit_test(more_files_than_are_merged_are_refused),
        cmocka_unit_test(data_without_rows_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
