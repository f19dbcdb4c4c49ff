#include <float.h>
#include <inttypes.h>
#include <math.h>
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

static void anything_else_is_no_decimal(void **state)
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

static void reals_are_written_with_a_point_and_read_back(void **state)
{
    (void)state;
    char text[PH_NUMBER_TEXT_BYTES];
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    assert_int_equal(ph__real_write(.1, 3, text), 3);
    assert_string_equal(text, "0.1");
    for (int i = 0; i < 20000; i++) {
        const float number =
            (float)((ph__rng_next_uniform(&random) - .5) * pow(10, (double)ph__rng_below(&random, 60) - 30));
        const size_t length = ph__real_write((double)number, PH_FLOAT_DIGITS, text);
        assert_true(length == strlen(text) && strtof(text, NULL) == number);
        double read;
        assert_true(ph__decimal_parse(text, length, &read) && (float)read == number);
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
        cmocka_unit_test(decimals_with_sign_point_and_exponent_are_read),
        cmocka_unit_test(anything_else_is_no_decimal),
        cmocka_unit_test(random_decimals_are_what_the_c_library_reads),
        cmocka_unit_test(short_decimals_are_exact),
        cmocka_unit_test(integers_are_rounded_once),
        cmocka_unit_test(huge_and_tiny_magnitudes_neither_overflow_nor_trap),
        cmocka_unit_test(reals_are_written_with_a_point_and_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
