/* Finding and loading plugins, and what is said where there is none. That they carry messages is tested in
 * tests/mpi. */
#include "comm/wire/transport_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_support.h"

static struct ph__transport transport;

static int clear_environment(void **state)
{
    (void)state;
    return unsetenv("PHLOEM_PLUGINS");
}

static void a_plugin_that_is_not_there_names_the_folders_and_the_package(void **state)
{
    (void)state;
    setenv("PHLOEM_PLUGINS", test_folder(), 1);
    assert_fails(ph__transport_open("openmpi", &transport), PH_ERROR_USAGE, test_folder());
    assert_non_null(strstr(ph_error_text(), "cannot find libphloem_openmpi.so in "));
    assert_non_null(strstr(ph_error_text(), "(Debian's package: libopenmpi-dev)"));
    assert_fails(ph__transport_open("mpich", &transport), PH_ERROR_USAGE, "libmpich-dev");
}

static void a_plugin_that_cannot_be_loaded_names_the_package_that_is_missing(void **state)
{
    (void)state;
    setenv("PHLOEM_PLUGINS", test_folder(), 1);
    const char *path = test_write_file("libphloem_mpich.so", "no library");
    assert_fails(ph__transport_open("mpich", &transport), PH_ERROR_USAGE,
        "MPICH is not installed (Debian's package: mpich): ");
    assert_non_null(strstr(ph_error_text(), path));
}

/* <build>/tests with `rest` behind it, until the next call. */
static const char *in_tests(const char *rest)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/tests%s", test_build(), rest);
    return path;
}

static void plugins_are_looked_for_around_the_program(void **state)
{
    (void)state;
    const char *path, *folders;
    struct ph__arena arena = {0};
    assert_ok(ph__plugin_find(&arena, "libphloem_none.so", &path, &folders));
    assert_null(path);
    assert_non_null(strstr(folders, in_tests(", ")));
    assert_non_null(strstr(folders, in_tests("/phloem, ")));
    assert_non_null(strstr(folders, in_tests("/../")));
    ph__arena_fini(&arena);
}

static void a_folder_that_is_named_is_the_only_one(void **state)
{
    (void)state;
    const char *path, *folders;
    struct ph__arena arena = {0};
    setenv("PHLOEM_PLUGINS", test_folder(), 1);
    const char *written = test_write_file("libphloem_some.so", "");
    assert_ok(ph__plugin_find(&arena, "libphloem_some.so", &path, &folders));
    assert_string_equal(path, written);
    assert_string_equal(folders, test_folder());
    ph__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(
            a_plugin_that_is_not_there_names_the_folders_and_the_package, clear_environment),
        cmocka_unit_test_setup(
            a_plugin_that_cannot_be_loaded_names_the_package_that_is_missing, clear_environment),
        cmocka_unit_test_setup(plugins_are_looked_for_around_the_program, clear_environment),
        cmocka_unit_test_setup(a_folder_that_is_named_is_the_only_one, clear_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
