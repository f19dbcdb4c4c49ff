#include "unit/op/product_trial.h"

/* The shape on trial: x (B,n,d), weight (m,n). */
static size_t n, m, d;
static bool has_bias;

static ph_value mix(struct ph_builder *builder, ph_value x)
{
    ph_value weight = learnt(builder, "weight", 2, (size_t[]){m, n});
    ph_value bias = has_bias ? learnt(builder, "bias", 1, (size_t[]){m}) : 0;
    return ph_mix_fields(builder, ph_reshape(builder, x, 2, (size_t[]){n, d}), weight, bias);
}

static size_t expect_mix(size_t num_samples, const ph_real *x, const ph_real *parameters, double *y_out)
{
    for (size_t b = 0; b < num_samples; b++)
        for (size_t i = 0; i < m; i++)
            for (size_t k = 0; k < d; k++) {
                double sum = has_bias ? (double)parameters[m * n + i] : 0;
                for (size_t j = 0; j < n; j++)
                    sum += (double)parameters[i * n + j] * (double)x[(b * n + j) * d + k];
                *y_out++ = sum;
            }
    return num_samples * m * d;
}

/* The gradients as operators of their own: x (B,m,d), then (B,n,d), are the columns of the batch. */
static ph_value mix_backward_data(struct ph_builder *builder, ph_value x)
{
    ph_value weight = learnt(builder, "weight", 2, (size_t[]){m, n});
    const ph_value inputs[] = {matrix_of(builder, x, 0, m, d), weight};
    return ph__emit1(builder, &ph__op_mix_fields_backward_data, NULL, NULL, 0, 2, inputs);
}

static size_t expect_backward_data(
    size_t num_samples, const ph_real *x, const ph_real *parameters, double *y_out)
{
    for (size_t b = 0; b < num_samples; b++)
        for (size_t j = 0; j < n; j++)
            for (size_t k = 0; k < d; k++) {
                double sum = 0;
                for (size_t i = 0; i < m; i++)
                    sum += (double)parameters[i * n + j] * (double)x[(b * m + i) * d + k];
                *y_out++ = sum;
            }
    return num_samples * n * d;
}

static size_t which; /* output of the weight's gradient */

static ph_value mix_backward_weight(struct ph_builder *builder, ph_value x)
{
    const ph_value inputs[] = {matrix_of(builder, x, 0, m, d), matrix_of(builder, x, m * d, n, d)};
    ph_value outputs[2] = {0, 0};
    ph__emit(builder, &ph__op_mix_fields_backward_weight, NULL, NULL, 0, 2, inputs, 2, outputs);
    return outputs[which];
}

static size_t expect_backward_weight(
    size_t num_samples, const ph_real *x, const ph_real *parameters, double *y_out)
{
    (void)parameters;
    const size_t row = (m + n) * d, columns = which == 0 ? n : 1;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < columns; j++, y_out++)
            for (size_t b = 0; b < num_samples; b++)
                for (size_t k = 0; k < d; k++)
                    *y_out += (double)x[b * row + i * d + k] *
                              (which == 0 ? (double)x[b * row + m * d + j * d + k] : 1);
    return m * columns;
}

static void check_gradients_of_shape(size_t num_samples)
{
    check_products(&(struct product_trial){.num_samples = num_samples,
        .num_dense = m * d,
        .num_parameters = m * n,
        .build = mix_backward_data,
        .expect = expect_backward_data});
    for (which = 0; which < 2; which++)
        check_products(&(struct product_trial){.num_samples = num_samples,
            .num_dense = (m + n) * d,
            .build = mix_backward_weight,
            .expect = expect_backward_weight,
            .is_of_all_samples = true});
}

static void check_shape(size_t num_samples, size_t num_fields, size_t num_mixed, size_t dim)
{
    n = num_fields;
    m = num_mixed;
    d = dim;
    for (int with_bias = 0; with_bias < 2; with_bias++) {
        has_bias = with_bias;
        check_products(&(struct product_trial){.num_samples = num_samples,
            .num_dense = n * d,
            .num_parameters = m * n + (has_bias ? m : 0),
            .build = mix,
            .expect = expect_mix});
    }
    check_gradients_of_shape(num_samples);
}

static void vectors_are_weighted_sums_of_vectors(void **state)
{
    (void)state;
    check_shape(1, 1, 1, 1);
    check_shape(13, 10, 40, 10); /* blocks of samples, and a rest */
    check_shape(100, 10, 7, 10);
    check_shape(5, 27, 9, 16); /* samples as they stand */
    check_shape(3, 5, 40, 128);
    check_shape(2, 3, 4, 200);
    check_shape(0, 4, 5, 6);
}

static ph_value another_number_of_vectors(struct ph_builder *builder, ph_value x)
{
    ph_value weight = learnt(builder, "weight", 2, (size_t[]){5, 3});
    return ph_mix_fields(builder, matrix_of(builder, x, 0, 4, 3), weight, 0);
}

static ph_value bias_of_another_length(struct ph_builder *builder, ph_value x)
{
    ph_value weight = learnt(builder, "weight", 2, (size_t[]){5, 4});
    ph_value bias = learnt(builder, "bias", 1, (size_t[]){4});
    return ph_mix_fields(builder, matrix_of(builder, x, 0, 4, 3), weight, bias);
}

static ph_value no_outputs(struct ph_builder *builder, ph_value x)
{
    return ph_mix_fields(
        builder, matrix_of(builder, x, 0, 4, 3), learnt(builder, "weight", 2, (size_t[]){0, 4}), 0);
}

static void mixes_refuse_what_does_not_fit(void **state)
{
    (void)state;
    assert_refused(another_number_of_vectors, "bias (m) or none; got (B,4,3), (5,3), token");
    assert_refused(bias_of_another_length, "got (B,4,3), (5,4), (4)");
    assert_refused(no_outputs, "got (B,4,3), (0,4), token");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_weighted_sums_of_vectors),
        cmocka_unit_test(mixes_refuse_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
