#include "support/op_trial.h"

static ph_value halves(struct ph_builder *builder, ph_value x)
{
    return ph_multiply(builder, ph_slice(builder, x, 1, 0, 2), ph_slice(builder, x, 1, 2, 2));
}

static void multiply_multiplies_elements(void **state)
{
    (void)state;
    const ph_real x[] = {1, 2, 3, 4, 5, 6, -7, 8};
    check_trial(&(struct op_trial){.batch = {.num_samples = 2, .num_dense = 4, .dense = x},
        .build = halves,
        .num_expected = 4,
        .expected = (double[]){3, 8, -35, 48}});
    check_trial(&(struct op_trial){.batch = {.num_dense = 4}, .build = halves});
}

static ph_value a_part(struct ph_builder *builder, ph_value x)
{
    return ph_multiply(builder, x, ph_slice(builder, x, 1, 0, 2));
}

static void multiply_refuses_other_shapes(void **state)
{
    (void)state;
    assert_refused(a_part, "needs real arrays of one shape; got (B,12), (B,2)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multiply_multiplies_elements),
        cmocka_unit_test(multiply_refuses_other_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
