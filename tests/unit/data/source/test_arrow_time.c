/* Dates and timestamps as text, against the C library's calendar. */
#include "data/source/arrow_time.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "support/test_support.h"

static const char *text_of(const char *format, int64_t ticks)
{
    static char text[PH_ARROW_TIME_BYTES];
    const struct ph__arrow_clock clock = ph__arrow_clock_of(format);
    assert_true(clock.ticks_a_day > 0);
    const size_t length = ph__arrow_time_text(clock, ticks, text);
    assert_int_equal(length, length > 0 ? strlen(text) : 0);
    return length > 0 ? text : NULL;
}

static void times_are_those_of_the_c_library(void **state)
{
    (void)state;
    struct ph_rng_sequence random = {.key.seed = 5};
    for (int i = 0; i < 20000; i++) {
        const time_t seconds = (time_t)ph__rng_below(&random, 20000000000) - 10000000000; /* 1653 to 2286 */
        char wanted[64];
        struct tm parts;
        assert_non_null(gmtime_r(&seconds, &parts));
        assert_true(strftime(wanted, sizeof wanted, "%Y-%m-%d %H:%M:%S", &parts) > 0);
        assert_string_equal(text_of("tss:", seconds), wanted);
        assert_string_equal(text_of("tsm:UTC", (int64_t)seconds * 1000), wanted);
        assert_string_equal(text_of("tsu:Europe/Berlin", (int64_t)seconds * 1000000), wanted);
        wanted[10] = '\0';
        assert_string_equal(text_of("tdm", (int64_t)seconds * 1000), wanted);
    }
}

static void fractions_have_the_digits_of_their_unit(void **state)
{
    (void)state;
    assert_string_equal(text_of("tsm:", 1413869400007), "2014-10-21 05:30:00.007");
    assert_string_equal(text_of("tsu:", -1), "1969-12-31 23:59:59.999999");
    assert_string_equal(text_of("tsn:", INT64_MIN), "1677-09-21 00:12:43.145224192");
    assert_string_equal(text_of("tsn:", INT64_MAX), "2262-04-11 23:47:16.854775807");
    assert_string_equal(text_of("tdD", -1), "1969-12-31");
}

static void what_is_beyond_the_calendar_is_no_text(void **state)
{
    (void)state;
    assert_null(text_of("tss:", INT64_MAX));
    assert_null(text_of("tss:", INT64_MIN));
    assert_null(text_of("tdD", INT32_MAX));
    assert_null(text_of("tss:", -62135596801));
    assert_string_equal(text_of("tss:", -62135596800), "0001-01-01 00:00:00");
}

static void other_formats_have_no_clock(void **state)
{
    (void)state;
    static const char *const formats[] = {
        "", "t", "td", "tds", "tdDx", "tdmm", "tss", "tts", "ttu", "tDs", "tiM", "l"};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        assert_int_equal(ph__arrow_clock_of(formats[i]).ticks_a_day, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_those_of_the_c_library),
        cmocka_unit_test(fractions_have_the_digits_of_their_unit),
        cmocka_unit_test(what_is_beyond_the_calendar_is_no_text),
        cmocka_unit_test(other_formats_have_no_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
