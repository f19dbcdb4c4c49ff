#include "unit/op/product_trial.h"

static size_t f, d; /* the shape on trial: x (B,F,F*D) */

static ph_value pairs(struct ph_builder *builder, ph_value x)
{
    return ph_field_aware(builder, ph_reshape(builder, x, 2, (size_t[]){f, f * d}));
}

static size_t expect_pairs(size_t num_samples, const ph_real *x, const ph_real *parameters, double *y_out)
{
    (void)parameters;
    for (size_t b = 0; b < num_samples; b++, x += f * f * d)
        for (size_t i = 0; i < f; i++)
            for (size_t j = i + 1; j < f; j++)
                for (size_t e = 0; e < d; e++)
                    y_out[b] += (double)x[(i * f + j) * d + e] * (double)x[(j * f + i) * d + e];
    return num_samples;
}

/* The gradient as an operator of its own: the batch has x and dy (B,1). */
static ph_value pairs_backward(struct ph_builder *builder, ph_value x)
{
    const ph_value inputs[] = {ph_slice(builder, x, 1, f * f * d, 1), matrix_of(builder, x, 0, f, f * d)};
    return ph__emit1(builder, &ph__op_field_aware_backward, NULL, NULL, 0, 2, inputs);
}

static size_t expect_backward(size_t num_samples, const ph_real *x, const ph_real *parameters, double *y_out)
{
    (void)parameters;
    for (size_t b = 0; b < num_samples; b++, x += f * f * d + 1)
        for (size_t i = 0; i < f; i++)
            for (size_t j = 0; j < f; j++)
                for (size_t e = 0; e < d; e++)
                    *y_out++ = i == j ? 0 : (double)x[f * f * d] * (double)x[(j * f + i) * d + e];
    return num_samples * f * f * d;
}

static void check_shape(size_t num_samples, size_t num_fields, size_t dim)
{
    f = num_fields;
    d = dim;
    check_products(&(struct product_trial){
        .num_samples = num_samples, .num_dense = f * f * d, .build = pairs, .expect = expect_pairs});
    check_products(&(struct product_trial){.num_samples = num_samples,
        .num_dense = f * f * d + 1,
        .build = pairs_backward,
        .expect = expect_backward});
}

static void a_field_meets_every_other_by_the_vectors_meant_for_it(void **state)
{
    (void)state;
    check_shape(3, 1, 4); /* no pairs */
    check_shape(30, 2, 1);
    check_shape(50, 10, 10);
    check_shape(2, 27, 4);
    check_shape(0, 3, 2);
}

static ph_value rows_that_fields_do_not_divide(struct ph_builder *builder, ph_value x)
{
    return ph_field_aware(builder, ph_reshape(builder, x, 2, (size_t[]){3, 4}));
}

static void rows_that_the_fields_do_not_divide_are_refused(void **state)
{
    (void)state;
    assert_refused(rows_that_fields_do_not_divide, "needs x (B,F,F*D); got (B,3,4)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_meets_every_other_by_the_vectors_meant_for_it),
        cmocka_unit_test(rows_that_the_fields_do_not_divide_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
