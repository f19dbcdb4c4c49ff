#include <unistd.h>

#include "unit/data/part_fixture.h"

static const char *path_of(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    return path;
}

static void a_part_appears_only_when_it_is_finished(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout();
    struct ph__part_writer *writer;
    const char *path = path_of("unfinished.phd");
    struct ph__rows rows = part_rows(&layout, 10, 0);
    assert_ok(ph__part_writer_open(path, &layout, part_digest, &writer));
    assert_ok(ph__part_writer_add(writer, &rows));
    assert_false(ph__file_exists(path));
    ph__part_writer_close(writer);
    assert_false(ph__file_exists(path));
    assert_false(ph__file_exists(path_of("unfinished.phd.tmp")));
    ph__rows_fini(&rows);
}

static void the_same_rows_are_the_same_bytes(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout();
    char first[4096];
    size_t first_bytes, second_bytes;
    snprintf(first, sizeof first, "%s", path_of("first.phd"));
    part_write(first, &layout, 3, 500);
    part_write(path_of("second.phd"), &layout, 3, 500);
    unsigned char *one = part_bytes(first, &first_bytes);
    unsigned char *other = part_bytes(path_of("second.phd"), &second_bytes);
    assert_int_equal(first_bytes, second_bytes);
    assert_memory_equal(one, other, first_bytes);
    free(one);
    free(other);
}

static void a_folder_that_is_missing_is_a_disk_error(void **state)
{
    (void)state;
    struct ph__row_layout layout = part_layout();
    struct ph__part_writer *writer = NULL;
    assert_fails(ph__part_writer_open("/nonexistent/part.phd", &layout, part_digest, &writer), PH_ERROR_DISK,
        "/nonexistent/part.phd");
    assert_null(writer);
    ph__part_writer_close(NULL);
}

static void a_full_disk_is_a_disk_error(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        test_skip("there is no /dev/full");
    struct ph__row_layout layout = part_layout();
    struct ph__part_writer *writer = NULL;
    assert_int_equal(symlink("/dev/full", path_of("full.phd.tmp")), 0);
    assert_fails(ph__part_writer_open(path_of("full.phd"), &layout, part_digest, &writer), PH_ERROR_DISK,
        "No space left");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_appears_only_when_it_is_finished),
        cmocka_unit_test(the_same_rows_are_the_same_bytes),
        cmocka_unit_test(a_folder_that_is_missing_is_a_disk_error),
        cmocka_unit_test(a_full_disk_is_a_disk_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
