/* Numbers in another order: every one arrives where it belongs, and nothing is written beyond. */
#include "unit/kernel/kernel_test.h"

static void check_transpose(const struct ph__kernels *kernels, size_t count, size_t rows, size_t columns)
{
    reset_arrays(NULL);
    const size_t numbers = rows * columns;
    const float *x = random_floats(count * numbers, -1, 1);
    float *y = filled_floats(count * numbers, NAN);
    kernels->transpose(count, rows, columns, x, y);
    for (size_t m = 0; m < count; m++)
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < columns; j++)
                assert_true(y[m * numbers + j * rows + i] == x[m * numbers + i * columns + j]);
}

static void check_interchange(const struct ph__kernels *kernels, size_t a, size_t b, size_t n)
{
    reset_arrays(NULL);
    const float *x = random_floats(a * b * n, -1, 1);
    float *y = filled_floats(a * b * n, NAN);
    kernels->interchange(a, b, n, x, y);
    for (size_t i = 0; i < a; i++)
        for (size_t j = 0; j < b; j++)
            for (size_t k = 0; k < n; k++)
                assert_true(y[(j * a + i) * n + k] == x[(i * b + j) * n + k]);
}

static void check_sizes(const struct ph__kernels *kernels)
{
    for (size_t rows = 1; rows <= 35; rows++)
        for (size_t columns = 1; columns <= 35; columns++)
            check_transpose(kernels, 2, rows, columns);
    check_transpose(kernels, 0, 3, 4);
    for (size_t n = 1; n <= 40; n++)
        check_interchange(kernels, 3, 5, n);
    check_interchange(kernels, 0, 5, 7);
}

static void every_number_arrives_where_it_belongs(void **state)
{
    (void)state;
    on_every_isa(check_sizes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_number_arrives_where_it_belongs, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
