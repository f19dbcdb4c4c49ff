#include "unit/op/product_trial.h"

/* The shape on trial: x (B,h,d), first (B,m,d), weight (k,h*m). */
static size_t h, m, k, d;

static ph_value cin(struct ph_builder *builder, ph_value x)
{
    ph_value weight = learnt(builder, "weight", 2, (size_t[]){k, h * m});
    ph_value bias = learnt(builder, "bias", 1, (size_t[]){k});
    return ph_cin(builder, matrix_of(builder, x, 0, h, d), matrix_of(builder, x, h * d, m, d), weight, bias);
}

static size_t expect_cin(size_t num_samples, const ph_real *x, const ph_real *parameters, double *y_out)
{
    for (size_t b = 0; b < num_samples; b++, x += (h + m) * d)
        for (size_t o = 0; o < k; o++)
            for (size_t c = 0; c < d; c++) {
                double sum = (double)parameters[k * h * m + o];
                for (size_t i = 0; i < h; i++)
                    for (size_t j = 0; j < m; j++)
                        sum += (double)parameters[(o * h + i) * m + j] * (double)x[i * d + c] *
                               (double)x[(h + j) * d + c];
                *y_out++ = sum;
            }
    return num_samples * k * d;
}

/* The gradients as operators of their own: the batch has x, first and dy (B,k,d). */
static size_t which; /* output */

static ph_value cin_backward_data(struct ph_builder *builder, ph_value x)
{
    const ph_value inputs[] = {matrix_of(builder, x, (h + m) * d, k, d), matrix_of(builder, x, 0, h, d),
        matrix_of(builder, x, h * d, m, d), learnt(builder, "weight", 2, (size_t[]){k, h * m})};
    ph_value outputs[2] = {0, 0};
    ph__emit(builder, &ph__op_cin_backward_data, NULL, NULL, 0, 4, inputs, 2, outputs);
    return outputs[which];
}

static size_t expect_backward_data(
    size_t num_samples, const ph_real *x, const ph_real *parameters, double *y_out)
{
    const size_t rows = which == 0 ? h : m;
    for (size_t b = 0; b < num_samples; b++, x += (h + m + k) * d, y_out += rows * d)
        for (size_t o = 0; o < k; o++)
            for (size_t i = 0; i < h; i++)
                for (size_t j = 0; j < m; j++)
                    for (size_t c = 0; c < d; c++)
                        y_out[(which == 0 ? i : j) * d + c] += (double)parameters[(o * h + i) * m + j] *
                                                               (double)x[(h + m + o) * d + c] *
                                                               (double)x[(which == 0 ? h + j : i) * d + c];
    return num_samples * rows * d;
}

static ph_value cin_backward_weight(struct ph_builder *builder, ph_value x)
{
    const ph_value inputs[] = {matrix_of(builder, x, (h + m) * d, k, d), matrix_of(builder, x, 0, h, d),
        matrix_of(builder, x, h * d, m, d)};
    ph_value outputs[2] = {0, 0};
    ph__emit(builder, &ph__op_cin_backward_weight, NULL, NULL, 0, 3, inputs, 2, outputs);
    return outputs[which];
}

static size_t expect_backward_weight(
    size_t num_samples, const ph_real *x, const ph_real *parameters, double *y_out)
{
    (void)parameters;
    for (size_t b = 0; b < num_samples; b++, x += (h + m + k) * d)
        for (size_t o = 0; o < k; o++)
            for (size_t c = 0; c < d; c++) {
                const double dy = (double)x[(h + m + o) * d + c];
                if (which == 1)
                    y_out[o] += dy;
                for (size_t i = 0; i < h * m && which == 0; i++)
                    y_out[o * h * m + i] += dy * (double)x[i / m * d + c] * (double)x[(h + i % m) * d + c];
            }
    return which == 0 ? k * h * m : k;
}

static void check_shape(size_t num_samples, size_t num_x, size_t num_first, size_t outputs, size_t dim)
{
    h = num_x;
    m = num_first;
    k = outputs;
    d = dim;
    check_products(&(struct product_trial){.num_samples = num_samples,
        .num_dense = (h + m) * d,
        .num_parameters = k * h * m + k,
        .build = cin,
        .expect = expect_cin});
    for (which = 0; which < 2; which++) {
        check_products(&(struct product_trial){.num_samples = num_samples,
            .num_dense = (h + m + k) * d,
            .num_parameters = k * h * m,
            .build = cin_backward_data,
            .expect = expect_backward_data});
        check_products(&(struct product_trial){.num_samples = num_samples,
            .num_dense = (h + m + k) * d,
            .build = cin_backward_weight,
            .expect = expect_backward_weight,
            .is_of_all_samples = true});
    }
}

static void a_layer_weighs_the_products_of_all_pairs(void **state)
{
    (void)state;
    check_shape(1, 1, 1, 1, 1);
    check_shape(13, 20, 10, 16, 10); /* chunks of 60 rows, a rest of one; blocks of 8 samples, a rest of 5 */
    check_shape(140, 3, 10, 5, 10);  /* several parts of the weight's gradient */
    check_shape(3, 2, 70, 17, 16);   /* a vector of x fills a chunk */
    check_shape(2, 3, 4, 5, 130);
    check_shape(0, 3, 4, 5, 6);
}

static ph_value a_weight_of_too_few_products(struct ph_builder *builder, ph_value x)
{
    return ph_cin(builder, matrix_of(builder, x, 0, 2, 3), matrix_of(builder, x, 0, 4, 3),
        learnt(builder, "weight", 2, (size_t[]){5, 6}), 0);
}

static ph_value vectors_of_two_lengths(struct ph_builder *builder, ph_value x)
{
    return ph_cin(builder, matrix_of(builder, x, 0, 2, 3), matrix_of(builder, x, 0, 4, 2),
        learnt(builder, "weight", 2, (size_t[]){5, 8}), 0);
}

static ph_value no_outputs(struct ph_builder *builder, ph_value x)
{
    return ph_cin(builder, matrix_of(builder, x, 0, 2, 3), matrix_of(builder, x, 0, 4, 3),
        learnt(builder, "weight", 2, (size_t[]){0, 8}), 0);
}

static void layers_refuse_what_does_not_fit(void **state)
{
    (void)state;
    assert_refused(a_weight_of_too_few_products, "got (B,2,3), (B,4,3), (5,6), token");
    assert_refused(vectors_of_two_lengths, "got (B,2,3), (B,4,2), (5,8), token");
    assert_refused(no_outputs, "got (B,2,3), (B,4,3), (0,8), token");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_weighs_the_products_of_all_pairs),
        cmocka_unit_test(layers_refuse_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
