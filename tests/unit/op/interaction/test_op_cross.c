#include "support/op_trial.h"

static ph_value parts(struct ph_builder *builder, ph_value x)
{
    return ph_cross(
        builder, ph_slice(builder, x, 1, 0, 2), ph_slice(builder, x, 1, 2, 2), ph_slice(builder, x, 1, 4, 2));
}

static void cross_multiplies_and_adds(void **state)
{
    (void)state;
    const ph_real x[] = {1, 2, 3, 4, 5, 6, -7, 8, 0.5, 1, 2, 3};
    check_trial(&(struct op_trial){.batch = {.num_samples = 2, .num_dense = 6, .dense = x},
        .build = parts,
        .num_expected = 4,
        .expected = (double[]){8, 14, -1.5, 11}});
    check_trial(&(struct op_trial){.batch = {.num_dense = 6}, .build = parts});
}

static ph_value a_part(struct ph_builder *builder, ph_value x)
{
    return ph_cross(builder, x, x, ph_slice(builder, x, 1, 0, 2));
}

static void cross_refuses_other_shapes(void **state)
{
    (void)state;
    assert_refused(a_part, "needs real arrays of one shape; got (B,12), (B,12), (B,2)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cross_multiplies_and_adds),
        cmocka_unit_test(cross_refuses_other_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
