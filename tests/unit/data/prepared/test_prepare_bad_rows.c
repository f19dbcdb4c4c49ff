/* Bad rows of a preparation: counted over a split, the first one named. */
#include <unistd.h>

#include "unit/data/prepare_fixture.h"

/* A file of good rows among which the given lines (from 1, the header) are bad. */
static const char *file_with_bad_lines(const char *name, const size_t *lines, size_t num_lines)
{
    const char *path = test_path(name);
    struct ph__writer *writer;
    struct ph__rng_sequence rng = {.key.seed = 1};
    assert_ok(ph__writer_open(path, &writer));
    assert_ok(ph__writer_printf(writer, "label,count,row,words,scores,weight,user\n"));
    for (size_t row = 0, bad = 0; row < PREPARE_ROWS; row++) {
        if (bad < num_lines && lines[bad] == row + 2) {
            assert_ok(ph__writer_printf(writer, "1,many,0,,,1,u\n"));
            bad++;
        } else {
            prepare_write_row(writer, &rng, row);
        }
    }
    assert_ok(ph__writer_finish(writer));
    ph__writer_close(writer);
    return path;
}

static void bad_rows_are_counted_over_the_split(void **state)
{
    (void)state;
    static const size_t lines[] = {1500, 1501, 2900};
    static const char *const suffixes[] = {"", ".gz"};
    char name[64];
    for (size_t i = 0; i < 2; i++) {
        for (size_t num_threads = 1; num_threads <= 3; num_threads += 2) {
            struct fixture fixture;
            struct ph_prepare_summary summary;
            snprintf(name, sizeof name, "bad.csv%s", suffixes[i]);
            prepare_fixture_init(&fixture, prepare_file("train.csv", PREPARE_ROWS, 1));
            fixture.settings.paths.valid = file_with_bad_lines(name, lines, 3);
            snprintf(name, sizeof name, "bad_%zu_%zu", i, num_threads);
            assert_fails(prepare_into(&fixture, name, num_threads, &summary), PH_ERROR_DATA,
                i == 0 ? "bad.csv:1500: field 'count': 'many'" : "bad.csv.gz:1500: field 'count': 'many'");
            fixture.settings.reading.max_bad_rows = 2;
            assert_fails(prepare_into(&fixture, name, num_threads, &summary), PH_ERROR_DATA,
                i == 0 ? "bad.csv:2900: field 'count': 'many'" : "bad.csv.gz:2900: field 'count': 'many'");
            assert_non_null(strstr(ph_error_text(), "data.max_bad_rows = 2"));
            fixture.settings.reading.max_bad_rows = 3;
            assert_ok(prepare_into(&fixture, name, num_threads, &summary));
            assert_int_equal(summary.num_bad_rows, 3);
            assert_int_equal(summary.num_rows, 2 * PREPARE_ROWS - 3);
            snprintf(name, sizeof name, "afresh_%zu_%zu", i, num_threads);
            assert_ok(prepare_into(&fixture, name, num_threads, &summary));
            assert_non_null(strstr(prepare_first_bad_row, i == 0 ? "bad.csv:1500: " : "bad.csv.gz:1500: "));
        }
    }
}

/* Of parts that are kept only numbers are known: the row is looked up in the text. */
static void the_first_bad_row_is_named_after_a_resume(void **state)
{
    (void)state;
    static const size_t lines[] = {1500, 1501, 2900};
    static const char *const files[] = {"kept.csv", "kept.csv.gz"};
    static const char *const folders[] = {"plain", "compressed"};
    for (size_t i = 0; i < 2; i++) {
        struct fixture fixture;
        struct ph_prepare_summary whole, resumed;
        char first[sizeof prepare_first_bad_row];
        prepare_fixture_init(&fixture, prepare_file("train.csv", PREPARE_ROWS, 1));
        fixture.settings.paths.valid = file_with_bad_lines(files[i], lines, 3);
        fixture.settings.reading.max_bad_rows = 3;
        assert_ok(prepare_into(&fixture, folders[i], 2, &whole));
        memcpy(first, prepare_first_bad_row, sizeof first);
        assert_non_null(strstr(first, files[i]));
        assert_non_null(strstr(first, ":1500: field 'count': 'many'"));
        assert_ok(prepare_into(&fixture, folders[i], 2, &resumed));
        assert_int_equal(resumed.num_kept_parts, whole.num_parts);
        assert_string_equal(prepare_first_bad_row, first);
        char last[4096];
        snprintf(last, sizeof last, "%s/%s/valid/part-00000-000%s.phd", test_folder(), folders[i],
            i == 0 ? "11" : "02");
        assert_int_equal(unlink(last), 0); /* with the row of line 2900: it is not the first */
        assert_ok(prepare_into(&fixture, folders[i], 2, &resumed));
        assert_int_equal(resumed.num_kept_parts, whole.num_parts - 1);
        assert_string_equal(prepare_first_bad_row, first);
        fixture.settings.reading.max_bad_rows = 0; /* may change */
        assert_fails(prepare_into(&fixture, folders[i], 2, &resumed), PH_ERROR_DATA,
            ":1500: field 'count': 'many' is not a finite number; ");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_rows_are_counted_over_the_split),
        cmocka_unit_test(the_first_bad_row_is_named_after_a_resume),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
