/* Option structs of older and newer callers, and their buffers. */
#include "base/memory/caller.h"

#include <string.h>

#include "support/test_support.h"

struct older {
    size_t size;
    int a;
    int b;
};

struct known {
    size_t size;
    int a;
    int b;
    double c;
};

struct newer {
    size_t size;
    int a;
    int b;
    double c;
    unsigned char d[32];
};

static ph_status copy(struct known *own, const void *given)
{
    memset(own, 0x55, sizeof *own);
    return ph__options_copy(own, sizeof *own, given, "ph_known");
}

static void a_size_that_no_version_had_is_refused(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, sizeof(size_t) - 1, sizeof(struct known) + 4097, SIZE_MAX};
    struct known own, given = {.a = 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        given.size = sizes[i];
        assert_fails(copy(&own, &given), PH_ERROR_USAGE, "set it to sizeof(struct ph_known)");
        assert_fails(
            ph__options_give(&own, sizeof own, &given, "ph_known"), PH_ERROR_USAGE, "struct ph_known");
        assert_int_equal(given.a, 1);
    }
}

static void a_struct_of_the_same_version_is_copied(void **state)
{
    (void)state;
    struct known own;
    const struct known given = {.size = sizeof given, .a = 1, .b = 2, .c = 3};
    assert_ok(copy(&own, &given));
    assert_memory_equal(&own, &given, sizeof given);
}

static void what_an_older_struct_lacks_is_zero(void **state)
{
    (void)state;
    struct known own;
    const struct older given = {.size = sizeof given, .a = 1, .b = 2};
    assert_ok(copy(&own, &given));
    assert_int_equal(own.size, sizeof own);
    assert_int_equal(own.a, 1);
    assert_int_equal(own.b, 2);
    assert_true(own.c == 0);
    const size_t alone = sizeof alone;
    assert_ok(copy(&own, &alone));
    assert_int_equal(own.a, 0);
}

static void a_newer_struct_is_taken_while_what_is_new_is_zero(void **state)
{
    (void)state;
    struct known own;
    struct newer given = {.size = sizeof given, .a = 1, .c = 3};
    assert_ok(copy(&own, &given));
    assert_int_equal(own.size, sizeof own);
    assert_true(own.a == 1 && own.c == 3);
    for (size_t i = 0; i < sizeof given.d; i += sizeof given.d - 1) {
        given.d[i] = 1;
        assert_fails(copy(&own, &given), PH_ERROR_USAGE, "struct ph_known: byte ");
        given.d[i] = 0;
    }
}

static void no_struct_is_all_defaults(void **state)
{
    (void)state;
    struct known own;
    assert_ok(copy(&own, NULL));
    assert_int_equal(own.size, sizeof own);
    assert_true(own.a == 0 && own.b == 0 && own.c == 0);
}

static void a_callers_struct_gets_what_it_knows(void **state)
{
    (void)state;
    const struct known own = {.size = sizeof own, .a = 1, .b = 2, .c = 3};
    struct known same = {.size = sizeof same};
    struct {
        struct older older;
        int behind;
    } cut = {.older.size = sizeof cut.older, .behind = 7};
    struct newer newer = {.size = sizeof newer, .d = {9}};
    assert_ok(ph__options_give(&own, sizeof own, &same, "ph_known"));
    assert_memory_equal(&same, &own, sizeof own);
    assert_ok(ph__options_give(&own, sizeof own, &cut, "ph_known"));
    assert_int_equal(cut.older.size, sizeof cut.older);
    assert_true(cut.older.a == 1 && cut.older.b == 2 && cut.behind == 7);
    assert_ok(ph__options_give(&own, sizeof own, &newer, "ph_known"));
    assert_int_equal(newer.size, sizeof newer);
    assert_true(newer.c == 3 && newer.d[0] == 9);
}

static void a_text_is_cut_to_its_buffer(void **state)
{
    (void)state;
    char text[4] = "???";
    ph__buffer_set((struct ph_buffer){text, sizeof text}, "12345");
    assert_string_equal(text, "123");
    ph__buffer_set((struct ph_buffer){text, sizeof text}, "");
    assert_string_equal(text, "");
    ph__buffer_set((struct ph_buffer){0}, "not wanted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_size_that_no_version_had_is_refused),
        cmocka_unit_test(a_struct_of_the_same_version_is_copied),
        cmocka_unit_test(what_an_older_struct_lacks_is_zero),
        cmocka_unit_test(a_newer_struct_is_taken_while_what_is_new_is_zero),
        cmocka_unit_test(no_struct_is_all_defaults),
        cmocka_unit_test(a_callers_struct_gets_what_it_knows),
        cmocka_unit_test(a_text_is_cut_to_its_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
