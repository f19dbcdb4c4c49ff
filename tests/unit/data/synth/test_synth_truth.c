#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/synth/synth_truth.h"
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

/* The area under the ROC curve by labels as they stand. Overwrites the masses. */
static double auc_of(struct ph__mass *masses, size_t count)
{
    struct ph_synth_truth truth;
    ph__synth_truth(masses, count, &truth);
    return truth.auc;
}

static void draw_masses(
    struct ph__rng_sequence *random, struct ph__mass *masses, size_t count, uint64_t num_values)
{
    for (size_t i = 0; i < count; i++) {
        masses[i].probability = (double)(1 + ph__rng_below(random, num_values)) / (double)(num_values + 1);
        masses[i].positive = (double)ph__rng_below(random, 2);
    }
}

static void auc_equals_counting_all_pairs_with_ties(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    struct ph__mass masses[200];
    for (uint64_t num_values = 1; num_values < 300; num_values = num_values * 3 + 1) {
        draw_masses(&random, masses, 200, num_values);
        double expected = quadratic_auc(masses, 200);
        assert_true(auc_of(masses, 200) == expected);
    }
}

static void soft_auc_equals_counting_all_pairs(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    struct ph__mass masses[150];
    draw_masses(&random, masses, 150, 20);
    for (size_t i = 0; i < 150; i++)
        masses[i].positive = ph__rng_next_uniform(&random);
    double expected = quadratic_auc(masses, 150);
    assert_near(auc_of(masses, 150), expected, 1e-12, 0);
}

static void auc_without_negatives_is_not_a_number(void **state)
{
    (void)state;
    struct ph__mass masses[] = {{0.5, 1}, {0.2, 1}};
    assert_true(isnan(auc_of(masses, 2)));
}

