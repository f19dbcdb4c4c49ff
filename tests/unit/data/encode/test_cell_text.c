/* Ids, and times against a calendar that counts day by day. */
#include <stdio.h>
#include <string.h>

#include "data/encode/cell_text.h"
#include "support/test_support.h"

/* ---- ids ---- */

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
        cmocka_unit_test(ids_are_plain_digits),
        cmocka_unit_test(every_day_of_three_centuries_has_its_weekday),
        cmocka_unit_test(a_time_is_written_in_one_of_these_shapes),
        cmocka_unit_test(a_date_has_a_weekday_and_no_hour),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(other_numbers_are_no_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
