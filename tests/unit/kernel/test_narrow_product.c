/* Products of few outputs against sums in double; a row's bits do not follow the rows beside it. */
#include "unit/kernel/kernel_test.h"

enum { ROWS = 5, MAX_OUTPUTS = 4 };

static void check_shape(const struct ph__kernels *kernels, size_t inner, size_t outputs, bool has_bias)
{
    reset_arrays(NULL);
    const float *x = random_floats(ROWS * inner, -1, 1), *weight = random_floats(outputs * inner, -1, 1);
    const float *bias = has_bias ? random_floats(outputs, -1, 1) : NULL;
    float *y = filled_floats(ROWS * outputs, NAN), alone[MAX_OUTPUTS];
    kernels->narrow_product(ROWS, inner, outputs, x, weight, bias, y);
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t j = 0; j < outputs; j++) {
            double sum = has_bias ? (double)bias[j] : 0, size = fabs(sum);
            for (size_t k = 0; k < inner; k++) {
                const double term = (double)x[i * inner + k] * (double)weight[j * inner + k];
                sum += term;
                size += fabs(term);
            }
            assert_near((double)y[i * outputs + j], sum, 1e-6 * (size + 1), 0);
        }
        kernels->narrow_product(1, inner, outputs, x + i * inner, weight, bias, alone);
        assert_memory_equal(alone, y + i * outputs, outputs * sizeof *y);
    }
}

static void check_shapes(const struct ph__kernels *kernels)
{
    for (size_t inner = 0; inner <= 300; inner += inner < 80 ? 1 : 43)
        for (size_t outputs = 1; outputs <= MAX_OUTPUTS; outputs++)
            for (int has_bias = 0; has_bias < 2; has_bias++)
                check_shape(kernels, inner, outputs, has_bias);
}

static void outputs_are_sums_of_products(void **state)
{
    (void)state;
    on_every_isa(check_shapes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(outputs_are_sums_of_products, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
