/* Against a calendar that counts day by day, and the C library's. */
#include "base/text/date.h"

#include <stdio.h>
#include <time.h>

#include "base/rng.h"
#include "support/test_support.h"

static int month_length(int year, int month)
{
    if (month == 2)
        return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

static void dates_are_written_day_by_day(void **state)
{
    (void)state;
    char wanted[64], text[PH_DATE_BYTES];
    int64_t day = -719162; /* 1 January of year 1 */
    assert_false(ph__date_write(day - 1, text));
    for (int year = 1; year < 10000; year++)
        for (int month = 1; month <= 12; month++)
            for (int in_month = 1; in_month <= month_length(year, month); in_month++, day++) {
                if (year % 97 != 0 && in_month > 1 && in_month < 28)
                    continue;
                snprintf(wanted, sizeof wanted, "%04d-%02d-%02d", year, month, in_month);
                assert_true(ph__date_write(day, text));
                assert_string_equal(text, wanted);
            }
    assert_false(ph__date_write(day, text));
    assert_false(ph__date_write(INT64_MAX, text));
    assert_false(ph__date_write(INT64_MIN, text));
    assert_true(ph__date_write(0, text));
    assert_string_equal(text, "1970-01-01");
}

static void months_have_their_lengths(void **state)
{
    (void)state;
    for (int year = 1; year < 3000; year++)
        for (int month = 1; month <= 12; month++) {
            assert_int_equal(ph__date_month_length(year, month), month_length(year, month));
            assert_int_equal(ph__date_days(year, month, month_length(year, month) + 1),
                ph__date_days(year + month / 12, month % 12 + 1, 1));
        }
    assert_int_equal(ph__date_days(0, 3, 1), 0);
}

static void moments_are_written_as_by_the_c_library(void **state)
{
    (void)state;
    const uint64_t end = 253402300800000; /* of the year 9999, by date -u -d 10000-01-01 +%s */
    struct ph_rng_sequence random = {.key = {.seed = test_seed()}};
    for (int i = 0; i < 10000; i++) {
        const uint64_t moment = ph__rng_below(&random, end);
        const time_t second = (time_t)(moment / 1000);
        struct tm utc;
        char wanted[64], text[PH_UTC_BYTES];
        assert_non_null(gmtime_r(&second, &utc));
        const size_t length = strftime(wanted, sizeof wanted, "%Y-%m-%dT%H:%M:%S", &utc);
        snprintf(wanted + length, sizeof wanted - length, ".%03uZ", (unsigned)(moment % 1000));
        assert_true(ph__utc_write(moment, text));
        assert_string_equal(text, wanted);
    }
    char text[PH_UTC_BYTES];
    assert_true(ph__utc_write(0, text));
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
    assert_true(ph__utc_write(end - 1, text));
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
    assert_false(ph__utc_write(end, text));
    assert_false(ph__utc_write(UINT64_MAX, text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_are_written_day_by_day),
        cmocka_unit_test(months_have_their_lengths),
        cmocka_unit_test(moments_are_written_as_by_the_c_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
