#include "product_trial.h"

/* The shape on trial: op(a) (P,R) times op(b) (R,Q). */
static size_t p, r, q;
static bool is_a_transposed, is_b_transposed;

static ph_value product(struct ph_builder *builder, ph_value x)
{
    ph_value a = is_a_transposed ? matrix_of(builder, x, 0, r, p) : matrix_of(builder, x, 0, p, r);
    ph_value b = is_b_transposed ? matrix_of(builder, x, p * r, q, r) : matrix_of(builder, x, p * r, r, q);
    return ph_batch_product(builder, a, b, is_a_transposed, is_b_transposed);
}

static size_t expect_product(size_t num_samples, const ph_real *x, const ph_real *parameters, double *y_out)
{
    (void)parameters;
    for (size_t s = 0; s < num_samples; s++) {
        const ph_real *a = x + s * (p * r + r * q), *b = a + p * r;
        for (size_t i = 0; i < p; i++)
            for (size_t j = 0; j < q; j++) {
                double sum = 0;
                for (size_t k = 0; k < r; k++)
                    sum += (double)a[is_a_transposed ? k * p + i : i * r + k] *
                           (double)b[is_b_transposed ? j * r + k : k * q + j];
                *y_out++ = sum;
            }
    }
    return num_samples * p * q;
}

static void check_shape(size_t num_samples, size_t rows, size_t inner, size_t columns)
{
    p = rows;
    r = inner;
    q = columns;
    for (int transposed = 0; transposed < 4; transposed++) {
        is_a_transposed = transposed % 2 != 0;
        is_b_transposed = transposed / 2 != 0;
        check_products(&(struct product_trial){.num_samples = num_samples,
            .num_dense = p * r + r * q,
            .build = product,
            .expect = expect_product});
    }
}

static void products_are_sums_over_the_inner_dimension(void **state)
{
    (void)state;
    check_shape(1, 1, 1, 1);
    check_shape(70, 10, 10, 10); /* more samples than are laid the other way at a time */
    check_shape(9, 4, 16, 40);
    check_shape(3, 40, 17, 33);
    check_shape(2, 3, 70, 65); /* of a transposed b, a sample at a time */
    check_shape(0, 4, 5, 6);
}

static ph_value other_inner_dimension(struct ph_builder *builder, ph_value x)
{
    return ph_batch_product(
        builder, matrix_of(builder, x, 0, 2, 3), matrix_of(builder, x, 0, 2, 3), false, false);
}

static ph_value no_matrix(struct ph_builder *builder, ph_value x)
{
    return ph_batch_product(builder, x, matrix_of(builder, x, 0, 2, 3), false, false);
}

static void products_refuse_what_does_not_fit(void **state)
{
    (void)state;
    assert_refused(other_inner_dimension, "or either transposed; got (B,2,3), (B,2,3)");
    assert_refused(no_matrix, "got (B,12), (B,2,3)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_sums_over_the_inner_dimension),
        cmocka_unit_test(products_refuse_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
