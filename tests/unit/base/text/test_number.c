#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "base/text/number.h"
#include "support/test_support.h"

static void numbers_of_the_grammar_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double number;
    } cases[] = {{"0", 0}, {"-1", -1}, {"+2", 2}, {"1e-3", 1e-3}, {"1E+3", 1000}, {".5", .5}, {"5.", 5},
        {"-0.25e1", -2.5}, {"1e-400", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double number = 99;
        assert_true(ph__number_parse(cases[i].text, &number));
        assert_true(number == cases[i].number);
    }
}

static void anything_else_is_no_number(void **state)
{
    (void)state;
    static const char *const texts[] = {"", " 1", "1 ", "1_000", "0x10", "inf", "nan", "1e", "e5", ".", "-",
        "1.2.3", "1e5.0", "1,5", "1e400", "--1", "12a"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        double number = 99;
        assert_false(ph__number_parse(texts[i], &number));
        assert_true(number == 99);
    }
}

static void integers_are_digits_only(void **state)
{
    (void)state;
    static const char *const refused[] = {"", "1e3", "1.0", " 1", "0x1", "1_0", "-", "9223372036854775808"};
    int64_t integer = 0;
    assert_true(ph__integer_parse("9223372036854775807", &integer));
    assert_true(integer == INT64_MAX);
    assert_true(ph__integer_parse("-12", &integer));
    assert_int_equal(integer, -12);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_false(ph__integer_parse(refused[i], &integer));
}

static void the_shortest_text_reads_back_as_the_number(void **state)
{
    (void)state;
    static const struct {
        double number;
        const char *text;
    } cases[] = {{.1, "0.1"}, {100, "100"}, {1e6, "1000000"}, {-3, "-3"}, {1e-8, "1e-08"}, {1e300, "1e+300"},
        {1.0 / 3, "0.3333333333333333"}, {0.999999, "0.999999"}};
    char text[PH_NUMBER_TEXT_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(ph__number_format(cases[i].number, text), cases[i].text);
    static const double others[] = {DBL_MAX, DBL_MIN, 5e-324, 0.1 + 0.2, 1.2345678901234568e17};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_true(strtod(ph__number_format(others[i], text), NULL) == others[i]);
}

static void bytes_are_written_in_binary_units(void **state)
{
    (void)state;
    char text[32];
    assert_string_equal(ph__bytes_text(0, text), "0 B");
    assert_string_equal(ph__bytes_text(1023, text), "1023 B");
    assert_string_equal(ph__bytes_text(1536, text), "1.5 KiB");
    assert_string_equal(ph__bytes_text(3ull << 30, text), "3.0 GiB");
    assert_string_equal(ph__bytes_text(UINT64_MAX, text), "16.0 EiB");
}

/* Against a calendar that counts day by day, and the C library's. */

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
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
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

static void integers_are_written_as_printf_writes_them(void **state)
{
    (void)state;
    char text[PH_INTEGER_TEXT_BYTES], wanted[32];
    for (uint64_t number = 1, i = 0; i < 70; i++, number = number * 7 + i) {
        const int64_t integers[] = {
            (int64_t)number, -(int64_t)(number >> 1), INT64_MIN + (int64_t)i, (int64_t)i};
        for (size_t k = 0; k < sizeof integers / sizeof *integers; k++) {
            snprintf(wanted, sizeof wanted, "%lld", (long long)integers[k]);
            assert_int_equal(ph__integer_write(integers[k], text), strlen(wanted));
            assert_string_equal(text, wanted);
        }
        snprintf(wanted, sizeof wanted, "%llu", (unsigned long long)(UINT64_MAX - number));
        assert_int_equal(ph__unsigned_write(UINT64_MAX - number, text), strlen(wanted));
        assert_string_equal(text, wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_the_grammar_are_parsed),
        cmocka_unit_test(anything_else_is_no_number),
        cmocka_unit_test(integers_are_digits_only),
        cmocka_unit_test(integers_are_written_as_printf_writes_them),
        cmocka_unit_test(the_shortest_text_reads_back_as_the_number),
        cmocka_unit_test(bytes_are_written_in_binary_units),
        cmocka_unit_test(dates_are_written_day_by_day),
        cmocka_unit_test(months_have_their_lengths),
        cmocka_unit_test(moments_are_written_as_by_the_c_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
