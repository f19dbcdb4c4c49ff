/* Decimal numbers against the C library, times against a calendar that counts day by day. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/encode/cell_text.h"
#include "support/test_support.h"

/* ---- decimal numbers ---- */

static double parse(const char *text)
{
    double number = (double)NAN;
    if (!ph__decimal_parse(text, strlen(text), &number))
        fail_msg("'%s' was refused", text);
    return number;
}

static bool is_refused(const char *text)
{
    double number = 12345;
    bool is_number = ph__decimal_parse(text, strlen(text), &number);
    assert_true(is_number || number == 12345); /* outputs are written only on success */
    return !is_number;
}

static void decimals_with_sign_point_and_exponent_are_read(void **state)
{
    (void)state;
    assert_true(parse("0") == 0);
    assert_true(parse("-3") == -3);
    assert_true(parse("+17") == 17);
    assert_true(parse("0.125") == 0.125);
    assert_true(parse(".5") == 0.5);
    assert_true(parse("5.") == 5);
    assert_true(parse("1e3") == 1000);
    assert_true(parse("2.5E-1") == 0.25);
    assert_true(parse("000000000000000000000000007") == 7);
    assert_true(parse("0.0000000000000000000000000000000001e34") == 1);
    assert_true(signbit(parse("-0")) != 0);
}

static void anything_else_is_refused(void **state)
{
    (void)state;
    const char *const words[] = {"", "-", "+", ".", "e5", "1e", "1e+", "1x", " 1", "1 ", "1,5", "0x10", "nan",
        "inf", "-inf", "1e999", "1e99999999999999999999", "--1", "1.2.3", "1e5.0", "\xff"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!is_refused(words[i]))
            fail_msg("'%s' was read as a number", words[i]);
}

static void random_decimals_are_what_the_c_library_reads(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    for (int i = 0; i < 20000; i++) {
        char text[64];
        int num_digits = (int)ph__rng_below(&random, 21);
        double value =
            (ph__rng_next_uniform(&random) - 0.5) * pow(10, (double)ph__rng_below(&random, 60) - 30);
        snprintf(text, sizeof text, i % 2 == 0 ? "%.*e" : "%.*g", num_digits, value);
        assert_near(parse(text), strtod(text, NULL), 0, 2 * DBL_EPSILON);
    }
}

static void short_decimals_are_exact(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    for (int i = 0; i < 20000; i++) {
        char text[64];
        snprintf(text, sizeof text, "%.*f", (int)ph__rng_below(&random, 7),
            (ph__rng_next_uniform(&random) - 0.5) * 2e6);
        assert_true(parse(text) == strtod(text, NULL));
    }
}

/* As casts round them, whatever the number of digits. */
static void integers_are_rounded_once(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    const uint64_t ends[] = {4611686293305295361, INT64_MAX, 9999999999999999999u, 18446744073709551609u,
        18446744073709551610u, UINT64_MAX};
    for (int i = 0; i < 20000; i++) {
        char text[64];
        uint64_t number = ph__rng_below(&random, UINT64_MAX) >> ph__rng_below(&random, 20);
        if (i < 6)
            number = ends[i];
        snprintf(text, sizeof text, "%" PRIu64, number);
        assert_true(parse(text) == (double)number);
    }
}

static void huge_and_tiny_magnitudes_neither_overflow_nor_trap(void **state)
{
    (void)state;
    assert_near(parse("1.7976931348623157e308"), DBL_MAX, 0, 1e-15);
    assert_true(parse("1e-999") == 0);
    assert_true(parse("0e999999") == 0);
    assert_true(is_refused("123456789012345678901234567890e300"));
}

static void ids_are_plain_digits(void **state)
{
    (void)state;
    uint64_t id = 0;
    assert_true(ph__decimal_parse_id("0", 1, &id) && id == 0);
    assert_true(ph__decimal_parse_id("999999999999999999", 18, &id) && id == 999999999999999999u);
    assert_false(ph__decimal_parse_id("1000000000000000000", 19, &id));
    assert_false(ph__decimal_parse_id("", 0, &id));
    assert_false(ph__decimal_parse_id("-1", 2, &id));
    assert_false(ph__decimal_parse_id("1.0", 3, &id));
    assert_true(id == 999999999999999999u);
}

/* ---- times ---- */

static int part_of(enum ph__time_component part, const char *text)
{
    return ph__time_component(part, text, strlen(text));
}

