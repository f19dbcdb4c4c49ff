#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "support/test_support.h"

static struct ph__arena arena;
static int open_error; /* what opening fails with; 0: it does not */

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    errno = open_error;
    return open_error != 0 ? -1 : openat(AT_FDCWD, path, flags, mode);
}

static int tear_down(void **state)
{
    (void)state;
    ph__arena_fini(&arena);
    return 0;
}

static void sizes_are_of_files_only(void **state)
{
    (void)state;
    uint64_t size = 0;
    const char *path = test_write_file("sized", "12345");
    assert_true(ph__file_exists(path));
    assert_ok(ph__file_size(path, &size));
    assert_int_equal(size, 5);
    assert_false(ph__file_exists(test_path("missing")));
    assert_fails(ph__file_size(test_path("missing"), &size), PH_ERROR_DATA, "missing");
    assert_fails(ph__file_size(test_folder(), &size), PH_ERROR_DATA, "not a file");
}

static void pipes_are_told_from_what_can_be_opened_again(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(test_path("pipe"), 0600), 0);
    assert_true(ph__file_is_pipe("-"));
    assert_true(ph__file_is_pipe(test_path("pipe")));
    assert_string_equal(ph__pipe_name("-"), "standard input");
    assert_string_equal(ph__pipe_name(test_path("pipe")), "a pipe");
    assert_false(ph__file_is_pipe(test_write_file("plain", "x")));
    assert_false(ph__file_is_pipe(test_folder()));
    assert_false(ph__file_is_pipe(test_path("missing")));
}

static void paths_join_with_one_slash(void **state)
{
    (void)state;
    assert_string_equal(ph__path_join(&arena, "a", "b"), "a/b");
    assert_string_equal(ph__path_join(&arena, "a/", "b"), "a/b");
    assert_string_equal(ph__path_join(&arena, "", "b"), "b");
    assert_string_equal(ph__path_join(&arena, "a", "/b"), "/b");
}

static void a_path_ends_in_what_it_is_or_less(void **state)
{
    (void)state;
    assert_true(ph__path_ends_in("a.npy", ".npy"));
    assert_true(ph__path_ends_in(".npy", ".npy"));
    assert_true(ph__path_ends_in("a", ""));
    assert_false(ph__path_ends_in("npy", ".npy"));
    assert_false(ph__path_ends_in("a.npy.gz", ".npy"));
    assert_false(ph__path_ends_in("a.NPY", ".npy"));
}

static void variables_in_paths_are_expanded(void **state)
{
    (void)state;
    const char *path = NULL;
    setenv("PH_TEST_A", "/data", 1);
    setenv("PH_TEST_EMPTY", "", 1);
    unsetenv("PH_TEST_NONE");
    assert_ok(ph__path_expand(&arena, "$PH_TEST_A/x.${PH_TEST_A}y$PH_TEST_EMPTY", &path));
    assert_string_equal(path, "/data/x./datay");
    assert_ok(ph__path_expand(&arena, "plain", &path));
    assert_string_equal(path, "plain");
    assert_ok(ph__path_expand(&arena, "a$$PH_TEST_A", &path));
    assert_string_equal(path, "a$PH_TEST_A");
    assert_fails(
        ph__path_expand(&arena, "$PH_TEST_NONE/x", &path), PH_ERROR_CONFIG, "PH_TEST_NONE is not set");
    assert_fails(ph__path_expand(&arena, "a/$", &path), PH_ERROR_CONFIG, "followed by the name");
    assert_fails(ph__path_expand(&arena, "${PH_TEST_A", &path), PH_ERROR_CONFIG, "followed by the name");
    assert_fails(ph__path_expand(&arena, "$1", &path), PH_ERROR_CONFIG, "followed by the name");
}

static void a_whole_file_is_read_up_to_its_limit(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    const char *path = test_write_file("whole", "hello");
    assert_ok(ph__file_read(&arena, path, 5, &text, &size));
    assert_string_equal(text, "hello");
    assert_int_equal(size, 5);
    assert_fails(ph__file_read(&arena, path, 4, &text, &size), PH_ERROR_DATA, "larger than 4 bytes");
    assert_fails(
        ph__file_read(&arena, test_path("missing"), 4, &text, &size), PH_ERROR_DATA, "missing: cannot open");
    assert_fails(ph__file_read(&arena, test_folder(), 4, &text, &size), PH_ERROR_DATA, "Is a directory");
    assert_ok(ph__file_read(&arena, test_write_file("none", ""), 5, &text, &size));
    assert_string_equal(text, "");
}

static void no_memory_to_open_a_file_is_no_bad_file(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    uint64_t num_bytes = 0;
    int descriptor = -1;
    test_write_file("file", "x");
    open_error = ENOMEM;
    ph_status read = ph__file_read(&arena, test_path("file"), 10, &text, &size);
    ph_status opened = ph__file_open(test_path("file"), &descriptor, &num_bytes);
    open_error = 0;
    assert_int_equal(read, PH_ERROR_MEMORY);
    assert_int_equal(opened, PH_ERROR_MEMORY);
    assert_fails(ph__file_read(&arena, test_path("none"), 10, &text, &size), PH_ERROR_DATA, "cannot open");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_memory_to_open_a_file_is_no_bad_file),
        cmocka_unit_test(sizes_are_of_files_only),
        cmocka_unit_test(pipes_are_told_from_what_can_be_opened_again),
        cmocka_unit_test(paths_join_with_one_slash),
        cmocka_unit_test(a_path_ends_in_what_it_is_or_less),
        cmocka_unit_test(variables_in_paths_are_expanded),
        cmocka_unit_test(a_whole_file_is_read_up_to_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
