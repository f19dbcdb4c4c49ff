#include "data/synth/synth_orders.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "support/test_support.h"

enum { ROWS = 4000, PARTS = 3 };

struct rows {
    struct ph__mass masses[ROWS];
    double parts[ROWS][PARTS];
};

static const double truth_weights[PARTS] = {1.5, -2, 3};

/* Parts from N(0,1), the third made of the first two, and labels by a logit that is their weighted sum. */
static struct rows *draw_rows(double constant)
{
    static struct rows rows;
    struct ph_rng_sequence random = {.key.seed = test_seed()};
    for (size_t i = 0; i < ROWS; i++) {
        rows.parts[i][0] = ph__rng_next_normal(&random);
        rows.parts[i][1] = ph__rng_next_normal(&random);
        rows.parts[i][2] = rows.parts[i][0] * rows.parts[i][1];
        double logit = constant;
        for (size_t j = 0; j < PARTS; j++)
            logit += truth_weights[j] * rows.parts[i][j];
        double probability = ph__synth_sigmoid(logit);
        rows.masses[i] = (struct ph__mass){probability, ph__rng_next_uniform(&random) < probability};
    }
    return &rows;
}

/* Mean cross entropy of p = 1/(1 + e^-z) with z = c0 + c1 part 1 + …, by its definition. */
static double logloss_of(const struct rows *rows, const double *coefficients, size_t num_parts, bool is_drawn)
{
    double sum = 0;
    for (size_t i = 0; i < ROWS; i++) {
        double logit = coefficients[0];
        for (size_t j = 0; j < num_parts; j++)
            logit += coefficients[1 + j] * rows->parts[i][j];
        double p = 1 / (1 + exp(-logit));
        double y = is_drawn ? rows->masses[i].positive : rows->masses[i].probability;
        sum -= y * log(p) + (1 - y) * log(1 - p);
    }
    return sum / ROWS;
}

static struct ph_synth_order_truth order_truth(const struct rows *rows, size_t num_parts)
{
    struct ph_synth_order_truth truth = {0};
    ph__synth_order_truth(rows->masses, &rows->parts[0][0], PARTS, ROWS, num_parts, &truth);
    return truth;
}

static void with_all_parts_it_is_the_true_model(void **state)
{
    (void)state;
    const struct rows *rows = draw_rows(-0.7);
    struct ph_synth_order_truth all = order_truth(rows, PARTS);
    static struct ph__mass masses[ROWS];
    memcpy(masses, rows->masses, sizeof masses);
    struct ph_synth_truth truth;
    ph__synth_truth(masses, ROWS, &truth);
    assert_near(all.expected_logloss, truth.expected_logloss, 0, 1e-12);
    assert_near(all.expected_ne, truth.expected_ne, 0, 1e-12);
    assert_near(all.logloss, truth.logloss, 0, 1e-9);
    assert_near(all.ne, truth.ne, 0, 1e-9);
}

/* Coordinate by coordinate, ever smaller steps: slow, and nothing that could be wrong as Newton's method could. */
static void search(const struct rows *rows, size_t num_parts, double *coefficients)
{
    double best = logloss_of(rows, coefficients, num_parts, false);
    for (double step = 0.5; step > 1e-6; step /= 2) {
        for (bool has_moved = true; has_moved;) {
            has_moved = false;
            for (size_t j = 0; j < 2 * (num_parts + 1); j++) {
                double former = coefficients[j / 2];
                coefficients[j / 2] += j % 2 == 0 ? step : -step;
                double logloss = logloss_of(rows, coefficients, num_parts, false);
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
    for (size_t num_parts = 1; num_parts < PARTS; num_parts++) {
        double coefficients[1 + PARTS] = {0};
        search(rows, num_parts, coefficients);
        struct ph_synth_order_truth truth = order_truth(rows, num_parts);
        assert_near(truth.expected_logloss, logloss_of(rows, coefficients, num_parts, false), 1e-10, 0);
        assert_near(truth.logloss, logloss_of(rows, coefficients, num_parts, true), 1e-5, 0);
    }
}

static void each_part_is_a_step_down(void **state)
{
    (void)state;
    const struct rows *rows = draw_rows(0);
    for (size_t num_parts = 2; num_parts <= PARTS; num_parts++)
        assert_true(order_truth(rows, num_parts).expected_logloss + 0.02 <
                    order_truth(rows, num_parts - 1).expected_logloss);
}

/* Large logits: Newton's steps from 0 would overshoot if none were taken back. */
static void steep_models_are_found_too(void **state)
{
    (void)state;
    struct rows *rows = draw_rows(0);
    for (size_t i = 0; i < ROWS; i++)
        rows->masses[i].probability = ph__synth_sigmoid(40 + 60 * rows->parts[i][0]);
    struct ph_synth_order_truth truth = order_truth(rows, 1);
    double sum = 0;
    for (size_t i = 0; i < ROWS; i++) {
        double p = rows->masses[i].probability;
        sum -= p > 0 && p < 1 ? p * log(p) + (1 - p) * log(1 - p) : 0;
    }
    assert_near(truth.expected_logloss, sum / ROWS, 1e-6, 0);
}

/* A part that is always 0, as of a scale of 0, is no ground to divide by. */
static void a_part_that_never_changes_is_left_alone(void **state)
{
    (void)state;
    struct rows *rows = draw_rows(0);
    double without = order_truth(rows, 1).expected_logloss;
    for (size_t i = 0; i < ROWS; i++)
        rows->parts[i][1] = 0;
    assert_near(order_truth(rows, 2).expected_logloss, without, 1e-12, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_all_parts_it_is_the_true_model),
        cmocka_unit_test(with_fewer_parts_it_is_the_best_sum_of_them),
        cmocka_unit_test(each_part_is_a_step_down),
        cmocka_unit_test(steep_models_are_found_too),
        cmocka_unit_test(a_part_that_never_changes_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
