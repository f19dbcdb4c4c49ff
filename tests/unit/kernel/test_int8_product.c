#include "unit/kernel/kernel_test.h"

enum { MAX_ROWS = 31 };

struct product {
    size_t rows, in_features, out_features;
    const float *x, *weight, *bias; /* x (rows,K), weight (N,K) */
    bool is_transposed, is_rectified;
};

/* ---- the oracle: levels and sums, written out ---- */

static float scale_of(size_t count, const float *numbers)
{
    float largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmaxf(largest, fabsf(numbers[i]));
    return largest / 127;
}

static long level_of(float number, float scale)
{
    return scale > 0 ? lrintf(number / scale) : 0;
}

static float *expect(const struct product *product)
{
    const size_t inner = product->in_features, outputs = product->out_features;
    float *y = filled_floats(product->rows * outputs, NAN);
    for (size_t r = 0; r < product->rows; r++)
        for (size_t n = 0; n < outputs; n++) {
            const float *x = product->x + r * inner, *weight = product->weight + n * inner;
            const float x_scale = scale_of(inner, x), weight_scale = scale_of(inner, weight);
            const float bias = product->bias != NULL ? product->bias[n] : 0;
            long sum = 0;
            for (size_t k = 0; k < inner; k++)
                sum += level_of(x[k], x_scale) * level_of(weight[k], weight_scale);
            const float number = fmaf(x_scale * weight_scale, (float)sum, bias);
            y[r * outputs + n] = product->is_rectified ? fmaxf(number, 0) : number;
        }
    return y;
}

/* ---- the kernels ---- */

static const float *transposed(const struct product *product)
{
    float *weight = filled_floats(product->in_features * product->out_features, NAN);
    for (size_t n = 0; n < product->out_features; n++)
        for (size_t k = 0; k < product->in_features; k++)
            weight[k * product->out_features + n] = product->weight[n * product->in_features + k];
    return weight;
}

static void *pack(const struct ph__kernels *kernels, const struct product *product)
{
    /* From where malloc aligns it, as callers have it: scales and offsets are aligned numbers. */
    void *packed = malloc(ph__int8_packed_bytes(product->out_features, product->in_features) + 1);
    assert_non_null(packed);
    kernels->int8_pack(&(struct ph__int8_pack_args){product->out_features, product->in_features,
        product->is_transposed ? transposed(product) : product->weight, product->is_transposed, packed});
    return packed;
}

/* Computes rows [first, first + rows). */
static void run(const struct ph__kernels *kernels, const struct product *product, const void *packed,
    size_t first, size_t rows, bool has_dot, float *y)
{
    const size_t stride = ph__int8_stride(product->in_features);
    int8_t *levels = new_array(rows * stride, 1);
    float *scales = filled_floats(rows, NAN);
    memset(levels, 77, rows * stride); /* what lies beyond the terms is not used */
    for (size_t r = 0; r < rows; r++)
        scales[r] = kernels->int8_narrow(
            product->in_features, product->x + (first + r) * product->in_features, levels + r * stride);
    kernels->int8_product(&(struct ph__int8_product_args){.rows = rows,
        .in_features = product->in_features,
        .out_features = product->out_features,
        .x = levels,
        .x_scales = scales,
        .packed = packed,
        .bias = product->bias,
        .y = y,
        .is_rectified = product->is_rectified,
        .has_dot = has_dot});
}

/* Compares whole products and parts of them with the oracle, bit for bit. */
static void check(const struct ph__kernels *kernels, const struct product *product)
{
    const size_t outputs = product->out_features;
    const float *wanted = expect(product);
    void *packed = pack(kernels, product);
    for (int has_dot = 0; has_dot <= (int)ph__cpu_has_int8_dot(); has_dot++)
        for (size_t rows = 1; rows <= product->rows; rows++) {
            const size_t first = (product->rows - rows) / 2;
            float *y = filled_floats(rows * outputs, NAN);
            run(kernels, product, packed, first, rows, has_dot, y);
            assert_memory_equal(y, wanted + first * outputs, rows * outputs * sizeof *y);
        }
    free(packed);
}

static struct product make_product(size_t rows, size_t in_features, size_t out_features)
{
    reset_arrays(NULL);
    return (struct product){rows, in_features, out_features, random_floats(rows * in_features, -1, 3),
        random_floats(out_features * in_features, -2, 1), random_floats(out_features, -1, 1), false, false};
}

static void check_shapes(const struct ph__kernels *kernels)
{
    static const size_t inner[] = {1, 2, 3, 4, 13, 64, 131}, outputs[] = {1, 7, 16, 31, 32, 33, 64, 65, 100};
    for (size_t k = 0; k < sizeof inner / sizeof *inner; k++)
        for (size_t n = 0; n < sizeof outputs / sizeof *outputs; n++) {
            struct product product = make_product(MAX_ROWS, inner[k], outputs[n]);
            product.is_transposed = (k + n) % 2 == 1;
            product.is_rectified = n % 3 == 2;
            if (n % 4 == 3)
                product.bias = NULL;
            check(kernels, &product);
        }
}

static void sums_are_exact_whatever_the_cut_and_the_isa(void **state)
{
    (void)state;
    on_every_isa(check_shapes);
}

/* The longest sums of the largest levels, of one sign: sixteen bits, and 128 more a level, must not overflow.
 */
static void check_extremes(const struct ph__kernels *kernels)
{
    struct product product = make_product(3, PH_INT8_MOST_TERMS, 5);
    product.x = filled_floats(product.rows * product.in_features, 1);
    product.weight = filled_floats(product.out_features * product.in_features, 1);
    check(kernels, &product);
    product.x = filled_floats(product.rows * product.in_features, -1);
    check(kernels, &product);
}

static void the_longest_sums_do_not_overflow(void **state)
{
    (void)state;
    on_every_isa(check_extremes);
}

/* Rows of zeros give the bias; a row or an output with a number that is not finite gives NaN, alone. */
static void check_special(const struct ph__kernels *kernels)
{
    struct product product = make_product(4, 21, 37);
    float *x = copied_floats((size_t)4 * 21, product.x), y[4 * 37];
    float *weight = copied_floats((size_t)37 * 21, product.weight);
    memset(x + 21, 0, 21 * sizeof *x);
    memset(weight + 21, 0, 21 * sizeof *weight);
    x[2 * 21 + 4] = NAN;
    weight[3 * 21 + 20] = INFINITY;
    product.x = x;
    product.weight = weight;
    for (int way = 0; way < 4; way++) {
        product.is_transposed = way % 2 == 1;
        void *packed = pack(kernels, &product);
        run(kernels, &product, packed, 0, 4, way >= 2 && ph__cpu_has_int8_dot(), y);
        free(packed);
        for (size_t r = 0; r < 4; r++)
            for (size_t n = 0; n < 37; n++) {
                assert_int_equal(isnan(y[r * 37 + n]) != 0, r == 2 || n == 3);
                if (r != 2 && n != 3 && (r == 1 || n == 1))
                    assert_true(y[r * 37 + n] == product.bias[n]);
            }
    }
}

static void what_is_not_finite_stays_in_its_row_and_output(void **state)
{
    (void)state;
    on_every_isa(check_special);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(sums_are_exact_whatever_the_cut_and_the_isa, reset_arrays),
        cmocka_unit_test_teardown(the_longest_sums_do_not_overflow, reset_arrays),
        cmocka_unit_test_teardown(what_is_not_finite_stays_in_its_row_and_output, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
