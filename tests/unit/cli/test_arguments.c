#include "support/test_support.h"

#include "cli/arguments.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool is_loud;
static const char *out;
static struct cli_texts sets;

static const struct cli_flag flags[] = {
    {"--loud", CLI_SWITCH, &is_loud, NULL, "say more"},
    {"--out", CLI_TEXT, &out, "DIR", "where to"},
    {"--set", CLI_TEXTS, &sets, "KEY=VALUE", "a value"},
};
static const struct cli_command command = {
    "train", "train c.yaml", "Trains.", "CONFIG [FILE]", 1, 2, flags, COUNT(flags)};

static ph_status parse(struct cli_arguments *arguments, int count, ...)
{
    char *argv[16] = {(char *)"train"};
    va_list texts;
    is_loud = false;
    out = NULL;
    sets = (struct cli_texts){0};
    va_start(texts, count);
    for (int i = 0; i < count; i++)
        argv[1 + i] = va_arg(texts, char *);
    va_end(texts);
    return cli_parse(&command, 1 + count, argv, arguments);
}

static void flags_take_values_behind_them_or_after_an_equals_sign(void **state)
{
    (void)state;
    struct cli_arguments arguments;
    assert_ok(parse(&arguments, 7, "--out", "dir", "--set=a.b=1", "config", "--set", "c=2", "--loud"));
    assert_string_equal(out, "dir");
    assert_int_equal(sets.count, 2);
    assert_string_equal(sets.items[0], "a.b=1");
    assert_string_equal(sets.items[1], "c=2");
    assert_true(is_loud);
    assert_int_equal(arguments.num_positional, 1);
    assert_string_equal(arguments.positional[0], "config");
    assert_false(arguments.has_printed_help);
}

static void two_dashes_end_the_flags(void **state)
{
    (void)state;
    struct cli_arguments arguments;
    assert_ok(parse(&arguments, 3, "--", "--out", "-"));
    assert_int_equal(arguments.num_positional, 2);
    assert_string_equal(arguments.positional[0], "--out");
    assert_null(out);
}

static void one_dash_is_a_positional_argument(void **state)
{
    (void)state;
    struct cli_arguments arguments;
    assert_ok(parse(&arguments, 1, "-"));
    assert_string_equal(arguments.positional[0], "-");
}

static void wrong_use_is_refused_by_name(void **state)
{
    (void)state;
    struct cli_arguments arguments;
    assert_fails(parse(&arguments, 1, "--oust"), PH_ERROR_USAGE, "did you mean '--out'?");
    assert_fails(parse(&arguments, 2, "config", "--out"), PH_ERROR_USAGE, "--out needs a value");
    assert_fails(parse(&arguments, 2, "config", "--loud=1"), PH_ERROR_USAGE, "--loud takes no value");
    assert_fails(parse(&arguments, 0), PH_ERROR_USAGE, "usage: phloem train CONFIG [FILE]");
    assert_fails(parse(&arguments, 3, "a", "b", "c"), PH_ERROR_USAGE, "one argument too many: 'c'");
}

static void empty_arguments_are_refused(void **state)
{
    (void)state;
    struct cli_arguments arguments;
    assert_fails(
        parse(&arguments, 3, "config", "--out", ""), PH_ERROR_USAGE, "--out needs a value: --out DIR");
    assert_fails(parse(&arguments, 2, "config", "--out="), PH_ERROR_USAGE, "--out needs a value: --out DIR");
    assert_fails(
        parse(&arguments, 1, ""), PH_ERROR_USAGE, "an argument is empty; usage: phloem train CONFIG");
}

static void unknown_words_without_a_neighbour_are_told_all_known(void **state)
{
    (void)state;
    const char *const known[] = {"train", "eval"};
    assert_fails(cli_unknown("verb", "trian", known, 2), PH_ERROR_USAGE,
        "unknown verb 'trian'; did you mean 'train'?");
    assert_fails(cli_unknown("verb", "xylophone", known, 2), PH_ERROR_USAGE,
        "unknown verb 'xylophone'; known: train, eval");
}

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
        cmocka_unit_test(flags_take_values_behind_them_or_after_an_equals_sign),
        cmocka_unit_test(two_dashes_end_the_flags),
        cmocka_unit_test(one_dash_is_a_positional_argument),
        cmocka_unit_test(wrong_use_is_refused_by_name),
        cmocka_unit_test(empty_arguments_are_refused),
        cmocka_unit_test(unknown_words_without_a_neighbour_are_told_all_known),
        cmocka_unit_test(a_number_is_how_many),
        cmocka_unit_test(lists_and_ranges_are_which),
        cmocka_unit_test(what_is_no_list_of_seeds_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
