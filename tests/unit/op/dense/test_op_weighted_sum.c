#include "support/op_trial.h"

#include <math.h>

static ph_value loss(struct ph_builder *builder, ph_value x)
{
    return ph_bce_with_logits(builder, x, ph_input_labels(builder, 1), 0, 0);
}

static ph_value sum(struct ph_builder *builder, ph_value x)
{
    const ph_value losses[] = {loss(builder, x), loss(builder, ph_add(builder, x, x))};
    return ph_weighted_sum(builder, 2, losses, (double[]){3, -1});
}

static void a_weighted_sum_adds_scalars_times_factors(void **state)
{
    (void)state;
    const ph_real x = 1, label = 0;
    const double expected = 3 * log(1 + exp(1.0)) - log(1 + exp(2.0));
    check_trial(&(struct op_trial){
        .batch = {.num_samples = 1, .num_dense = 1, .num_tasks = 1, .dense = &x, .labels = &label},
        .build = sum,
        .num_expected = 1,
        .expected = &expected});
}

static ph_value of_arrays(struct ph_builder *builder, ph_value x)
{
    return ph_weighted_sum(builder, 1, &x, (double[]){1});
}

static ph_value of_nothing(struct ph_builder *builder, ph_value x)
{
    return ph_weighted_sum(builder, 0, &x, (double[]){1});
}

static void a_weighted_sum_refuses_arrays_and_nothing(void **state)
{
    (void)state;
    assert_refused(of_arrays, "needs scalars; got (B,12)");
    assert_refused(of_nothing, "needs at least one scalar");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_weighted_sum_adds_scalars_times_factors),
        cmocka_unit_test(a_weighted_sum_refuses_arrays_and_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