/* Labels drawn again and again from the same probabilities: the stated expectations are their mean. */
static void expectations_agree_with_a_monte_carlo_estimate(void **state)
{
    (void)state;
    enum { ROWS = 3000, TRIALS = 300 };
    struct ph__rng_sequence random = {.key.seed = test_seed()};
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

/* ---- without the highest orders ---- */

enum { ROWS = 4000, COMPONENTS = 3 };

struct rows {
    struct ph__mass masses[ROWS];
    double components[ROWS][COMPONENTS];
};

static const double truth_weights[COMPONENTS] = {1.5, -2, 3};

/* Parts from N(0,1), the third made of the first two, and labels by a logit that is their weighted sum. */
static struct rows *draw_rows(double constant)
{
    static struct rows rows;
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    for (size_t i = 0; i < ROWS; i++) {
        rows.components[i][0] = ph__rng_next_normal(&random);
        rows.components[i][1] = ph__rng_next_normal(&random);
        rows.components[i][2] = rows.components[i][0] * rows.components[i][1];
        double logit = constant;
        for (size_t j = 0; j < COMPONENTS; j++)
            logit += truth_weights[j] * rows.components[i][j];
        double probability = ph__synth_sigmoid(logit);
        rows.masses[i] = (struct ph__mass){probability, ph__rng_next_uniform(&random) < probability};
    }
    return &rows;
}

/* Mean cross entropy of p = 1/(1 + e^-z) with z = c0 + c1 component 1 + …, by its definition. */
static double logloss_of(
    const struct rows *rows, const double *coefficients, size_t num_components, bool is_drawn)
{
    double sum = 0;
    for (size_t i = 0; i < ROWS; i++) {
        double logit = coefficients[0];
        for (size_t j = 0; j < num_components; j++)
            logit += coefficients[1 + j] * rows->components[i][j];
        double p = 1 / (1 + exp(-logit));
        double y = is_drawn ? rows->masses[i].positive : rows->masses[i].probability;
        sum -= y * log(p) + (1 - y) * log(1 - p);
    }
    return sum / ROWS;
}

static struct ph_synth_order_truth order_truth(const struct rows *rows, size_t num_components)
{
    struct ph_synth_order_truth truth = {0};
    ph__synth_order_truth(rows->masses, &rows->components[0][0], COMPONENTS, ROWS, num_components, &truth);
    return truth;
}

static void with_all_parts_it_is_the_true_model(void **state)
{
    (void)state;
    const struct rows *rows = draw_rows(-0.7);
    struct ph_synth_order_truth all = order_truth(rows, COMPONENTS);
    static struct ph__mass masses[ROWS];
    memcpy(masses, rows->masses, sizeof masses);
    struct ph_synth_truth truth;
    ph__synth_truth(masses, ROWS, &truth);
    assert_near(all.expected_logloss, truth.expected_logloss, 0, 1e-12);
    assert_near(all.expected_ne, truth.expected_ne, 0, 1e-12);
    assert_near(all.logloss, truth.logloss, 0, 1e-9);
    assert_near(all.ne, truth.ne, 0, 1e-9);
}

/* Coordinate by coordinate, ever smaller steps: slow, and nothing that could be wrong as Newton's method
 * could. */
static void search(const struct rows *rows, size_t num_components, double *coefficients)
{
    double best = logloss_of(rows, coefficients, num_components, false);
    for (double step = 0.5; step > 1e-6; step /= 2) {
        for (bool has_moved = true; has_moved;) {
            has_moved = false;
            for (size_t j = 0; j < 2 * (num_components + 1); j++) {
                double former = coefficients[j / 2];
                coefficients[j / 2] += j % 2 == 0 ? step : -step;
                double logloss = logloss_of(rows, coefficients, num_components, false);
                has_moved = has_moved || logloss < best;
                coefficients[j / 2] = logloss < best ? coefficients[j / 2] : former;
                best = fmin(best, logloss);
            }
        }
    }
}

static void with_fewer_parts_it_is_the_best_sum_of_them(void **state)
{
    (void)state;
    const struct rows *rows = draw_rows(0.4);
    for (size_t num_components = 1; num_components < COMPONENTS; num_components++) {
        double coefficients[1 + COMPONENTS] = {0};
        search(rows, num_components, coefficients);
        struct ph_synth_order_truth truth = order_truth(rows, num_components);
        assert_near(truth.expected_logloss, logloss_of(rows, coefficients, num_components, false), 1e-10, 0);
        assert_near(truth.logloss, logloss_of(rows, coefficients, num_components, true), 1e-5, 0);
    }
}

static void each_part_is_a_step_down(void **state)
{
    (void)state;
    const struct rows *rows = draw_rows(0);
    for (size_t num_components = 2; num_components <= COMPONENTS; num_components++)
        assert_true(order_truth(rows, num_components).expected_logloss + 0.02 <
                    order_truth(rows, num_components - 1).expected_logloss);
}

/* Large logits: Newton's steps from 0 would overshoot if none were taken back. */
static void steep_models_are_found_too(void **state)
{
    (void)state;
    struct rows *rows = draw_rows(0);
    for (size_t i = 0; i < ROWS; i++)
        rows->masses[i].probability = ph__synth_sigmoid(40 + 60 * rows->components[i][0]);
    struct ph_synth_order_truth truth = order_truth(rows, 1);
    double sum = 0;
    for (size_t i = 0; i < ROWS; i++) {
        double p = rows->masses[i].probability;
        sum -= p > 0 && p < 1 ? p * log(p) + (1 - p) * log(1 - p) : 0;
    }
    assert_near(truth.expected_logloss, sum / ROWS, 1e-6, 0);
}

/* A component that is always 0, as of a scale of 0, is no ground to divide by. */
static void a_part_that_never_changes_is_left_alone(void **state)
{
    (void)state;
    struct rows *rows = draw_rows(0);
    double without = order_truth(rows, 1).expected_logloss;
    for (size_t i = 0; i < ROWS; i++)
        rows->components[i][1] = 0;
    assert_near(order_truth(rows, 2).expected_logloss, without, 1e-12, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auc_equals_counting_all_pairs_with_ties),
        cmocka_unit_test(soft_auc_equals_counting_all_pairs),
        cmocka_unit_test(auc_without_negatives_is_not_a_number),
        cmocka_unit_test(expectations_agree_with_a_monte_carlo_estimate),
        cmocka_unit_test(a_constant_model_has_auc_a_half_and_ne_one),
        cmocka_unit_test(with_all_parts_it_is_the_true_model),
        cmocka_unit_test(with_fewer_parts_it_is_the_best_sum_of_them),
        cmocka_unit_test(each_part_is_a_step_down),
        cmocka_unit_test(steep_models_are_found_too),
        cmocka_unit_test(a_part_that_never_changes_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
