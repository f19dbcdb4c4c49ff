/* The folder of the first pass; what is learnt in it is tested by test_prepare.c. */
#include "data/prepared/prepare_passes.h"

#include "base/file/directory.h"
#include "unit/data/prepare_fixture.h"

static void the_folder_is_removed_with_its_files(void **state)
{
    (void)state;
    const char *folder = test_path("learning");
    assert_ok(ph__directory_create(folder));
    fixture_file("learning/part-00000-00000.fit", "x");
    fixture_file("learning/part-00000-00001.fit.tmp", "x");
    assert_ok(ph__prepare_learn_clean(folder));
    assert_false(ph__file_exists(folder));
    assert_ok(ph__prepare_learn_clean(folder)); /* it is not there */
}

static void what_cannot_be_removed_is_named(void **state)
{
    (void)state;
    fixture_file("file", "x");
    assert_fails(
        ph__prepare_learn_clean(test_path("file")), PH_ERROR_USAGE, "file: must be a folder, not a file");
    assert_ok(ph__directory_create(test_path("full/inner")));
    assert_fails(ph__prepare_learn_clean(test_path("full")), PH_ERROR_DISK, "full/inner: cannot remove");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_folder_is_removed_with_its_files),
        cmocka_unit_test(what_cannot_be_removed_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
