#include "unit/kernel/kernel_test.h"

struct statistics {
    float *mean, *inv_std, *gamma, *beta, *mean_dy, *mean_dy_xhat;
};

static struct statistics random_statistics(size_t n)
{
    return (struct statistics){
        .mean = random_floats(n, -1, 1),
        .inv_std = random_floats(n, 0.5, 2),
        .gamma = random_floats(n, -1, 1),
        .beta = random_floats(n, -1, 1),
        .mean_dy = random_floats(n, -1, 1),
        .mean_dy_xhat = random_floats(n, -1, 1),
    };
}

static void check_sums(const struct ph__kernels *kernels, size_t rows, size_t n, int has_shift)
{
    const float *x = random_floats(rows * n, -1, 1);
    double *shift = zero_doubles(n);
    double *sum = zero_doubles(n);
    double *squares = zero_doubles(n);
    for (size_t j = 0; j < n; j++) {
        shift[j] = has_shift ? 0.1 * (double)j : 0;
        sum[j] = squares[j] = 1;
    }
    kernels->batch_norm_sums(rows, n, x, has_shift ? shift : NULL, sum, squares);
    for (size_t j = 0; j < n; j++) {
        double wanted = 1, wanted_squares = 1;
        for (size_t r = 0; r < rows; r++) {
            wanted += (double)x[r * n + j] - shift[j];
            wanted_squares += pow((double)x[r * n + j] - shift[j], 2);
        }
        assert_near(sum[j], wanted, 1e-13, 1e-13);
        assert_near(squares[j], wanted_squares, 1e-13, 1e-13);
    }
}

static void check_gradient_sums(const struct ph__kernels *kernels, size_t rows, size_t n)
{
    const float *x = random_floats(rows * n, -1, 1);
    const float *dy = random_floats(rows * n, -1, 1);
    const struct statistics s = random_statistics(n);
    double *sum = zero_doubles(n);
    double *weighted = zero_doubles(n);
    kernels->batch_norm_gradient_sums(rows, n, x, dy, s.mean, s.inv_std, sum, weighted);
    for (size_t j = 0; j < n; j++) {
        double wanted = 0, wanted_weighted = 0;
        for (size_t r = 0; r < rows; r++) {
            const double xhat = ((double)x[r * n + j] - (double)s.mean[j]) * (double)s.inv_std[j];
            wanted += (double)dy[r * n + j];
            wanted_weighted += (double)dy[r * n + j] * xhat;
        }
        assert_near(sum[j], wanted, 1e-13, 1e-13);
        assert_near(weighted[j], wanted_weighted, 1e-13, 1e-13);
    }
}

static void check_apply_and_backward(const struct ph__kernels *kernels, size_t rows, size_t n)
{
    const float *x = random_floats(rows * n, -1, 1);
    const float *dy = random_floats(rows * n, -1, 1);
    const struct statistics s = random_statistics(n);
    float *y = filled_floats(rows * n, NAN);
    float *dx = filled_floats(rows * n, NAN);
    kernels->batch_norm_apply(rows, n, x, s.mean, s.inv_std, s.gamma, s.beta, y);
    kernels->batch_norm_backward(rows, n, x, dy, s.mean, s.inv_std, s.gamma, s.mean_dy, s.mean_dy_xhat, dx);
    for (size_t i = 0; i < rows * n; i++) {
        const size_t j = i % n;
        const double xhat = ((double)x[i] - (double)s.mean[j]) * (double)s.inv_std[j];
        const double gradient = (double)dy[i] - (double)s.mean_dy[j] - xhat * (double)s.mean_dy_xhat[j];
        assert_near((double)y[i], xhat * (double)s.gamma[j] + (double)s.beta[j], 2e-6, 0);
        assert_near((double)dx[i], (double)s.gamma[j] * (double)s.inv_std[j] * gradient, 4e-6, 0);
    }
}

static void check_shapes(const struct ph__kernels *kernels)
{
    for (size_t n = 1; n <= 70; n++) {
        reset_arrays(NULL);
        const size_t rows = n % 7;
        check_sums(kernels, rows, n, 0);
        check_sums(kernels, rows, n, 1);
        check_gradient_sums(kernels, rows, n);
        check_apply_and_backward(kernels, rows, n);
    }
}

static void batch_norm_follows_its_formulas(void **state)
{
    (void)state;
    on_every_isa(check_shapes);
}

static void check_large_mean(const struct ph__kernels *kernels)
{
    enum { ROWS = 1000, N = 3 };
    float *x = new_array(ROWS * N, sizeof *x);
    for (size_t i = 0; i < ROWS * N; i++)
        x[i] = 10000 + (i / N % 2 == 0 ? 0.5f : -0.5f);
    double *sum = zero_doubles(N);
    double *squares = zero_doubles(N);
    kernels->batch_norm_sums(ROWS, N, x, NULL, sum, squares);
    for (size_t j = 0; j < N; j++)
        assert_near(squares[j] / ROWS - pow(sum[j] / ROWS, 2), 0.25, 1e-6, 0);
}

static void variance_survives_a_mean_far_from_zero(void **state)
{
    (void)state;
    on_every_isa(check_large_mean);
}

static void check_blocks(const struct ph__kernels *kernels)
{
    enum { ROWS = 37, N = 21 };
    const float *x = random_floats(ROWS * N, -1, 1);
    double *whole = zero_doubles(2 * N);
    double *blocks = zero_doubles(2 * N);
    kernels->batch_norm_sums(ROWS, N, x, NULL, whole, whole + N);
    kernels->batch_norm_sums(20, N, x, NULL, blocks, blocks + N);
    kernels->batch_norm_sums(ROWS - 20, N, x + 20 * N, NULL, blocks, blocks + N);
    assert_memory_equal(whole, blocks, 2 * N * sizeof *whole);
}

static void sums_continued_over_blocks_have_the_same_bits(void **state)
{
    (void)state;
    on_every_isa(check_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(batch_norm_follows_its_formulas, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(variance_survives_a_mean_far_from_zero, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            sums_continued_over_blocks_have_the_same_bits, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
