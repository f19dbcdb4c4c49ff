#include "base/file/file.h"

#include "support/test_support.h"

static void a_file_is_mapped_whole(void **state)
{
    (void)state;
    struct ph__mapped_file file = {0};
    assert_ok(ph__mapped_file_open(test_write_file("text", "some bytes"), PH_ERROR_DATA, &file));
    assert_int_equal(file.size, 10);
    assert_memory_equal(file.bytes, "some bytes", 10);
    ph__mapped_file_close(&file);
    assert_null(file.bytes);
    assert_ok(ph__mapped_file_open(test_write_file("nothing", ""), PH_ERROR_DATA, &file));
    assert_int_equal(file.size, 0);
    ph__mapped_file_close(&file);
}

static void what_is_no_file_is_refused_by_name(void **state)
{
    (void)state;
    struct ph__mapped_file file = {0};
    assert_fails(ph__mapped_file_open("/nowhere/gone", PH_ERROR_CHECKPOINT, &file), PH_ERROR_CHECKPOINT,
        "/nowhere/gone: cannot open");
    assert_fails(
        ph__mapped_file_open(test_folder(), PH_ERROR_DATA, &file), PH_ERROR_DATA, "not a regular file");
    assert_null(file.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_mapped_whole),
        cmocka_unit_test(what_is_no_file_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
