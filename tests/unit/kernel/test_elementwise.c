#include "unit/kernel/kernel_test.h"

static void check_lengths(const struct ph__kernels *kernels)
{
    for (size_t n = 0; n <= 70; n++) {
        reset_arrays(NULL);
        const float *a = random_floats(n, -1, 1);
        const float *b = random_floats(n, -1, 1);
        float *y = filled_floats(n, NAN);
        kernels->relu(n, a, y);
        for (size_t i = 0; i < n; i++)
            assert_true(y[i] == (a[i] > 0 ? a[i] : 0));
        kernels->relu_backward(n, a, b, y);
        for (size_t i = 0; i < n; i++)
            assert_true(y[i] == (a[i] > 0 ? b[i] : 0));
        kernels->add(n, a, b, y);
        for (size_t i = 0; i < n; i++)
            assert_true(y[i] == a[i] + b[i]);
        kernels->multiply(n, a, b, y);
        for (size_t i = 0; i < n; i++)
            assert_true(y[i] == a[i] * b[i]);
        const float *c = random_floats(n, -1, 1);
        kernels->multiply_add(n, a, b, c, y);
        for (size_t i = 0; i < n; i++) {
            const float product = a[i] * b[i];
            assert_true(y[i] == product + c[i]);
        }
        kernels->scale(n, 1.7f, a, y);
        for (size_t i = 0; i < n; i++)
            assert_true(y[i] == 1.7f * a[i]);
    }
}

static void elementwise_kernels_are_exact_at_any_length(void **state)
{
    (void)state;
    on_every_isa(check_lengths);
}

static void check_in_place(const struct ph__kernels *kernels)
{
    float *x = random_floats(45, -1, 1);
    const float *before = copied_floats(45, x);
    kernels->relu(45, x, x);
    kernels->add(45, x, before, x);
    kernels->scale(45, 2, x, x);
    for (size_t i = 0; i < 45; i++)
        assert_true(x[i] == 2 * ((before[i] > 0 ? before[i] : 0) + before[i]));
}

static void input_and_output_may_be_the_same(void **state)
{
    (void)state;
    on_every_isa(check_in_place);
}

static void check_nan(const struct ph__kernels *kernels)
{
    float *x = filled_floats(37, -1);
    for (size_t i = 0; i < 37; i += 3)
        x[i] = NAN;
    float *y = filled_floats(37, 1);
    kernels->relu(37, x, y);
    for (size_t i = 0; i < 37; i++)
        assert_true(i % 3 == 0 ? isnan(y[i]) : y[i] == 0);
}

static void relu_passes_nan_on(void **state)
{
    (void)state;
    on_every_isa(check_nan);
}

static void check_rows(const struct ph__kernels *kernels)
{
    for (size_t n = 0; n <= 300; n += n < 40 ? 1 : 27) {
        reset_arrays(NULL);
        const size_t rows = n % 6;
        const float *x = random_floats(rows * n, -1, 1);
        float *y = random_floats(n, -1, 1);
        float *sum = copied_floats(n, y);
        for (size_t r = 0; r < rows; r++)
            for (size_t j = 0; j < n; j++)
                sum[j] += x[r * n + j];
        kernels->add_rows(rows, n, x, y);
        for (size_t j = 0; j < n; j++)
            assert_true(y[j] == sum[j]);
    }
}

static void add_rows_adds_in_order_on_every_isa(void **state)
{
    (void)state;
    on_every_isa(check_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            elementwise_kernels_are_exact_at_any_length, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(input_and_output_may_be_the_same, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(relu_passes_nan_on, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(add_rows_adds_in_order_on_every_isa, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
