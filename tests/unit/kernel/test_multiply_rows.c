/* Products of rows: each with its own, one with all, and all into one. */
#include "unit/kernel/kernel_test.h"

enum { ROWS = 5, MAX_N = 40, GAP = 2, STRIDE = MAX_N + GAP };

static void check_rows(const struct ph__kernels *kernels, size_t n, size_t a_stride, bool is_added)
{
    reset_arrays(NULL);
    const float *a = random_floats(ROWS * STRIDE, -1, 1), *b = random_floats(ROWS * STRIDE, -1, 1);
    const float *before = random_floats(ROWS * STRIDE, -1, 1);
    float *y = copied_floats(ROWS * STRIDE, before);
    kernels->multiply_rows(&(struct ph__multiply_rows_args){.rows = ROWS,
        .n = n,
        .a = a,
        .b = b,
        .y = y,
        .a_stride = a_stride,
        .b_stride = STRIDE,
        .y_stride = STRIDE,
        .is_added = is_added});
    for (size_t r = 0; r < ROWS; r++)
        for (size_t j = 0; j < STRIDE; j++) {
            const size_t i = r * STRIDE + j;
            const double product = (double)a[r * a_stride + j] * (double)b[i];
            assert_near((double)y[i],
                j >= n     ? (double)before[i]
                : is_added ? (double)before[i] + product
                           : product,
                1e-6, 1e-6);
        }
}

static void check_sizes(const struct ph__kernels *kernels)
{
    for (size_t n = 0; n <= MAX_N; n++)
        for (int is_added = 0; is_added < 2; is_added++) {
            check_rows(kernels, n, STRIDE, is_added);
            check_rows(kernels, n, 0, is_added);
        }
}

static void rows_are_multiplied_number_by_number(void **state)
{
    (void)state;
    on_every_isa(check_sizes);
}

static void check_sum(const struct ph__kernels *kernels)
{
    const float *a = random_floats(ROWS * MAX_N, -1, 1), *b = random_floats(ROWS * MAX_N, -1, 1);
    float *y = filled_floats(MAX_N, 1);
    kernels->multiply_rows(&(struct ph__multiply_rows_args){.rows = ROWS,
        .n = MAX_N,
        .a = a,
        .b = b,
        .y = y,
        .a_stride = MAX_N,
        .b_stride = MAX_N,
        .is_added = true});
    for (size_t j = 0; j < MAX_N; j++) {
        double sum = 1;
        for (size_t r = 0; r < ROWS; r++)
            sum += (double)a[r * MAX_N + j] * (double)b[r * MAX_N + j];
        assert_near((double)y[j], sum, 1e-6, 1e-6);
    }
}

static void a_result_without_a_stride_is_the_sum_of_the_products(void **state)
{
    (void)state;
    on_every_isa(check_sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_are_multiplied_number_by_number, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            a_result_without_a_stride_is_the_sum_of_the_products, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
