#include "support/op_trial.h"

#include <math.h>

static ph_value sigmoid(struct ph_builder *builder, ph_value x)
{
    return ph_sigmoid(builder, x);
}

static void sigmoid_is_exact_in_the_middle_and_flat_at_the_ends(void **state)
{
    (void)state;
    const ph_real x[] = {-1000, -1, 0, 1, 5, 1000};
    const double one = 1 / (1 + exp(-1.0));
    check_trial(&(struct op_trial){.batch = {.num_samples = 2, .num_dense = 3, .dense = x},
        .build = sigmoid,
        .num_expected = 6,
        .expected = (double[]){0, 1 - one, 0.5, one, 1 / (1 + exp(-5.0)), 1}});
    check_trial(&(struct op_trial){.batch = {.num_dense = 3}, .build = sigmoid});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sigmoid_is_exact_in_the_middle_and_flat_at_the_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
