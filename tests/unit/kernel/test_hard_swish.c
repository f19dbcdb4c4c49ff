#include "unit/kernel/kernel_test.h"

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

static void check_lengths(const struct ph__kernels *kernels)
{
    for (size_t n = 0; n <= 50; n++) {
        reset_arrays(NULL);
        float *x = random_floats(n, -5, 5);
        const float *dy = random_floats(n, -1, 1);
        float *y = filled_floats(n, NAN), *dx = copied_floats(n, dy);
        kernels->hard_swish(n, x, y);
        kernels->hard_swish_backward(n, x, dx, dx);
        for (size_t i = 0; i < n; i++) {
            assert_near((double)y[i], hard_swish((double)x[i]), 1e-6, 0);
            assert_near((double)dx[i], (double)dy[i] * slope_at((double)x[i]), 1e-6, 0);
        }
        kernels->hard_swish(n, x, x);
        assert_memory_equal(x, y, n * sizeof *x);
    }
}

static void hard_swish_and_its_gradient_work_in_place_at_any_length(void **state)
{
    (void)state;
    on_every_isa(check_lengths);
}

static void check_knots(const struct ph__kernels *kernels)
{
    const float x[] = {-3, 3, 0, -100, 100, NAN}, one[] = {1, 1, 1, 1, 1, 1};
    float y[6], slopes[6];
    kernels->hard_swish(6, x, y);
    kernels->hard_swish_backward(6, x, one, slopes);
    assert_true(y[0] == 0 && y[1] == 3 && y[2] == 0 && y[3] == 0 && y[4] == 100 && isnan(y[5]));
    assert_true(slopes[0] == 0 && slopes[1] == 1 && slopes[2] == .5f && slopes[3] == 0 && slopes[4] == 1);
    assert_true(isnan(slopes[5]));
}

static void hard_swish_is_zero_below_and_the_identity_above(void **state)
{
    (void)state;
    on_every_isa(check_knots);
}

static void check_bits(const struct ph__kernels *kernels)
{
    enum { N = 1000 };
    const float *x = random_floats(N, -4, 4), *dy = random_floats(N, -1, 1);
    float *y = filled_floats(N, NAN), *expected = filled_floats(N, NAN);
    kernels->hard_swish(N, x, y);
    ph__kernels_for(PH_ISA_REF)->hard_swish(N, x, expected);
    assert_memory_equal(y, expected, N * sizeof *y);
    kernels->hard_swish_backward(N, x, dy, y);
    ph__kernels_for(PH_ISA_REF)->hard_swish_backward(N, x, dy, expected);
    assert_memory_equal(y, expected, N * sizeof *y);
}

static void bits_are_those_of_the_specification(void **state)
{
    (void)state;
    on_every_isa(check_bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            hard_swish_and_its_gradient_work_in_place_at_any_length, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            hard_swish_is_zero_below_and_the_identity_above, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(bits_are_those_of_the_specification, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
