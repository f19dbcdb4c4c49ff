#include "unit/kernel/kernel_test.h"

/* Distance in units of the last place of a float near `exact`. */
static double ulps(float value, double exact)
{
    const double place = ldexp(1, (int)fmax(floor(log2(fabs(exact))), -126) - 23);
    return fabs((double)value - exact) / place;
}

static void check_accuracy(const struct ph__kernels *kernels)
{
    enum { N = 1 << 16 };
    float *x = new_array(N, sizeof *x);
    float *y = filled_floats(N, NAN);
    for (size_t i = 0; i < N; i++)
        x[i] = -86.5f + 173.0f * (float)i / N;
    kernels->sigmoid(N, x, y);
    for (size_t i = 0; i < N; i++)
        if (ulps(y[i], 1 / (1 + exp(-(double)x[i]))) > 2.5)
            fail_msg("sigmoid(%.9g) = %.9g is %.2f ulp off", (double)x[i], (double)y[i],
                ulps(y[i], 1 / (1 + exp(-(double)x[i]))));
}

static void sigmoid_is_within_a_few_units_of_the_last_place(void **state)
{
    (void)state;
    on_every_isa(check_accuracy);
}

static void check_extremes(const struct ph__kernels *kernels)
{
    const float x[] = {0, -0.0f, INFINITY, -INFINITY, 1e30f, -1e30f, 200, -200, 1e-30f, NAN};
    float y[10];
    kernels->sigmoid(10, x, y);
    assert_true(y[0] == 0.5f && y[1] == 0.5f && y[8] == 0.5f);
    for (size_t i = 2; i < 8; i++)
        assert_near((double)y[i], i % 2 == 0 ? 1 : 0, 1e-37, 0);
    assert_true(isnan(y[9]));
}

static void sigmoid_of_huge_logits_is_zero_or_one(void **state)
{
    (void)state;
    on_every_isa(check_extremes);
}

static void check_lengths(const struct ph__kernels *kernels)
{
    for (size_t n = 0; n <= 50; n++) {
        reset_arrays(NULL);
        float *x = random_floats(n, -5, 5);
        const float *dy = random_floats(n, -1, 1);
        float *dx = filled_floats(n, NAN);
        const float *logits = copied_floats(n, x);
        kernels->sigmoid(n, x, x);
        kernels->sigmoid_backward(n, x, dy, dx);
        for (size_t i = 0; i < n; i++) {
            const double p = 1 / (1 + exp(-(double)logits[i]));
            assert_near((double)x[i], p, 2e-7, 0);
            assert_near((double)dx[i], (double)dy[i] * p * (1 - p), 2e-7, 0);
        }
    }
}

static void sigmoid_and_its_gradient_work_in_place_at_any_length(void **state)
{
    (void)state;
    on_every_isa(check_lengths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            sigmoid_is_within_a_few_units_of_the_last_place, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(sigmoid_of_huge_logits_is_zero_or_one, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            sigmoid_and_its_gradient_work_in_place_at_any_length, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
