#include "support/op_trial.h"

static ph_value relu(struct ph_builder *builder, ph_value x)
{
    return ph_relu(builder, x);
}

static void relu_is_zero_below_zero(void **state)
{
    (void)state;
    const ph_real x[] = {-1, 0, 2, -3, 4, (ph_real)-0.5};
    check_trial(&(struct op_trial){.batch = {.num_samples = 2, .num_dense = 3, .dense = x},
        .build = relu,
        .num_expected = 6,
        .expected = (double[]){0, 0, 2, 0, 4, 0}});
    check_trial(&(struct op_trial){.batch = {.num_dense = 3}, .build = relu});
}

static ph_value of_ids(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return ph_relu(builder, ph_input_ids(builder, 2));
}

static void relu_refuses_what_is_no_array_of_reals(void **state)
{
    (void)state;
    assert_refused(of_ids, "needs a real array; got jagged");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relu_is_zero_below_zero),
        cmocka_unit_test(relu_refuses_what_is_no_array_of_reals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
