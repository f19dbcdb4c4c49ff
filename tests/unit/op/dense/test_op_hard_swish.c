#include "support/op_trial.h"

static ph_value hard_swish(struct ph_builder *builder, ph_value x)
{
    return ph_hard_swish(builder, x);
}

static void hard_swish_is_zero_below_the_identity_above_and_a_parabola_between(void **state)
{
    (void)state;
    const ph_real x[] = {-4, -3, -1, 0, 2, 5};
    struct op_trial trial = {.batch = {.num_samples = 2, .num_dense = 3, .dense = x},
        .build = hard_swish,
        .num_expected = 6,
        .expected = (double[]){0, 0, -1.0 / 3, 0, 5.0 / 3, 5}};
    check_trial(&trial);
    trial.mode = PH_INFERENCE;
    check_trial(&trial);
    check_trial(&(struct op_trial){.batch = {.num_dense = 3}, .build = hard_swish});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hard_swish_is_zero_below_the_identity_above_and_a_parabola_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
