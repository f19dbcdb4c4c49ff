#include "support/op_trial.h"

static ph_value halve_and_turn(struct ph_builder *builder, ph_value x)
{
    return ph_scale(builder, x, -0.5);
}

static void scale_multiplies_by_its_factor(void **state)
{
    (void)state;
    const ph_real x[] = {1, -2, 3, 0, 5, 6};
    check_trial(&(struct op_trial){.batch = {.num_samples = 2, .num_dense = 3, .dense = x},
        .build = halve_and_turn,
        .num_expected = 6,
        .expected = (double[]){-0.5, 1, -1.5, 0, -2.5, -3}});
    check_trial(&(struct op_trial){.batch = {.num_dense = 3}, .build = halve_and_turn});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scale_multiplies_by_its_factor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
