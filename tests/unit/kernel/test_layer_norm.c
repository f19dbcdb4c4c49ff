#include "unit/kernel/kernel_test.h"

static const double epsilon = 1e-5;

struct row {
    double mean, inv_std;
};

static struct row statistics_of(size_t n, const float *x)
{
    double mean = 0, variance = 0;
    for (size_t j = 0; j < n; j++)
        mean += (double)x[j] / (double)n;
    for (size_t j = 0; j < n; j++)
        variance += pow((double)x[j] - mean, 2) / (double)n;
    return (struct row){mean, 1 / sqrt(variance + epsilon)};
}

static void check_forward(const struct ph__kernels *kernels, size_t rows, size_t n)
{
    const float *x = random_floats(rows * n, -2, 3);
    const float *gamma = random_floats(n, -1, 1), *beta = random_floats(n, -1, 1);
    float *y = filled_floats(rows * n, NAN), *statistics = filled_floats(2 * rows, NAN);
    kernels->layer_norm(rows, n, x, gamma, beta, epsilon, y, statistics);
    for (size_t r = 0; r < rows; r++) {
        const struct row row = statistics_of(n, x + r * n);
        assert_near((double)statistics[2 * r], row.mean, 2e-6, 0);
        assert_near((double)statistics[2 * r + 1], row.inv_std, 0, 2e-5);
        for (size_t j = 0; j < n; j++) {
            const double xhat = ((double)x[r * n + j] - row.mean) * row.inv_std;
            assert_near((double)y[r * n + j], xhat * (double)gamma[j] + (double)beta[j], 3e-5, 0);
        }
    }
    float *in_place = copied_floats(rows * n, x);
    kernels->layer_norm(rows, n, in_place, gamma, beta, epsilon, in_place, NULL);
    assert_memory_equal(in_place, y, rows * n * sizeof *y);
}

/* The means over a row of dy gamma and of dy gamma xhat. */
static struct row means_of(
    size_t n, const float *x, const float *dy, const float *gamma, const float *statistics)
{
    struct row means = {0, 0};
    for (size_t j = 0; j < n; j++) {
        const double xhat = ((double)x[j] - (double)statistics[0]) * (double)statistics[1];
        means.mean += (double)dy[j] * (double)gamma[j] / (double)n;
        means.inv_std += (double)dy[j] * (double)gamma[j] * xhat / (double)n;
    }
    return means;
}

static void check_backward(const struct ph__kernels *kernels, size_t rows, size_t n)
{
    const float *x = random_floats(rows * n, -1, 1), *dy = random_floats(rows * n, -1, 1);
    const float *gamma = random_floats(n, -1, 1), *statistics = random_floats(2 * rows, 0.5, 2);
    float *dx = filled_floats(rows * n, NAN);
    float *d_gamma = filled_floats(n, 1), *d_beta = filled_floats(n, -1);
    double *wanted_gamma = zero_doubles(n), *wanted_beta = zero_doubles(n);
    kernels->layer_norm_backward(rows, n, x, dy, statistics, gamma, dx, d_gamma, d_beta);
    for (size_t r = 0; r < rows; r++) {
        const float *row = statistics + 2 * r;
        const struct row means = means_of(n, x + r * n, dy + r * n, gamma, row);
        for (size_t j = 0; j < n; j++) {
            const double gradient = (double)dy[r * n + j];
            const double xhat = ((double)x[r * n + j] - (double)row[0]) * (double)row[1];
            const double centred = gradient * (double)gamma[j] - means.mean - xhat * means.inv_std;
            wanted_gamma[j] += gradient * xhat;
            wanted_beta[j] += gradient;
            assert_near((double)dx[r * n + j], (double)row[1] * centred, 2e-5, 0);
        }
    }
    for (size_t j = 0; j < n; j++) {
        assert_near((double)d_gamma[j], 1 + wanted_gamma[j], 2e-5, 0);
        assert_near((double)d_beta[j], wanted_beta[j] - 1, 2e-5, 0);
    }
    float *in_place = copied_floats(rows * n, dy);
    kernels->layer_norm_backward(rows, n, x, in_place, statistics, gamma, in_place, d_gamma, d_beta);
    assert_memory_equal(in_place, dx, rows * n * sizeof *dx);
}

static void check_shapes(const struct ph__kernels *kernels)
{
    for (size_t n = 1; n <= 70; n++) {
        reset_arrays(NULL);
        check_forward(kernels, n % 7, n);
        check_backward(kernels, n % 7, n);
    }
    check_forward(kernels, 3, 400);
    check_backward(kernels, 3, 400);
}

static void layer_norm_and_its_gradient_follow_their_formulas(void **state)
{
    (void)state;
    on_every_isa(check_shapes);
}

/* Deviations of 1 around 100000, which a float holds to 1/128: their squares' sum is not lost. */
static void check_large_mean(const struct ph__kernels *kernels)
{
    enum { N = 131 };
    float *x = new_array(N, sizeof *x), *y = filled_floats(N, NAN);
    for (size_t j = 0; j < N; j++)
        x[j] = 100000 + (j % 2 == 0 ? 1.0f : -1.0f);
    const struct row row = statistics_of(N, x);
    kernels->layer_norm(1, N, x, filled_floats(N, 1), filled_floats(N, 0), epsilon, y, NULL);
    for (size_t j = 0; j < N; j++)
        assert_near((double)y[j], ((double)x[j] - row.mean) * row.inv_std, 1e-5, 0);
}

static void a_mean_far_from_zero_does_no_harm(void **state)
{
    (void)state;
    on_every_isa(check_large_mean);
}

static void check_places(const struct ph__kernels *kernels)
{
    enum { ROWS = 5, N = 45 };
    const float *x = random_floats(ROWS * N, -1, 1);
    const float *gamma = random_floats(N, -1, 1), *beta = random_floats(N, -1, 1);
    float *y = filled_floats(ROWS * N, NAN), *alone = filled_floats(N, NAN);
    kernels->layer_norm(ROWS, N, x, gamma, beta, epsilon, y, NULL);
    for (size_t r = 0; r < ROWS; r++) {
        kernels->layer_norm(1, N, copied_floats(N, x + r * N), gamma, beta, epsilon, alone, NULL);
        assert_memory_equal(alone, y + r * N, N * sizeof *alone);
    }
}

static void the_bits_of_a_row_do_not_depend_on_its_place(void **state)
{
    (void)state;
    on_every_isa(check_places);
}

/* A row with NaN or infinity is NaN throughout, and no other is. */
static void check_bad_rows(const struct ph__kernels *kernels)
{
    enum { ROWS = 3, N = 35 };
    const float *gamma = filled_floats(N, 1), *beta = filled_floats(N, 0);
    const float bad[] = {NAN, INFINITY};
    for (size_t i = 0; i < 2 * N; i++) {
        float *x = random_floats(ROWS * N, -1, 1), *y = filled_floats(ROWS * N, 0);
        x[N + i / 2] = bad[i % 2];
        kernels->layer_norm(ROWS, N, x, gamma, beta, epsilon, y, NULL);
        for (size_t j = 0; j < ROWS * N; j++)
            assert_int_equal(isnan(y[j]) != 0, j / N == 1);
    }
}

static void a_row_that_is_not_finite_stays_so_and_alone(void **state)
{
    (void)state;
    on_every_isa(check_bad_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            layer_norm_and_its_gradient_follow_their_formulas, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(a_mean_far_from_zero_does_no_harm, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            the_bits_of_a_row_do_not_depend_on_its_place, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            a_row_that_is_not_finite_stays_so_and_alone, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
