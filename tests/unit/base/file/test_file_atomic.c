#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "support/test_support.h"

static struct ph__arena arena;

static int tear_down(void **state)
{
    (void)state;
    ph__arena_fini(&arena);
    return 0;
}

static const char *text_of(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    assert_ok(ph__file_read(&arena, path, 1000, &text, &size));
    return text;
}

static ph_status write_text(const char *path, const char *text)
{
    struct ph__atomic_file file;
    PH_TRY(ph__atomic_file_open(path, &file));
    ph_status status = ph__atomic_file_write(&file, text, strlen(text));
    if (status == PH_OK)
        return ph__atomic_file_commit(&file);
    ph__atomic_file_abandon(&file);
    return status;
}

static bool has_temporary_file(const char *path)
{
    return ph__file_exists(ph__arena_printf(&arena, "%s.tmp", path));
}

static void a_file_is_replaced_only_by_a_commit(void **state)
{
    (void)state;
    const char *path = test_write_file("replaced", "former");
    struct ph__atomic_file file;
    assert_ok(ph__atomic_file_open(path, &file));
    assert_ok(ph__atomic_file_write(&file, "ne", 2));
    assert_ok(ph__atomic_file_write(&file, "w", 1));
    assert_string_equal(text_of(path), "former");
    assert_ok(ph__atomic_file_commit(&file));
    assert_string_equal(text_of(path), "new");
    assert_false(has_temporary_file(path));
    assert_int_equal(file.descriptor, -1);
}

static void an_abandoned_file_leaves_no_trace(void **state)
{
    (void)state;
    const char *path = test_write_file("kept", "former");
    struct ph__atomic_file file;
    assert_ok(ph__atomic_file_open(path, &file));
    assert_ok(ph__atomic_file_write(&file, "new", 3));
    ph__atomic_file_abandon(&file);
    assert_string_equal(text_of(path), "former");
    assert_false(has_temporary_file(path));
    ph__atomic_file_abandon(&file);
}

static void a_commit_that_fails_keeps_the_former_file(void **state)
{
    (void)state;
    const char *path = ph__path_join(&arena, test_folder(), "in_the_way");
    struct ph__atomic_file file;
    assert_ok(ph__atomic_file_open(path, &file));
    assert_ok(ph__directory_create(ph__path_join(&arena, path, "inner")));
    assert_ok(ph__atomic_file_write(&file, "new", 3));
    assert_fails(ph__atomic_file_commit(&file), PH_ERROR_USAGE, "in_the_way: must be a file");
    assert_false(has_temporary_file(path));
    assert_int_equal(file.descriptor, -1);
}

static void the_name_of_a_folder_is_refused_before_anything_is_written(void **state)
{
    (void)state;
    const char *path = ph__path_join(&arena, test_folder(), "folder");
    const char *below = ph__path_join(&arena, test_write_file("file", ""), "below");
    struct ph__atomic_file file;
    assert_ok(ph__directory_create(path));
    assert_fails(ph__atomic_file_open(path, &file), PH_ERROR_USAGE, "folder: must be a file, not a folder");
    assert_false(has_temporary_file(path));
    assert_fails(
        ph__atomic_file_open(below, &file), PH_ERROR_USAGE, "file/below: a part of the path is a file");
}

static void a_folder_that_is_missing_or_closed_is_named(void **state)
{
    (void)state;
    struct ph__atomic_file file;
    assert_fails(
        ph__atomic_file_open("/nowhere/x", &file), PH_ERROR_DISK, "/nowhere/x: cannot write: No such");
    const char *folder = ph__path_join(&arena, test_folder(), "closed");
    assert_ok(ph__directory_create(folder));
    assert_int_equal(chmod(folder, 0500), 0);
    if (geteuid() == 0) /* root may write anywhere */
        return;
    assert_fails(write_text(ph__path_join(&arena, folder, "x"), "x"), PH_ERROR_DISK, "Permission denied");
}

static void a_full_disk_is_reported_while_writing(void **state)
{
    (void)state;
    const char *path = ph__path_join(&arena, test_folder(), "full");
    if (access("/dev/full", W_OK) != 0)
        return;
    assert_int_equal(symlink("/dev/full", ph__arena_printf(&arena, "%s.tmp", path)), 0);
    assert_fails(write_text(path, "text"), PH_ERROR_DISK, "full: cannot write: No space");
    assert_false(ph__file_exists(path));
    assert_false(has_temporary_file(path));
}

static void a_file_is_replaced_by_the_next_one(void **state)
{
    (void)state;
    const char *path = ph__path_join(&arena, test_folder(), "text");
    assert_ok(write_text(path, "one\n"));
    assert_ok(write_text(path, "two\n"));
    assert_string_equal(text_of(path), "two\n");
}

static void a_link_replaces_a_name_by_another_file(void **state)
{
    (void)state;
    const char *from = ph__arena_strdup(&arena, test_write_file("from", "linked"));
    const char *to = ph__arena_strdup(&arena, test_write_file("to", "former"));
    assert_ok(ph__file_link(from, to));
    assert_ok(ph__file_link(from, to)); /* the same file already */
    assert_string_equal(text_of(to), "linked");
    assert_false(has_temporary_file(to));
    /* Replacing one name leaves the other one alone. */
    assert_ok(write_text(from, "newer"));
    assert_string_equal(text_of(to), "linked");
    assert_fails(ph__file_link("/nowhere/x", to), PH_ERROR_DISK, "/nowhere/x");
    assert_string_equal(text_of(to), "linked");
}

/* Another file system than the test folder's, where the machine has one: links are not possible then. */
static void a_link_to_another_file_system_is_a_copy(void **state)
{
    (void)state;
    struct stat here, there;
    const char *from = "/proc/version", *to = ph__path_join(&arena, test_folder(), "copied");
    if (stat(from, &there) != 0 || stat(test_folder(), &here) != 0 || there.st_dev == here.st_dev)
        return;
    assert_ok(ph__file_link(from, to));
    assert_string_equal(text_of(to), text_of(from));
    assert_false(has_temporary_file(to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced_only_by_a_commit),
        cmocka_unit_test(an_abandoned_file_leaves_no_trace),
        cmocka_unit_test(a_commit_that_fails_keeps_the_former_file),
        cmocka_unit_test(the_name_of_a_folder_is_refused_before_anything_is_written),
        cmocka_unit_test(a_folder_that_is_missing_or_closed_is_named),
        cmocka_unit_test(a_full_disk_is_reported_while_writing),
        cmocka_unit_test(a_file_is_replaced_by_the_next_one),
        cmocka_unit_test(a_link_replaces_a_name_by_another_file),
        cmocka_unit_test(a_link_to_another_file_system_is_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
