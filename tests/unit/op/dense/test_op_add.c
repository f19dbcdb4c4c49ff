#include "support/op_trial.h"

static const struct ph_init zeros = {PH_INIT_CONSTANT, 0};

static ph_value to_itself(struct ph_builder *builder, ph_value x)
{
    return ph_add(builder, x, x);
}

static ph_value a_row(struct ph_builder *builder, ph_value x)
{
    ph_value row = ph_parameter(builder, "row", 1, (size_t[]){2}, zeros);
    return ph_add(builder, ph_reshape(builder, x, 2, (size_t[]){2, 2}), row);
}

static void add_adds_elements_or_a_row(void **state)
{
    (void)state;
    const ph_real x[] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct op_trial trial = {.batch = {.num_samples = 2, .num_dense = 4, .dense = x},
        .parameters = (ph_real[]){10, 20},
        .num_expected = 8};
    trial.build = to_itself;
    trial.expected = (double[]){2, 4, 6, 8, 10, 12, 14, 16};
    check_trial(&trial);
    trial.build = a_row;
    trial.expected = (double[]){11, 22, 13, 24, 15, 26, 17, 28};
    check_trial(&trial);
    check_trial(
        &(struct op_trial){.batch = {.num_dense = 4}, .parameters = (ph_real[]){10, 20}, .build = a_row});
}

static ph_value a_longer_row(struct ph_builder *builder, ph_value x)
{
    return ph_add(builder, x, ph_parameter(builder, "row", 1, (size_t[]){13}, zeros));
}

static void add_refuses_shapes_that_do_not_fit(void **state)
{
    (void)state;
    assert_refused(a_longer_row, "needs two arrays of one shape, or (...,K) and (K); got (B,12), (13)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add_adds_elements_or_a_row),
        cmocka_unit_test(add_refuses_shapes_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
