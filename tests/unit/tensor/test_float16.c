/* What is rounded by chance, against the definition in double: the two neighbours, and the mean over all
 * random words. */
#include "tensor/float16.h"

#include "base/rng.h"
#include "support/test_support.h"

enum { WORDS = 65536 };

/* One of the two 16-bit floats: its bits of a number, and its least unit. */
struct kind {
    uint16_t (*by_chance)(float x, uint32_t random);
    float (*to_float)(uint16_t word);
    int bits;
    double least_unit;
};

static const struct kind kinds[] = {
    {ph__half_by_chance, ph__float_from_half, 11, 0x1p-24},
    {ph__bfloat_by_chance, ph__float_from_bfloat, 8, 0x1p-133},
};

static double unit_of(const struct kind *kind, double number)
{
    int exponent;
    frexp(number, &exponent);
    return fmax(ldexp(1, exponent - kind->bits), kind->least_unit);
}

/* All 2^16 random words give one of the neighbours, and on average the number itself, as far as 2^-16 of a
 * unit goes. */
static void check_number(const struct kind *kind, float number)
{
    const double unit = unit_of(kind, (double)number);
    const double magnitude = fabs((double)number), below = floor(magnitude / unit) * unit;
    double sum = 0;
    for (uint32_t random = 0; random < WORDS; random++) {
        const double rounded = (double)kind->to_float(kind->by_chance(number, random));
        assert_true(fabs(rounded) == below || fabs(rounded) == below + unit);
        assert_true(!!signbit(rounded) == !!signbit(number));
        sum += fabs(rounded) - below;
    }
    const double missing = magnitude - below - sum / WORDS;
    assert_true(missing >= 0 && missing < unit / WORDS);
}

static void the_mean_over_all_random_words_is_the_number(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    for (size_t k = 0; k < 2; k++)
        for (int i = 0; i < 60; i++) {
            const double number = ldexp(1 + ph__rng_next_uniform(&random), i % 45 - 31);
            check_number(&kinds[k], (float)(i % 2 == 0 ? number : -number));
        }
}

/* A bfloat cuts off no more than 16 bits, so that the mean is exact there. */
static void the_mean_of_bfloats_is_exact(void **state)
{
    (void)state;
    static const float numbers[] = {1.0F + 0x1p-23F, 3.14159274F, -1e-20F};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double sum = 0;
        for (uint32_t random = 0; random < WORDS; random++)
            sum += (double)ph__float_from_bfloat(ph__bfloat_by_chance(numbers[i], random));
        assert_true(sum / WORDS == (double)numbers[i]);
    }
}

static void what_fits_is_not_rounded(void **state)
{
    (void)state;
    for (uint32_t word = 0; word < WORDS; word += 7)
        for (uint32_t random = 0; random < WORDS; random += 4095) {
            const float half = ph__float_from_half((uint16_t)word);
            const float bfloat = ph__float_from_bfloat((uint16_t)word);
            if (!isnan(half))
                assert_int_equal(ph__half_by_chance(half, random), word);
            if (!isnan(bfloat))
                assert_int_equal(ph__bfloat_by_chance(bfloat, random), word);
        }
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void the_ends_of_the_range(void **state)
{
    (void)state;
    for (uint32_t random = 0; random < WORDS; random++) {
        assert_true(isnan(ph__float_from_half(ph__half_by_chance(NAN, random))));
        assert_true(isnan(ph__float_from_bfloat(ph__bfloat_by_chance(NAN, random))));
        assert_true(isnan(ph__float_from_bfloat(ph__bfloat_by_chance(float_of(0x7f800001), random))));
        assert_true(isnan(ph__float_from_bfloat(ph__bfloat_by_chance(float_of(0x7fffffff), random))));
        assert_int_equal(ph__half_by_chance(-INFINITY, random), 0xfc00);
        assert_int_equal(ph__half_by_chance(65536, random), 0x7c00);
        assert_int_equal(ph__half_by_chance(1e30F, random), 0x7c00);
        assert_int_equal(ph__bfloat_by_chance(INFINITY, random), 0x7f80);
    }
    assert_int_equal(ph__half_by_chance(65520, 0), 0x7bff); /* half way to 65536, which is infinity */
    assert_int_equal(ph__half_by_chance(65520, WORDS - 1), 0x7c00);
    assert_int_equal(ph__bfloat_by_chance(3.4e38F, 0), 0x7f7f);
    assert_int_equal(ph__bfloat_by_chance(3.4e38F, WORDS - 1), 0x7f80);
}

static void a_split_number_is_whole_and_its_high_word_the_nearest(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    for (size_t i = 0; i < 1000000; i++) {
        const float x = float_of((uint32_t)ph__rng_next(&random));
        uint16_t low;
        const uint16_t high = ph__split_float(x, &low);
        const float joined = ph__join_float(high, low);
        if (isnan(x)) {
            assert_true(isnan(joined) && isnan(ph__float_from_bfloat(high)));
            continue;
        }
        assert_int_equal(ph__float_bits(joined), ph__float_bits(x));
        const double distance = fabs((double)ph__float_from_bfloat(high) - (double)x);
        const double unit = unit_of(&kinds[1], (double)x);
        assert_true(distance <= unit / 2 || (isinf(distance) && fabs((double)x) >= 0x1.ffp127));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_over_all_random_words_is_the_number),
        cmocka_unit_test(the_mean_of_bfloats_is_exact),
        cmocka_unit_test(what_fits_is_not_rounded),
        cmocka_unit_test(the_ends_of_the_range),
        cmocka_unit_test(a_split_number_is_whole_and_its_high_word_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
