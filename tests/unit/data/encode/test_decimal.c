#include "data/encode/decimal.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "support/test_support.h"

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
    struct ph_rng_sequence random = {.key.seed = test_seed()};
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
    struct ph_rng_sequence random = {.key.seed = test_seed()};
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
    struct ph_rng_sequence random = {.key.seed = test_seed()};
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
