#include "unit/kernel/kernel_test.h"

static double summed(size_t n, const float *x, const float *w, double l2)
{
    long double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const long double value =
            (x != NULL ? (long double)x[i] : 0) + (w != NULL ? (long double)l2 * w[i] : 0);
        sum += value * value;
    }
    return (double)sum;
}

static void check_lengths(const struct ph__kernels *kernels)
{
    for (size_t n = 0; n <= 300; n += n < 70 ? 1 : 23) {
        reset_arrays(NULL);
        const float *x = random_floats(n, -1, 1);
        const float *w = random_floats(n, -1, 1);
        const float l2 = 0.3f;
        assert_near(kernels->sum_of_squares(n, x, w, l2), summed(n, x, w, (double)l2), 0, 1e-13);
        assert_near(kernels->sum_of_squares(n, x, NULL, l2), summed(n, x, NULL, 0), 0, 1e-13);
        assert_near(kernels->sum_of_squares(n, NULL, w, l2), summed(n, NULL, w, (double)l2), 0, 1e-13);
        assert_true(kernels->sum_of_squares(n, NULL, NULL, l2) == 0);
    }
}

static void sum_of_squares_is_exact_to_double_rounding(void **state)
{
    (void)state;
    on_every_isa(check_lengths);
}

static void check_non_finite(const struct ph__kernels *kernels)
{
    for (size_t at = 0; at < 133; at++) {
        float *x = filled_floats(133, 1);
        x[at] = INFINITY;
        assert_true(isinf(kernels->sum_of_squares(133, x, NULL, 0)));
        x[at] = NAN;
        assert_true(isnan(kernels->sum_of_squares(133, x, NULL, 0)));
    }
}

static void a_non_finite_number_anywhere_is_seen(void **state)
{
    (void)state;
    on_every_isa(check_non_finite);
}

static void check_large(const struct ph__kernels *kernels)
{
    const float *x = filled_floats(100, 3e38f);
    assert_near(kernels->sum_of_squares(100, x, NULL, 0), 100 * (double)x[0] * (double)x[0], 0, 1e-12);
}

static void squares_beyond_floats_do_not_overflow(void **state)
{
    (void)state;
    on_every_isa(check_large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            sum_of_squares_is_exact_to_double_rounding, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(a_non_finite_number_anywhere_is_seen, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(squares_beyond_floats_do_not_overflow, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
