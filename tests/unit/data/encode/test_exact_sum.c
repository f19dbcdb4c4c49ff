/* Against sums that are known exactly: in whole numbers of 128 bits, in scaled units, and by cancelling. */
#include "data/encode/exact_sum.h"

#include <float.h>
#include <math.h>

#include "base/rng.h"
#include "support/test_support.h"

__extension__ typedef __int128 wide;

/* A float that is a multiple of 2^-13 below 2^10, so that its square is one of 2^-26 below 2^20. */
static float draw(struct ph_rng_sequence *random)
{
    int64_t units = (int64_t)(ph__rng_next(random) & 0xffffff) - 0x800000;
    return ldexpf((float)units, -13);
}

static void sums_are_exact(void **state)
{
    (void)state;
    struct ph_rng_sequence random = {.key.seed = test_seed()};
    struct ph__exact_sum sum = {.num_additions = 0}, squares = {.num_additions = 0};
    wide units = 0, square_units = 0;
    for (int i = 0; i < 200000; i++) {
        float number = draw(&random);
        int64_t unit = (int64_t)ldexpf(number, 13);
        units += unit;
        square_units += (wide)unit * unit;
        ph__exact_sum_add(&sum, number);
        ph__exact_sum_add_square(&squares, number);
    }
    assert_true(ph__exact_sum_value(&sum) == ldexpl((long double)(int64_t)units, -13));
    assert_true(square_units < (wide)INT64_MAX); /* so that the cast below is exact */
    assert_true(ph__exact_sum_value(&squares) == ldexpl((long double)(int64_t)square_units, -26));
}

static void what_would_be_rounded_away_is_kept(void **state)
{
    (void)state;
    struct ph__exact_sum sum = {.num_additions = 0};
    ph__exact_sum_add(&sum, FLT_MAX);
    ph__exact_sum_add(&sum, ldexpf(1, -149));
    ph__exact_sum_add(&sum, 1);
    ph__exact_sum_add(&sum, -FLT_MAX);
    ph__exact_sum_add(&sum, -1);
    assert_true(ph__exact_sum_value(&sum) == ldexpl(1, -149));
    ph__exact_sum_add(&sum, -ldexpf(1, -149));
    assert_true(ph__exact_sum_value(&sum) == 0);
}

static void the_least_and_the_largest_square_fit(void **state)
{
    (void)state;
    struct ph__exact_sum sum = {.num_additions = 0};
    ph__exact_sum_add_square(&sum, ldexpf(1, -149));
    assert_true(ph__exact_sum_value(&sum) == ldexpl(1, -298));
    for (int i = 0; i < 3; i++)
        ph__exact_sum_add_square(&sum, -FLT_MAX);
    long double largest = (long double)FLT_MAX;
    assert_true(fabsl(ph__exact_sum_value(&sum) / (3 * largest * largest) - 1) < 4 * LDBL_EPSILON);
}

static void only_what_can_be_a_sum_is_sound(void **state)
{
    (void)state;
    struct ph__exact_sum sum = {.num_additions = 0}, squares = sum;
    for (int i = 0; i < 1000; i++) {
        assert_true(ph__exact_sum_is_sound(&sum) && ph__exact_sum_is_sound(&squares));
        ph__exact_sum_add(&sum, -FLT_MAX);
        ph__exact_sum_add_square(&squares, -FLT_MAX);
    }
    ph__exact_sum_merge(&sum, &squares);
    assert_true(ph__exact_sum_is_sound(&sum));
    const struct ph__exact_sum sound = sum;
    for (size_t i = 0; i < PH_EXACT_SUM_DIGITS; i++) {
        sum.digits[i] = INT64_MAX;
        assert_false(ph__exact_sum_is_sound(&sum));
        sum.digits[i] = INT64_MIN;
        assert_false(ph__exact_sum_is_sound(&sum));
        sum = sound;
    }
    sum.num_additions = UINT32_MAX;
    assert_false(ph__exact_sum_is_sound(&sum));
}

static void zeros_of_both_signs_add_nothing(void **state)
{
    (void)state;
    struct ph__exact_sum sum = {.num_additions = 0};
    ph__exact_sum_add(&sum, 0.0f);
    ph__exact_sum_add(&sum, -0.0f);
    ph__exact_sum_add_square(&sum, 0.0f);
    assert_true(ph__exact_sum_value(&sum) == 0);
}

/* Random floats of all magnitudes, in one sum, in another order, and in parts that are merged. */
static void neither_order_nor_grouping_matters(void **state)
{
    (void)state;
    struct ph_rng_sequence random = {.key.seed = test_seed(), .key.step = 1};
    static float numbers[5000];
    struct ph__exact_sum forward = {.num_additions = 0}, backward = forward, merged = forward;
    for (size_t i = 0; i < 5000; i++) {
        int exponent = (int)(ph__rng_next(&random) % 250) - 125;
        numbers[i] = ldexpf(draw(&random), exponent - 11);
        ph__exact_sum_add(&forward, numbers[i]);
        ph__exact_sum_add_square(&forward, numbers[i]);
    }
    for (size_t i = 5000; i-- > 0;) {
        ph__exact_sum_add(&backward, numbers[i]);
        ph__exact_sum_add_square(&backward, numbers[i]);
    }
    for (size_t part = 0; part < 5000; part += 1000) {
        struct ph__exact_sum sum = {.num_additions = 0};
        for (size_t i = part; i < part + 1000; i++) {
            ph__exact_sum_add(&sum, numbers[i]);
            ph__exact_sum_add_square(&sum, numbers[i]);
        }
        ph__exact_sum_merge(&merged, &sum);
    }
    assert_true(ph__exact_sum_value(&forward) == ph__exact_sum_value(&backward));
    assert_true(ph__exact_sum_value(&forward) == ph__exact_sum_value(&merged));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact),
        cmocka_unit_test(what_would_be_rounded_away_is_kept),
        cmocka_unit_test(the_least_and_the_largest_square_fit),
        cmocka_unit_test(only_what_can_be_a_sum_is_sound),
        cmocka_unit_test(zeros_of_both_signs_add_nothing),
        cmocka_unit_test(neither_order_nor_grouping_matters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
