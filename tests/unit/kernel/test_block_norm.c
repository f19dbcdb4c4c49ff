#include "unit/kernel/kernel_test.h"

static double scale_of(size_t n, const float *x)
{
    double squares = 0;
    for (size_t j = 0; j < n; j++)
        squares += (double)x[j] * (double)x[j];
    return 1 / sqrt(squares / (double)n + 1e-6);
}

static double hard_swish(double x)
{
    return x * fmin(fmax(x + 3, 0), 6) / 6;
}

static double slope_at(double x)
{
    if (x <= -3)
        return 0;
    return x >= 3 ? 1 : (2 * x + 3) / 6;
}

static void check_block(size_t n, bool is_swished, const float *x, const float *y)
{
    const double scale = scale_of(n, x);
    for (size_t j = 0; j < n; j++) {
        const double xhat = (double)x[j] * scale;
        assert_near((double)y[j], is_swished ? hard_swish(xhat) : xhat, 3e-6, 3e-6);
    }
}

/* dx = scale (g - xhat mean of g xhat) */
static void check_block_backward(size_t n, bool is_swished, const float *x, const float *dy, const float *dx)
{
    const double scale = scale_of(n, x);
    double *g = zero_doubles(n), mean = 0;
    for (size_t j = 0; j < n; j++) {
        g[j] = (double)dy[j] * (is_swished ? slope_at((double)x[j] * scale) : 1);
        mean += g[j] * (double)x[j] * scale / (double)n;
    }
    for (size_t j = 0; j < n; j++)
        assert_near((double)dx[j], scale * (g[j] - (double)x[j] * scale * mean), 2e-5, 2e-5);
}

static void check_shape(const struct ph__kernels *kernels, size_t rows, size_t n, bool is_swished)
{
    reset_arrays(NULL);
    const float *x = random_floats(rows * n, -2, 3), *dy = random_floats(rows * n, -1, 1);
    float *y = filled_floats(rows * n, NAN), *dx = filled_floats(rows * n, NAN);
    kernels->block_norm(rows, n, is_swished, x, y);
    kernels->block_norm_backward(rows, n, is_swished, x, dy, dx);
    for (size_t r = 0; r < rows; r++) {
        for (size_t j = 0; j < n; j += 256) {
            const size_t at = r * n + j, block = n - j < 256 ? n - j : 256;
            check_block(block, is_swished, x + at, y + at);
            check_block_backward(block, is_swished, x + at, dy + at, dx + at);
        }
    }
    float *in_place = copied_floats(rows * n, x);
    kernels->block_norm(rows, n, is_swished, in_place, in_place);
    assert_memory_equal(in_place, y, rows * n * sizeof *y);
    in_place = copied_floats(rows * n, dy);
    kernels->block_norm_backward(rows, n, is_swished, x, in_place, in_place);
    assert_memory_equal(in_place, dx, rows * n * sizeof *dx);
}

static void check_shapes(const struct ph__kernels *kernels)
{
    static const size_t wide[] = {255, 256, 257, 400, 512, 513, 1000};
    for (int is_swished = 0; is_swished < 2; is_swished++) {
        for (size_t n = 1; n <= 70; n++)
            check_shape(kernels, n % 5, n, is_swished);
        for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
            check_shape(kernels, 3, wide[i], is_swished);
    }
}

static void block_norm_and_its_gradient_follow_their_formulas(void **state)
{
    (void)state;
    on_every_isa(check_shapes);
}

static void check_apart(const struct ph__kernels *kernels)
{
    enum { ROWS = 5, N = 300 };
    const float *x = random_floats(ROWS * N, -1, 1);
    float *y = filled_floats(ROWS * N, NAN), *alone = filled_floats(N, NAN), *apart = filled_floats(N, NAN);
    kernels->block_norm(ROWS, N, true, x, y);
    for (size_t r = 0; r < ROWS; r++) {
        kernels->block_norm(1, N, true, copied_floats(N, x + r * N), alone);
        assert_memory_equal(alone, y + r * N, N * sizeof *alone);
        kernels->block_norm(1, N, false, x + r * N, apart);
        kernels->hard_swish(N, apart, apart);
        assert_memory_equal(apart, alone, N * sizeof *alone);
    }
}

static void the_bits_of_a_row_are_those_of_the_row_alone_and_of_two_passes(void **state)
{
    (void)state;
    on_every_isa(check_apart);
}

/* Block 1 of row 1 has a NaN, block 0 of row 0 is zero. */
static void check_odd_blocks(const struct ph__kernels *kernels)
{
    enum { ROWS = 2, N = 300 };
    float *x = random_floats(ROWS * N, -1, 1), *y = filled_floats(ROWS * N, NAN);
    const float *dy = random_floats(ROWS * N, -1, 1);
    float *dx = filled_floats(ROWS * N, NAN);
    memset(x, 0, 256 * sizeof *x);
    x[N + 260] = NAN;
    kernels->block_norm(ROWS, N, false, x, y);
    kernels->block_norm_backward(ROWS, N, false, x, dy, dx);
    for (size_t i = 0; i < (size_t)ROWS * N; i++) {
        assert_int_equal(isnan(y[i]) != 0, i >= N + 256);
        assert_int_equal(isnan(dx[i]) != 0, i >= N + 256);
        if (i < 256) {
            assert_true(y[i] == 0);
            assert_near((double)dx[i], 1000 * (double)dy[i], 0, 1e-5);
        }
    }
}

static void zeros_stay_zero_and_a_nan_stays_in_its_block(void **state)
{
    (void)state;
    on_every_isa(check_odd_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            block_norm_and_its_gradient_follow_their_formulas, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            the_bits_of_a_row_are_those_of_the_row_alone_and_of_two_passes, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            zeros_stay_zero_and_a_nan_stays_in_its_block, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
