/* Products of small matrices against sums in double: every number of rows and columns up to more than a block
 * has, A lying either way, gaps between rows untouched; and in one call or in several, with the same bits. */
#include "unit/kernel/kernel_test.h"

enum { MAX_ROWS = 29, MAX_COLUMNS = 70, GAP = 3, MAX_INNER = 37, COUNT = 2 };

/* A pair's matrices with room for the largest; C's rows lie GAP numbers apart. */
struct fixture {
    struct ph__small_product_args args;
    float *a, *b, *c, *bias;
};

static struct fixture make_fixture(size_t rows, size_t inner, size_t columns, bool is_a_transposed)
{
    struct fixture fixture = {.a = random_floats(COUNT * rows * inner, -1, 1),
        .b = random_floats(COUNT * inner * columns, -1, 1),
        .c = filled_floats(COUNT * rows * (columns + GAP), NAN),
        .bias = random_floats(rows, -1, 1)};
    fixture.args = (struct ph__small_product_args){.count = COUNT,
        .rows = rows,
        .inner = inner,
        .columns = columns,
        .a = fixture.a,
        .a_row_stride = is_a_transposed ? 1 : inner,
        .a_inner_stride = is_a_transposed ? rows : 1,
        .a_step = rows * inner,
        .b = fixture.b,
        .b_stride = columns,
        .b_step = inner * columns,
        .c = fixture.c,
        .c_stride = columns + GAP,
        .c_step = rows * (columns + GAP)};
    return fixture;
}

static double expected(const struct ph__small_product_args *args, size_t pair, size_t row, size_t column)
{
    const float *a = args->a + pair * args->a_step + row * args->a_row_stride;
    const float *b = args->b + pair * args->b_step + column;
    double sum = args->bias != NULL ? (double)args->bias[row] : 0;
    for (size_t k = 0; k < args->inner; k++)
        sum += (double)a[k * args->a_inner_stride] * (double)b[k * args->b_stride];
    return sum;
}

/* C times `times`, and nothing else. */
static void check_result(const struct ph__small_product_args *args, double times)
{
    for (size_t pair = 0; pair < args->count; pair++) {
        for (size_t row = 0; row < args->rows; row++) {
            const float *c = args->c + pair * args->c_step + row * args->c_stride;
            for (size_t column = 0; column < args->columns; column++)
                assert_near((double)c[column], times * expected(args, pair, row, column), 1e-5, 1e-5);
            for (size_t gap = 0; gap < GAP; gap++)
                assert_true(isnan(c[args->columns + gap]));
        }
    }
}

static void check_product(const struct ph__kernels *kernels, size_t rows, size_t inner, size_t columns)
{
    for (int is_a_transposed = 0; is_a_transposed < 2; is_a_transposed++) {
        reset_arrays(NULL);
        struct fixture fixture = make_fixture(rows, inner, columns, is_a_transposed);
        kernels->small_product(&fixture.args);
        check_result(&fixture.args, 1);
        fixture.args.is_added = true;
        kernels->small_product(&fixture.args);
        check_result(&fixture.args, 2);
        fixture.args.is_added = false;
        fixture.args.bias = fixture.bias;
        kernels->small_product(&fixture.args);
        check_result(&fixture.args, 1);
    }
}

static void check_sizes(const struct ph__kernels *kernels)
{
    const size_t inners[] = {0, 1, 10, MAX_INNER};
    for (size_t i = 0; i < sizeof inners / sizeof *inners; i++)
        for (size_t rows = 1; rows <= MAX_ROWS; rows++)
            for (size_t columns = 1; columns <= MAX_COLUMNS; columns += columns < 20 ? 1 : 7)
                check_product(kernels, rows, inners[i], columns);
    check_product(kernels, 128, 9, 128);
}

static void products_of_every_size_are_sums_over_the_inner_dimension(void **state)
{
    (void)state;
    on_every_isa(check_sizes);
}

/* The inner dimension in two parts, and one column by itself. */
static void check_parts(const struct ph__kernels *kernels)
{
    struct fixture fixture = make_fixture(MAX_ROWS, MAX_INNER, MAX_COLUMNS, false);
    const size_t numbers = COUNT * fixture.args.c_step, column = MAX_COLUMNS / 2;
    fixture.args.bias = fixture.bias;
    kernels->small_product(&fixture.args);
    const float *whole = copied_floats(numbers, fixture.c);

    struct ph__small_product_args part = fixture.args;
    part.c = filled_floats(numbers, NAN);
    part.inner = MAX_INNER / 3;
    kernels->small_product(&part);
    part.is_added = true;
    part.a += part.inner * part.a_inner_stride;
    part.b += part.inner * part.b_stride;
    part.inner = MAX_INNER - part.inner;
    kernels->small_product(&part);
    assert_memory_equal(whole, part.c, numbers * sizeof *whole);

    part = fixture.args;
    part.c = filled_floats(numbers, NAN);
    part.b += column;
    part.c += column;
    part.columns = 1;
    kernels->small_product(&part);
    for (size_t row = 0; row < MAX_ROWS; row++)
        assert_memory_equal(
            part.c + row * part.c_stride, whole + row * part.c_stride + column, sizeof *whole);
}

static void how_a_product_is_cut_does_not_change_its_bits(void **state)
{
    (void)state;
    on_every_isa(check_parts);
}

static void check_shared(const struct ph__kernels *kernels)
{
    struct fixture fixture = make_fixture(5, 7, 11, false);
    fixture.args.a_step = 0;
    kernels->small_product(&fixture.args);
    check_result(&fixture.args, 1);
    fixture.args.count = 0;
    fixture.args.a = fixture.args.b = NULL;
    fixture.args.c = NULL;
    kernels->small_product(&fixture.args);
}

static void a_step_of_zero_multiplies_one_matrix_with_all(void **state)
{
    (void)state;
    on_every_isa(check_shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            products_of_every_size_are_sums_over_the_inner_dimension, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            how_a_product_is_cut_does_not_change_its_bits, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            a_step_of_zero_multiplies_one_matrix_with_all, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
