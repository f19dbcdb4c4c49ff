/* Blocks of weight gradients against sums in double, and cut into several calls with the same bits, whether B
 * is asked for ahead, even beyond its end, or not. */
#include "unit/kernel/kernel_test.h"

enum { ROWS = PH_WEIGHT_MOST_ROWS, WIDTH = PH_WEIGHT_WIDE_COLUMNS + 9, STRIDE = WIDTH + 3, MAX_INNER = 70 };

static void check_block(const struct ph__kernels *kernels, size_t inner, size_t rows, size_t columns)
{
    reset_arrays(NULL);
    const float *a = random_floats(MAX_INNER * ROWS, -1, 1), *b = random_floats(MAX_INNER * WIDTH, -1, 1);
    float *c = filled_floats(ROWS * STRIDE, NAN), *part = filled_floats(ROWS * STRIDE, NAN);
    struct ph__weight_product_args args = {.inner = inner,
        .rows = rows,
        .columns = columns,
        .a = a,
        .a_stride = ROWS,
        .b = b,
        .b_stride = WIDTH,
        .c = c,
        .c_stride = STRIDE};
    kernels->weight_product(&args);
    for (size_t n = 0; n < ROWS; n++)
        for (size_t k = 0; k < STRIDE; k++) {
            double sum = 0;
            for (size_t m = 0; m < inner; m++)
                sum += (double)a[m * ROWS + n] * (double)b[m * WIDTH + k % WIDTH];
            if (n < rows && k < columns)
                assert_near((double)c[n * STRIDE + k], sum, 1e-5, 1e-5);
            else
                assert_true(isnan(c[n * STRIDE + k])); /* untouched */
        }
    args.c = part;
    args.inner = inner / 3;
    kernels->weight_product(&args);
    args.is_added = 1;
    args.fetched_samples = 16;
    args.a += inner / 3 * ROWS;
    args.b += inner / 3 * WIDTH;
    args.inner = inner - inner / 3;
    kernels->weight_product(&args);
    for (size_t n = 0; n < rows; n++)
        assert_memory_equal(c + n * STRIDE, part + n * STRIDE, columns * sizeof *c);
}

static void check_sizes(const struct ph__kernels *kernels)
{
    const size_t inners[] = {1, 7, 64, MAX_INNER};
    for (size_t i = 0; i < sizeof inners / sizeof *inners; i++)
        for (size_t rows = 1; rows <= ROWS; rows++)
            for (size_t columns = 1; columns <= WIDTH; columns++)
                check_block(kernels, inners[i], rows, columns);
}

static void blocks_of_every_size_are_sums_over_samples(void **state)
{
    (void)state;
    on_every_isa(check_sizes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            blocks_of_every_size_are_sums_over_samples, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
