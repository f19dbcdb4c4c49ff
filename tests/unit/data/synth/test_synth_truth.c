#include "data/synth/synth_truth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "support/test_support.h"

/* The definition: all pairs of different rows. */
static double quadratic_auc(const struct ph__mass *masses, size_t count)
{
    double wins = 0, pairs = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            double pair = i == j ? 0 : masses[i].positive * (1 - masses[j].positive);
            double difference = masses[i].probability - masses[j].probability;
            pairs += pair;
            wins += pair * (difference > 0 ? 1 : difference < 0 ? 0 : 0.5);
        }
    }
    return wins / pairs;
}

static void draw_masses(
    struct ph_rng_sequence *random, struct ph__mass *masses, size_t count, uint64_t num_values)
{
    for (size_t i = 0; i < count; i++) {
        masses[i].probability = (double)(1 + ph__rng_below(random, num_values)) / (double)(num_values + 1);
        masses[i].positive = (double)ph__rng_below(random, 2);
    }
}

static void auc_equals_counting_all_pairs_with_ties(void **state)
{
    (void)state;
    struct ph_rng_sequence random = {.key.seed = test_seed()};
    struct ph__mass masses[200];
    for (uint64_t num_values = 1; num_values < 300; num_values = num_values * 3 + 1) {
        draw_masses(&random, masses, 200, num_values);
        double expected = quadratic_auc(masses, 200);
        assert_true(ph__mass_auc(masses, 200) == expected);
    }
}

static void soft_auc_equals_counting_all_pairs(void **state)
{
    (void)state;
    struct ph_rng_sequence random = {.key.seed = test_seed()};
    struct ph__mass masses[150];
    draw_masses(&random, masses, 150, 20);
    for (size_t i = 0; i < 150; i++)
        masses[i].positive = ph__rng_next_uniform(&random);
    double expected = quadratic_auc(masses, 150);
    assert_near(ph__mass_auc(masses, 150), expected, 1e-12, 0);
}

static void auc_without_negatives_is_not_a_number(void **state)
{
    (void)state;
    struct ph__mass masses[] = {{0.5, 1}, {0.2, 1}};
    assert_true(isnan(ph__mass_auc(masses, 2)));
}

/* Labels drawn again and again from the same probabilities: the stated expectations are their mean. */
static void expectations_agree_with_a_monte_carlo_estimate(void **state)
{
    (void)state;
    enum { ROWS = 3000, TRIALS = 300 };
    struct ph_rng_sequence random = {.key.seed = test_seed()};
    static struct ph__mass rows[ROWS], scratch[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        rows[i].probability = 1 / (1 + exp(1 - 1.5 * ph__rng_next_normal(&random)));
    double auc = 0, logloss = 0, base_rate = 0;
    struct ph_synth_truth truth = {0};
    for (int trial = 0; trial < TRIALS; trial++) {
        for (size_t i = 0; i < ROWS; i++)
            rows[i].positive = ph__rng_next_uniform(&random) < rows[i].probability;
        memcpy(scratch, rows, sizeof rows);
        ph__synth_truth(scratch, ROWS, &truth);
        auc += truth.auc / TRIALS;
        logloss += truth.logloss / TRIALS;
        base_rate += truth.base_rate / TRIALS;
    }
    /* five standard errors of a mean over the trials */
    assert_near(auc, truth.expected_auc, 5 * 0.009 / sqrt(TRIALS), 0);
    assert_near(logloss, truth.expected_logloss, 5 * 0.01 / sqrt(TRIALS), 0);
    assert_near(base_rate, truth.expected_base_rate, 5 * 0.008 / sqrt(TRIALS), 0);
    assert_true(truth.expected_ne < 1);
}

static void a_constant_model_has_auc_a_half_and_ne_one(void **state)
{
    (void)state;
    struct ph__mass masses[8];
    for (size_t i = 0; i < 8; i++)
        masses[i] = (struct ph__mass){0.25, i < 2};
    struct ph_synth_truth truth;
    ph__synth_truth(masses, 8, &truth);
    assert_near(truth.auc, 0.5, 1e-15, 0);
    assert_near(truth.expected_auc, 0.5, 1e-15, 0);
    assert_near(truth.ne, 1, 1e-15, 0);
    assert_near(truth.expected_ne, 1, 1e-15, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auc_equals_counting_all_pairs_with_ties),
        cmocka_unit_test(soft_auc_equals_counting_all_pairs),
        cmocka_unit_test(auc_without_negatives_is_not_a_number),
        cmocka_unit_test(expectations_agree_with_a_monte_carlo_estimate),
        cmocka_unit_test(a_constant_model_has_auc_a_half_and_ne_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
