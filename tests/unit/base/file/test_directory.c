#include "base/file/directory.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "support/test_support.h"

static struct ph__arena arena;
static size_t num_readable = SIZE_MAX; /* entries, "." and ".." among them, until reading fails */

struct dirent *readdir(DIR *directory)
{
    if (num_readable-- > 0)
        return (struct dirent *)readdir64(directory);
    errno = EIO;
    return NULL;
}

static int tear_down(void **state)
{
    (void)state;
    ph__arena_fini(&arena);
    return 0;
}

static void folders_are_made_with_their_parents(void **state)
{
    (void)state;
    struct stat status;
    const char *path = test_path("a/b//c");
    assert_ok(ph__directory_create(path));
    assert_ok(ph__directory_create(path));
    assert_ok(ph__directory_create(test_path("a/d/")));
    assert_ok(ph__directory_create("/"));
    assert_int_equal(stat(test_path("a/d"), &status), 0);
    assert_int_equal(stat(path, &status), 0);
    test_write_file("file", "x");
    assert_fails(
        ph__directory_create(test_path("file/below")), PH_ERROR_USAGE, "file' must be a folder, not a file");
    assert_fails(
        ph__directory_create(test_path("file")), PH_ERROR_USAGE, "file: must be a folder, not a file");
}

static void a_folder_is_locked_once(void **state)
{
    (void)state;
    int lock, other;
    assert_ok(ph__directory_create(test_path("kept")));
    assert_ok(ph__directory_lock(test_path("kept"), &lock));
    assert_fails(ph__directory_lock(test_path("kept"), &other), PH_ERROR_USAGE, "kept: another process uses");
    assert_int_equal(other, -1);
    ph__directory_unlock(other);
    ph__directory_unlock(lock);
    assert_ok(ph__directory_lock(test_path("kept"), &lock));
    ph__directory_unlock(lock);
    assert_fails(ph__directory_lock(test_path("absent"), &lock), PH_ERROR_DISK, "absent: cannot open");
}

struct visits {
    size_t count, max_count; /* 0: without end */
    bool has_a, has_b;
};

static ph_status see(void *argument, const char *name)
{
    struct visits *visits = argument;
    visits->count++;
    visits->has_a = visits->has_a || strcmp(name, "a") == 0;
    visits->has_b = visits->has_b || strcmp(name, "b") == 0;
    return visits->count == visits->max_count ? ph_fail(PH_ERROR_INTERRUPTED, "enough") : PH_OK;
}

/* A folder with the file a and the folder b. */
static const char *make_folder(const char *name)
{
    const char *path = test_path(name);
    assert_ok(ph__directory_create(ph__path_join(&arena, path, "b")));
    test_write_file(ph__arena_printf(&arena, "%s/a", name), "x");
    return path;
}

static void entries_are_visited_once_each(void **state)
{
    (void)state;
    struct visits visits = {0};
    assert_ok(ph__directory_visit(make_folder("two"), see, &visits));
    assert_int_equal(visits.count, 2);
    assert_true(visits.has_a && visits.has_b);
    assert_ok(ph__directory_visit(test_path("two/b"), see, &visits));
    assert_ok(ph__directory_visit(test_path("missing"), see, &visits));
    assert_int_equal(visits.count, 2);
}

static void a_failure_ends_the_visit(void **state)
{
    (void)state;
    struct visits visits = {.max_count = 1};
    assert_fails(ph__directory_visit(make_folder("ended"), see, &visits), PH_ERROR_INTERRUPTED, "enough");
    assert_int_equal(visits.count, 1);
}

static void what_is_no_folder_is_not_taken_for_an_empty_one(void **state)
{
    (void)state;
    struct visits visits = {0};
    make_folder("other");
    assert_fails(ph__directory_visit(test_path("other/a"), see, &visits), PH_ERROR_USAGE,
        "other/a: must be a folder, not a file: choose another name");
    assert_fails(ph__directory_visit(test_path("other/a/c"), see, &visits), PH_ERROR_USAGE,
        "other/a' must be a folder, not a file");
    assert_int_equal(visits.count, 0);
}

static void a_folder_that_cannot_be_read_to_its_end_is_told(void **state)
{
    (void)state;
    const char *path = make_folder("torn");
    for (size_t count = 0; count <= 4; count++) {
        struct visits visits = {0};
        num_readable = count;
        ph_status status = ph__directory_visit(path, see, &visits);
        num_readable = SIZE_MAX;
        assert_fails(status, PH_ERROR_DISK, "torn: cannot list the folder: Input/output error");
        assert_true(visits.count <= count);
    }
}

static ph_status remove_file(void *argument, const char *name)
{
    (void)argument;
    return unlink(test_path(ph__arena_printf(&arena, "emptied/%s", name))) == 0 ? PH_OK : PH_ERROR_DISK;
}

static void a_visit_may_remove_the_entry(void **state)
{
    (void)state;
    struct visits visits = {0};
    assert_ok(ph__directory_create(test_path("emptied")));
    for (int i = 0; i < 3000; i++)
        test_write_file(ph__arena_printf(&arena, "emptied/%d", i), "");
    assert_ok(ph__directory_visit(test_path("emptied"), remove_file, NULL));
    assert_ok(ph__directory_visit(test_path("emptied"), see, &visits));
    assert_int_equal(visits.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_made_with_their_parents),
        cmocka_unit_test(a_folder_is_locked_once),
        cmocka_unit_test(entries_are_visited_once_each),
        cmocka_unit_test(a_failure_ends_the_visit),
        cmocka_unit_test(what_is_no_folder_is_not_taken_for_an_empty_one),
        cmocka_unit_test(a_folder_that_cannot_be_read_to_its_end_is_told),
        cmocka_unit_test(a_visit_may_remove_the_entry),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
