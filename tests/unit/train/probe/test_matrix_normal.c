/* Planted covariances are found again, in weights that were drawn by them and in draws of the fit. */
#include <math.h>
#include <string.h>

#include "support/test_support.h"
#include "train/probe/matrix_normal.h"

enum { ROWS = 12, COLUMNS = 16, DRAWS = 10000 };

/* Fills a covariance A A^T whose mean variance is `variance`. */
static void plant(struct ph__rng_sequence *random, size_t size, double variance, double *covariance)
{
    double a[COLUMNS][COLUMNS], sum = 0;
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j < size; j++)
            a[i][j] = ph__rng_next_normal(random) * pow(1.2, (double)i) + (i == j ? 3 : 0);
    memset(covariance, 0, size * size * sizeof *covariance);
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j < size; j++)
            for (size_t k = 0; k < size; k++)
                covariance[i * size + j] += a[i][k] * a[j][k];
    for (size_t i = 0; i < size; i++)
        sum += covariance[i * size + i];
    for (size_t i = 0; i < size * size; i++)
        covariance[i] *= variance * (double)size / sum;
}

/* Returns |a - b| / |b|, Frobenius norms. */
static double distance(size_t count, const double *a, const double *b)
{
    double difference = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        size += b[i] * b[i];
    }
    return sqrt(difference / size);
}

static void planted_covariances_are_found(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    struct ph__matrix_normal planted, fit;
    ph_real weight[ROWS * COLUMNS];
    assert_ok(ph__matrix_normal_open(&planted, ROWS, COLUMNS, .9999));
    assert_ok(ph__matrix_normal_open(&fit, ROWS, COLUMNS, .9999));
    plant(&random, ROWS, 1, planted.u);
    plant(&random, COLUMNS, .01, planted.v);
    planted.count = 2;
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        planted.mean[i] = ph__rng_next_normal(&random);
    for (size_t i = 0; i < DRAWS; i++) {
        ph__matrix_normal_draw(&planted, &random, weight);
        ph__matrix_normal_add(&fit, weight);
    }
    print_message("U %.3f, V %.3f, mean %.3f\n", distance(ROWS * ROWS, fit.u, planted.u),
        distance(COLUMNS * COLUMNS, fit.v, planted.v), distance(ROWS * COLUMNS, fit.mean, planted.mean));
    assert_true(distance(ROWS * ROWS, fit.u, planted.u) < .05);
    assert_true(distance(COLUMNS * COLUMNS, fit.v, planted.v) < .05);
    assert_true(distance(ROWS * COLUMNS, fit.mean, planted.mean) < .02);
    ph__matrix_normal_close(&planted);
    ph__matrix_normal_close(&fit);
}

/* A weight that does not change has a distribution, too: its own value. */
static void a_constant_weight_is_its_mean(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    struct ph__matrix_normal fit;
    ph_real weight[ROWS * COLUMNS], drawn[ROWS * COLUMNS];
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        weight[i] = (ph_real)ph__rng_next_normal(&random);
    assert_ok(ph__matrix_normal_open(&fit, ROWS, COLUMNS, .9));
    for (size_t i = 0; i < 500; i++)
        ph__matrix_normal_add(&fit, weight);
    ph__matrix_normal_draw(&fit, &random, drawn);
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        assert_near((double)drawn[i], (double)weight[i], 1e-3, 0);
    ph__matrix_normal_close(&fit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_covariances_are_found),
        cmocka_unit_test(a_constant_weight_is_its_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
