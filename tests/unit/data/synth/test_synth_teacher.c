#include "data/synth/synth_teacher.h"

#include <math.h>
#include <stdlib.h>

#include "support/test_support.h"

#define NUM_DRAWS 400000

/* Chi-squared of draws against P(k) ~ k^-s, in standard deviations above what chance gives. */
static double excess(double exponent, size_t num_items)
{
    struct ph__zipf zipf;
    ph__zipf_init(&zipf, exponent, num_items);
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    double *counts = calloc(num_items + 1, sizeof *counts);
    for (size_t i = 0; i < NUM_DRAWS; i++) {
        uint64_t item = ph__zipf_draw(&zipf, &random);
        assert_in_range(item, 1, num_items);
        counts[item]++;
    }
    double total = 0, chi_squared = 0;
    for (size_t k = 1; k <= num_items; k++)
        total += pow((double)k, -exponent);
    for (size_t k = 1; k <= num_items; k++) {
        double expected = NUM_DRAWS * pow((double)k, -exponent) / total;
        chi_squared += (counts[k] - expected) * (counts[k] - expected) / expected;
    }
    free(counts);
    double freedom = (double)num_items - 1;
    return (chi_squared - freedom) / sqrt(2 * freedom);
}

static void ranks_follow_the_power_law(void **state)
{
    (void)state;
    const double exponents[] = {0, 0.5, 0.999999, 1, 1.05, 1.5, 2};
    for (size_t i = 0; i < sizeof exponents / sizeof exponents[0]; i++)
        assert_true(excess(exponents[i], 100) < 5);
}

static void small_tables_follow_it_too(void **state)
{
    (void)state;
    for (size_t num_items = 2; num_items < 6; num_items++)
        assert_true(excess(1.05, num_items) < 6);
}

static void one_rank_is_always_drawn(void **state)
{
    (void)state;
    struct ph__zipf zipf;
    ph__zipf_init(&zipf, 1.05, 1);
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    for (int i = 0; i < 1000; i++)
        assert_int_equal(ph__zipf_draw(&zipf, &random), 1);
}

static void huge_tables_stay_in_range_and_keep_the_head(void **state)
{
    (void)state;
    struct ph__zipf zipf;
    ph__zipf_init(&zipf, 1.2, 4000000000u);
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    size_t num_first = 0;
    for (int i = 0; i < 100000; i++) {
        uint64_t item = ph__zipf_draw(&zipf, &random);
        assert_in_range(item, 1, 4000000000u);
        num_first += item == 1;
    }
    assert_near((double)num_first / 100000, 1 / (5.591582 - 5 * pow(4e9, -0.2)), 0.005,
        0); /* zeta(1.2) less the tail */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_follow_the_power_law),
        cmocka_unit_test(small_tables_follow_it_too),
        cmocka_unit_test(one_rank_is_always_drawn),
        cmocka_unit_test(huge_tables_stay_in_range_and_keep_the_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
