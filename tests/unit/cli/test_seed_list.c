#include "cli/seed_list.h"

#include "support/test_support.h"

static struct cli_seeds seeds;

static void a_number_is_how_many(void **state)
{
    (void)state;
    assert_ok(cli_seeds_parse("3", &seeds));
    assert_int_equal(seeds.count, 3);
    assert_int_equal(seeds.items[0], 1);
    assert_int_equal(seeds.items[2], 3);
    assert_ok(cli_seeds_parse("1024", &seeds));
    assert_int_equal(seeds.items[1023], 1024);
}

static void lists_and_ranges_are_which(void **state)
{
    (void)state;
    assert_ok(cli_seeds_parse("5,1,9007199254740992", &seeds));
    assert_int_equal(seeds.count, 3);
    assert_int_equal(seeds.items[0], 5);
    assert_int_equal(seeds.items[2], 9007199254740992);
    assert_ok(cli_seeds_parse("4-6", &seeds));
    assert_int_equal(seeds.count, 3);
    assert_int_equal(seeds.items[0], 4);
    assert_int_equal(seeds.items[2], 6);
    assert_ok(cli_seeds_parse("0-0", &seeds));
    assert_int_equal(seeds.count, 1);
}

static void what_is_no_list_of_seeds_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "0", "x", "-1", "1,", ",1", "1,,2", "6-4", "1-", "1-2-3", "1025",
        "1e3", "9007199254740993,1", "99999999999999999999999999", "1,x", " 1", "0-1024"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(cli_seeds_parse(wrong[i], &seeds), PH_ERROR_USAGE, "--seeds");
    assert_fails(cli_seeds_parse("1,2,1", &seeds), PH_ERROR_USAGE, "1 is given twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_is_how_many),
        cmocka_unit_test(lists_and_ranges_are_which),
        cmocka_unit_test(what_is_no_list_of_seeds_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
