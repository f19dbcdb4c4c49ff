/* Numbers of eight bits against the list of all of them. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "support/test_support.h"
#include "tensor/float8.h"

static const struct ph__float8_format *const formats[] = {&ph__e4m3, &ph__e5m2};

/* Returns the code whose number is nearest, the even one of two, by trying all of one sign. */
static uint8_t nearest(const struct ph__float8_format *format, float x)
{
    uint8_t best = 0;
    double least = INFINITY;
    for (int code = 0; code < 0x80; code++) {
        const float number = ph__float_from_float8(format, (uint8_t)code);
        const double distance = fabs(fabs((double)x) - (double)number);
        if (!isfinite(number) || distance > least || (distance == least && code % 2 == 1))
            continue;
        least = distance;
        best = (uint8_t)code;
    }
    return (uint8_t)(best | (signbit(x) ? 0x80 : 0));
}

static void formats_have_the_numbers_of_their_standard(void **state)
{
    (void)state;
    const float e4m3[] = {ldexpf(1, -9), ldexpf(7, -9), ldexpf(1, -6), 1, 1.125f, 240, 448};
    const uint8_t e4m3_codes[] = {0x01, 0x07, 0x08, 0x38, 0x39, 0x77, 0x7e};
    const float e5m2[] = {ldexpf(1, -16), ldexpf(3, -16), ldexpf(1, -14), 1, 1.25f, 57344};
    const uint8_t e5m2_codes[] = {0x01, 0x03, 0x04, 0x3c, 0x3d, 0x7b};
    for (size_t i = 0; i < sizeof e4m3_codes; i++) {
        assert_true(ph__float_from_float8(&ph__e4m3, e4m3_codes[i]) == e4m3[i]);
        assert_true(ph__float_from_float8(&ph__e4m3, e4m3_codes[i] | 0x80) == -e4m3[i]);
    }
    for (size_t i = 0; i < sizeof e5m2_codes; i++)
        assert_true(ph__float_from_float8(&ph__e5m2, e5m2_codes[i]) == e5m2[i]);
    assert_true(
        isnan(ph__float_from_float8(&ph__e4m3, 0x7f)) && isnan(ph__float_from_float8(&ph__e5m2, 0x7d)));
    assert_true(isinf(ph__float_from_float8(&ph__e5m2, 0x7c)));
}

static void all_codes_come_back(void **state)
{
    (void)state;
    for (size_t f = 0; f < 2; f++)
        for (int code = 0; code < 0x100; code++) {
            const float number = ph__float_from_float8(formats[f], (uint8_t)code);
            if (isfinite(number))
                assert_int_equal(ph__float8_from_float(formats[f], number), code);
        }
}

static void numbers_are_rounded_to_the_nearest_and_saturate(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    for (size_t f = 0; f < 2; f++) {
        for (size_t i = 0; i < 20000; i++) {
            const double scale = exp2((double)ph__rng_below(&random, 40) - 22);
            const float x = (float)(ph__rng_next_normal(&random) * scale);
            assert_int_equal(ph__float8_from_float(formats[f], x), nearest(formats[f], x));
        }
        for (int code = 0; code < 0x77; code++) { /* ties, and the numbers beside them */
            const float low = ph__float_from_float8(formats[f], (uint8_t)code),
                        high = ph__float_from_float8(formats[f], (uint8_t)(code + 1)),
                        middle = (low + high) / 2;
            assert_int_equal(ph__float8_from_float(formats[f], middle), code + code % 2);
            assert_int_equal(ph__float8_from_float(formats[f], nextafterf(middle, low)), code);
            assert_int_equal(ph__float8_from_float(formats[f], nextafterf(middle, high)), code + 1);
        }
        assert_true(ph__float8_round(formats[f], INFINITY) == formats[f]->largest);
        assert_true(ph__float8_round(formats[f], -1e30f) == -formats[f]->largest);
        assert_true(isnan(ph__float8_round(formats[f], NAN)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_have_the_numbers_of_their_standard),
        cmocka_unit_test(all_codes_come_back),
        cmocka_unit_test(numbers_are_rounded_to_the_nearest_and_saturate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
