#include "support/test_support.h"

#include <stdio.h>
#include <string.h>

#include "base/file/file.h"
#include "cli/verb/prediction_file.h"

static const float rows[3][2] = {{0.5f, 0.25f}, {1.0f, 0.0f}, {1e-9f, 0.125f}};

static void path_of(const char *name, char path[512])
{
    snprintf(path, 512, "%s/%s", test_folder(), name);
}

static size_t read_all(const char *path, char *bytes, size_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t length = fread(bytes, 1, size - 1, file);
    bytes[length] = '\0';
    fclose(file);
    return length;
}

static void write_rows(const char *path, size_t num_tasks)
{
    struct cli_prediction_file file;
    assert_ok(cli_prediction_file_open(path, num_tasks, &file));
    for (size_t i = 0; i < 3; i++)
        assert_ok(cli_prediction_file_row(&file, rows[i]));
    assert_ok(cli_prediction_file_finish(&file));
    cli_prediction_file_abandon(&file);
}

static void csv_has_a_header_and_a_line_a_row(void **state)
{
    (void)state;
    char path[512], text[256];
    path_of("one.csv", path);
    write_rows(path, 1);
    read_all(path, text, sizeof text);
    assert_string_equal(text, "prediction\n0.5\n1\n9.99999972e-10\n");
    path_of("two.csv", path);
    write_rows(path, 2);
    read_all(path, text, sizeof text);
    assert_string_equal(text, "prediction_0,prediction_1\n0.5,0.25\n1,0\n9.99999972e-10,0.125\n");
}

static void npy_has_its_shape_and_the_floats(void **state)
{
    (void)state;
    char path[512], bytes[512];
    path_of("two.npy", path);
    write_rows(path, 2);
    size_t length = read_all(path, bytes, sizeof bytes);
    assert_int_equal(length, 128 + sizeof rows);
    assert_memory_equal(
        bytes, "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", 66);
    assert_int_equal(bytes[127], '\n');
    assert_memory_equal(bytes + 128, rows, sizeof rows);
}

static void file_that_is_abandoned_leaves_nothing(void **state)
{
    (void)state;
    char path[512], temporary[520];
    struct cli_prediction_file file;
    path_of("gone.csv", path);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    assert_ok(cli_prediction_file_open(path, 1, &file));
    assert_ok(cli_prediction_file_row(&file, rows[0]));
    cli_prediction_file_abandon(&file);
    assert_false(ph__file_exists(path));
    assert_false(ph__file_exists(temporary));
}

static void other_endings_are_refused(void **state)
{
    (void)state;
    struct cli_prediction_file file;
    assert_fails(cli_prediction_file_open("x.parquet", 1, &file), PH_ERROR_USAGE, "x.parquet");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_has_a_header_and_a_line_a_row),
        cmocka_unit_test(npy_has_its_shape_and_the_floats),
        cmocka_unit_test(file_that_is_abandoned_leaves_nothing),
        cmocka_unit_test(other_endings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