static int month_length(int year, int month)
{
    if (month == 2)
        return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

/* 1 January 1900 was a Monday. */
static void every_day_of_three_centuries_has_its_weekday(void **state)
{
    (void)state;
    int weekday = 0;
    for (int year = 1900; year < 2200; year++)
        for (int month = 1; month <= 12; month++)
            for (int day = 1; day <= month_length(year, month); day++) {
                char text[64];
                snprintf(text, sizeof text, "%04d-%02d-%02d 07:30:00", year, month, day);
                assert_int_equal(part_of(PH_TIME_WEEKDAY, text), weekday);
                assert_int_equal(part_of(PH_TIME_WEEKEND, text), weekday >= 5);
                assert_int_equal(part_of(PH_TIME_HOUR, text), 7);
                if (year >= 2000 && year < 2100) {
                    snprintf(text, sizeof text, "%02d%02d%02d%02d", year % 100, month, day, 23);
                    assert_int_equal(part_of(PH_TIME_WEEKDAY, text), weekday);
                    assert_int_equal(part_of(PH_TIME_HOUR, text), 23);
                }
                weekday = (weekday + 1) % 7;
            }
}

static void a_time_is_written_in_one_of_these_shapes(void **state)
{
    (void)state;
    static const char *const texts[] = {"14102105", "2014-10-21 05", "2014-10-21T05", "2014-10-21 05:59",
        "2014-10-21 05:59:60", "2014-10-21T05:59:59.1", "2014-10-21 05:30:00.123456789",
        "2014-10-21T05:59:59.123Z", "2014-10-21T05:59:59Z"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(part_of(PH_TIME_HOUR, texts[i]), 5);
        assert_int_equal(part_of(PH_TIME_WEEKDAY, texts[i]), 1); /* a Tuesday */
        assert_int_equal(part_of(PH_TIME_WEEKEND, texts[i]), 0);
    }
}

/* Not the hour 21 of 10 April 2020, which its digits could be. */
static void a_date_has_a_weekday_and_no_hour(void **state)
{
    (void)state;
    assert_int_equal(part_of(PH_TIME_WEEKDAY, "2020-04-10"), 4); /* a Friday */
    assert_int_equal(part_of(PH_TIME_WEEKEND, "2020-04-10"), 0);
    assert_int_equal(part_of(PH_TIME_HOUR, "2020-04-10"), -1);
    assert_int_equal(part_of(PH_TIME_WEEKDAY, "2020-13-10"), -1);
}

static void what_is_no_time_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "yesterday", "141021", "1410210", "141021055", "14132105",
        "14100005", "14103205", "14023005", "14102124", "1900-02-29 00", "2100-02-29 00", "-14102105x",
        "2014-10-21 05:30:00 +0200", "123456789012345678901", "-14102105", "0000-01-01", "2014-10-21 24",
        "2014-10-21 05:60", "2014-10-21 05:59:61", "2014-10-21Z", "2014-10-21 05:30:00.", "2014-10-21 05.5",
        "2014-10-21 05:30:00.1x", "2014-10-21 05:", "2014-10-21 05:3", "2014-10-21 ", "2014-10-21  05",
        "2014-10-21t05", "2014-10-21\t05", "20141021 05"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(part_of(PH_TIME_WEEKDAY, texts[i]), -1);
    assert_int_equal(part_of(PH_TIME_WEEKDAY, "2000-02-29 00"), 1);
}

/* Their digits would be a time if what stands between them did not count. */
static void other_numbers_are_no_times(void **state)
{
    (void)state;
    static const char *const texts[] = {"2014-1-2 10:10:30", "2014-10-21 1:30", "1412010203",
        "1.4.1.0.2.1.0.5", "2014/10/21 05:00", "2014102105", "20141021050000", "20 04 10 21", "2020-0410",
        "2020.04.10", "14-10-21 05"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (int part = PH_TIME_HOUR; part <= PH_TIME_WEEKEND; part++)
            assert_int_equal(part_of((enum ph__time_component)part, texts[i]), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decimals_with_sign_point_and_exponent_are_read),
        cmocka_unit_test(anything_else_is_refused),
        cmocka_unit_test(random_decimals_are_what_the_c_library_reads),
        cmocka_unit_test(short_decimals_are_exact),
        cmocka_unit_test(integers_are_rounded_once),
        cmocka_unit_test(huge_and_tiny_magnitudes_neither_overflow_nor_trap),
        cmocka_unit_test(ids_are_plain_digits),
        cmocka_unit_test(every_day_of_three_centuries_has_its_weekday),
        cmocka_unit_test(a_time_is_written_in_one_of_these_shapes),
        cmocka_unit_test(a_date_has_a_weekday_and_no_hour),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(other_numbers_are_no_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
