#include "tensor/float16.h"
#include "unit/kernel/kernel_test.h"

enum { MAX_ROWS = 43 };

struct product {
    size_t rows, in_features, out_features;
    const float *x, *weight;
    const void *packed;
    const float *bias;
    bool is_bf16;
};

/* The weights are bf16 numbers where they are packed as such, so that packing changes none. */
static struct product make_product(size_t rows, size_t in_features, size_t out_features, bool is_bf16)
{
    const size_t bytes = ph__row_product_packed_bytes(out_features, in_features, is_bf16);
    void *packed = filled_floats((bytes + sizeof(float) - 1) / sizeof(float), NAN);
    float *weight = random_floats(out_features * in_features, -1, 1);
    for (size_t i = 0; is_bf16 && i < out_features * in_features; i++)
        weight[i] = ph__float_from_bfloat(ph__bfloat_from_float(weight[i]));
    ph__row_product_pack(out_features, in_features, false, is_bf16, weight, packed);
    return (struct product){rows, in_features, out_features, random_floats(rows * in_features, -1, 1), weight,
        packed, random_floats(out_features, -1, 1), is_bf16};
}

/* Rows [first, first + rows) */
static void run(const struct ph__kernels *kernels, const struct product *product, size_t first, size_t rows,
    const float *bias, float *y)
{
    const struct ph__row_product_args args = {rows, product->in_features, product->out_features,
        product->x + first * product->in_features, product->packed, bias, y, false, product->is_bf16};
    kernels->row_product(&args);
}

static void check_values(const struct product *product, const float *bias, const float *y)
{
    const size_t n = product->out_features, k = product->in_features;
    for (size_t i = 0; i < product->rows; i++) {
        for (size_t j = 0; j < n; j++) {
            double sum = bias != NULL ? (double)bias[j] : 0, size = fabs(sum);
            for (size_t l = 0; l < k; l++) {
                const double term = (double)product->x[i * k + l] * (double)product->weight[j * k + l];
                sum += term;
                size += fabs(term);
            }
            assert_near((double)y[i * n + j], sum, 1e-6 * (size + 1), 0);
        }
    }
}

static void check_shape(
    const struct ph__kernels *kernels, size_t in_features, size_t out_features, bool is_bf16)
{
    reset_arrays(NULL);
    const struct product product = make_product(MAX_ROWS, in_features, out_features, is_bf16);
    float *whole = filled_floats(MAX_ROWS * out_features, NAN);
    run(kernels, &product, 0, MAX_ROWS, NULL, whole);
    check_values(&product, NULL, whole);
    run(kernels, &product, 0, MAX_ROWS, product.bias, whole);
    check_values(&product, product.bias, whole);
    for (size_t rows = 1; rows <= MAX_ROWS; rows++) {
        float *part = filled_floats(rows * out_features, NAN);
        const size_t first = (MAX_ROWS - rows) / 2;
        run(kernels, &product, first, rows, product.bias, part);
        assert_memory_equal(part, whole + first * out_features, rows * out_features * sizeof *part);
    }
}

static void check_shapes(const struct ph__kernels *kernels)
{
    static const size_t inner[] = {1, 2, 13, 64};
    static const size_t outputs[] = {
        1, 5, 8, 15, 16, 17, 31, 32, 33, 40, 64, 65, 96, 127, 128, 200, 256, 257, 300};
    for (size_t k = 0; k < sizeof inner / sizeof *inner; k++)
        for (size_t n = 0; n < sizeof outputs / sizeof *outputs; n++)
            for (int is_bf16 = 0; is_bf16 < 2; is_bf16++)
                check_shape(kernels, inner[k], outputs[n], is_bf16);
}

static void rows_agree_with_sums_in_double_and_do_not_depend_on_each_other(void **state)
{
    (void)state;
    on_every_isa(check_shapes);
}

static void check_nothing(const struct ph__kernels *kernels)
{
    const struct product product = make_product(2, 0, 3, false);
    float y[6] = {0};
    run(kernels, &product, 0, 0, product.bias, NULL);
    run(kernels, &product, 0, 2, product.bias, y);
    assert_memory_equal(y, product.bias, 3 * sizeof *y); /* an empty sum */
    assert_memory_equal(y + 3, product.bias, 3 * sizeof *y);
}

static void no_rows_and_no_inputs_are_fine(void **state)
{
    (void)state;
    on_every_isa(check_nothing);
}

static void check_nan(const struct ph__kernels *kernels)
{
    struct product product = make_product(4, 9, 37, false);
    float *x = copied_floats((size_t)4 * 9, product.x), *y = filled_floats((size_t)4 * 37, 0);
    x[2 * 9 + 4] = NAN;
    product.x = x;
    run(kernels, &product, 0, 4, product.bias, y);
    for (size_t i = 0; i < (size_t)4 * 37; i++)
        assert_int_equal(isnan(y[i]) != 0, i / 37 == 2);
}

/* The relu of the same products, NaN and zeros included. */
static void check_rectified(const struct ph__kernels *kernels)
{
    static const size_t outputs[] = {5, 16, 37, 64, 100};
    for (size_t n = 0; n < sizeof outputs / sizeof *outputs; n++) {
        struct product product = make_product(MAX_ROWS, 9, outputs[n], false);
        const size_t count = MAX_ROWS * outputs[n];
        float *x = copied_floats((size_t)MAX_ROWS * 9, product.x);
        float *wanted = filled_floats(count, NAN), *y = filled_floats(count, NAN);
        x[2 * 9 + 4] = NAN;
        x[3 * 9 + 4] = INFINITY;
        product.x = x;
        run(kernels, &product, 0, MAX_ROWS, product.bias, wanted);
        kernels->relu(count, wanted, wanted);
        kernels->row_product(&(struct ph__row_product_args){
            MAX_ROWS, 9, outputs[n], x, product.packed, product.bias, y, true, false});
        assert_memory_equal(y, wanted, count * sizeof *y);
    }
}

static void rectified_products_have_the_bits_of_the_relu_kernel(void **state)
{
    (void)state;
    on_every_isa(check_rectified);
}

static void nan_stays_in_its_row(void **state)
{
    (void)state;
    on_every_isa(check_nan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            rows_agree_with_sums_in_double_and_do_not_depend_on_each_other, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(no_rows_and_no_inputs_are_fine, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(nan_stays_in_its_row, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(
            rectified_products_have_the_bits_of_the_relu_kernel, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
