#include <float.h>
#include <math.h>

#include "base/format/ticks.h"
#include "support/test_support.h"

static void ticks_are_round_and_in_range(void **state)
{
    (void)state;
    struct ph__ticks ticks;
    ph__ticks(0.13, 0.92, 5, &ticks);
    assert_int_equal(ticks.count, 4);
    assert_near(ticks.at[0], 0.2, 1e-12, 0);
    assert_string_equal(ticks.text[0], "0.2");
    assert_string_equal(ticks.text[3], "0.8");
    ph__ticks(-1, 1, 4, &ticks);
    assert_int_equal(ticks.count, 5);
    assert_string_equal(ticks.text[0], "-1.0");
    assert_string_equal(ticks.text[2], "0");
}

/* Whatever the range: a few ticks, ascending, inside, and no two with one text. */
static void any_range_has_a_few_ticks_that_differ(void **state)
{
    (void)state;
    static const double lows[] = {0, -3, 1e-9, 0.7031, -1e12, 123456789, 1e300};
    static const double widths[] = {1e-3, 1, 0.02, 77, 3e9, 1e301};
    for (size_t i = 0; i < sizeof lows / sizeof *lows; i++)
        for (size_t k = 0; k < sizeof widths / sizeof *widths; k++) {
            double low = lows[i], high = low + widths[k];
            if (!(high > low) || widths[k] < 1e-6 * fabs(low))
                continue;
            struct ph__ticks ticks;
            ph__ticks(low, high, 5, &ticks);
            assert_in_range(ticks.count, 2, PH_MAX_TICKS);
            for (size_t t = 0; t < ticks.count; t++) {
                assert_true(ticks.at[t] >= low - 1e-6 * widths[k] && ticks.at[t] <= high + 1e-6 * widths[k]);
                if (t > 0) {
                    assert_true(ticks.at[t] > ticks.at[t - 1]);
                    assert_string_not_equal(ticks.text[t], ticks.text[t - 1]);
                }
            }
        }
}

static void thousands_have_letters(void **state)
{
    (void)state;
    struct ph__ticks ticks;
    ph__ticks(0, 50000, 5, &ticks);
    assert_string_equal(ticks.text[1], "10k");
    ph__ticks(0, 3e6, 3, &ticks);
    assert_string_equal(ticks.text[1], "1M");
    ph__ticks(0, 2000, 4, &ticks);
    assert_string_equal(ticks.text[1], "500");
}

static void no_range_has_no_ticks(void **state)
{
    (void)state;
    static const double ranges[][2] = {
        {1, 1}, {2, 1}, {(double)NAN, 1}, {0, (double)INFINITY}, {-DBL_MAX, DBL_MAX}};
    struct ph__ticks ticks;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        ph__ticks(ranges[i][0], ranges[i][1], 5, &ticks);
        assert_int_equal(ticks.count, 0);
        ph__ticks_log(ranges[i][0], ranges[i][1], 5, &ticks);
        assert_int_equal(ticks.count, 0);
    }
    ph__ticks_log(0, 10, 5, &ticks);
    assert_int_equal(ticks.count, 0);
}

static void a_logarithmic_axis_has_powers_of_ten(void **state)
{
    (void)state;
    struct ph__ticks ticks;
    ph__ticks_log(0.5, 2000, 5, &ticks);
    assert_int_equal(ticks.count, 4);
    assert_string_equal(ticks.text[0], "1");
    assert_string_equal(ticks.text[3], "1000");
    ph__ticks_log(1e-12, 1e12, 5, &ticks);
    assert_in_range(ticks.count, 3, 6);
}

static void a_range_is_widened_to_one_that_can_be_drawn(void **state)
{
    (void)state;
    static const double ranges[][2] = {{1, 1}, {0, 0}, {2, 3}, {(double)NAN, 1},
        {(double)INFINITY, -(double)INFINITY}, {-DBL_MAX, DBL_MAX}, {-5, -5}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        double low = ranges[i][0], high = ranges[i][1];
        ph__ticks_widen(&low, &high);
        assert_true(isfinite(low) && isfinite(high) && high > low);
        if (i < 3)
            assert_true(low < ranges[i][0] && high > ranges[i][1]);
    }
}

static void quantities_read_well(void **state)
{
    (void)state;
    static const struct {
        double number;
        const char *text;
    } cases[] = {{0, "0"}, {0.12346, "0.1235"}, {1234, "1234"}, {9999, "9999"}, {12345, "12.35k"},
        {-5e6, "-5M"}, {999999, "1M"}, {(double)NAN, "–"}, {2.5e19, "25E"}};
    char text[PH_TICK_TEXT_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(ph__quantity_text(cases[i].number, text), cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_round_and_in_range),
        cmocka_unit_test(any_range_has_a_few_ticks_that_differ),
        cmocka_unit_test(thousands_have_letters),
        cmocka_unit_test(no_range_has_no_ticks),
        cmocka_unit_test(a_logarithmic_axis_has_powers_of_ten),
        cmocka_unit_test(a_range_is_widened_to_one_that_can_be_drawn),
        cmocka_unit_test(quantities_read_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
