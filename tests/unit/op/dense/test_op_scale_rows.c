#include "support/op_trial.h"

static ph_value scaled(struct ph_builder *builder, ph_value x)
{
    return ph_scale_rows(builder, ph_slice(builder, x, 1, 0, 2), ph_slice(builder, x, 1, 2, 1));
}

static ph_value dots(struct ph_builder *builder, ph_value x)
{
    return ph_row_dots(builder, ph_slice(builder, x, 1, 0, 2), ph_slice(builder, x, 1, 1, 2));
}

static const ph_real x[] = {1, 2, 3, -4, 5, 0.5};

static void scale_rows_multiplies_each_row_by_its_own_factor(void **state)
{
    (void)state;
    check_trial(&(struct op_trial){.batch = {.num_samples = 2, .num_dense = 3, .dense = x},
        .build = scaled,
        .num_expected = 4,
        .expected = (double[]){3, 6, -2, 2.5}});
    check_trial(&(struct op_trial){.batch = {.num_dense = 3}, .build = scaled});
}

static void row_dots_sums_the_products_of_a_row(void **state)
{
    (void)state;
    check_trial(&(struct op_trial){.batch = {.num_samples = 2, .num_dense = 3, .dense = x},
        .build = dots,
        .num_expected = 2,
        .expected = (double[]){8, -17.5}});
    check_trial(&(struct op_trial){.batch = {.num_dense = 3}, .build = dots});
}

static ph_value two_factors(struct ph_builder *builder, ph_value value)
{
    return ph_scale_rows(builder, value, ph_slice(builder, value, 1, 0, 2));
}

static ph_value two_widths(struct ph_builder *builder, ph_value value)
{
    return ph_row_dots(builder, value, ph_slice(builder, value, 1, 0, 2));
}

static void other_shapes_are_refused(void **state)
{
    (void)state;
    assert_refused(two_factors, "needs x (B,K), s (B,1); got (B,12), (B,2)");
    assert_refused(two_widths, "needs two arrays (B,K); got (B,12), (B,2)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scale_rows_multiplies_each_row_by_its_own_factor),
        cmocka_unit_test(row_dots_sums_the_products_of_a_row),
        cmocka_unit_test(other_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
