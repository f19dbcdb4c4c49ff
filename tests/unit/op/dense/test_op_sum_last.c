#include "support/op_trial.h"

static ph_value sums(struct ph_builder *builder, ph_value x)
{
    return ph_sum_last(builder, ph_reshape(builder, x, 2, (size_t[]){2, 3}));
}

static void sum_last_sums_over_the_last_dimension(void **state)
{
    (void)state;
    const ph_real x[] = {1, 2, 3, 4, 5, 6, -1, 0.5, 0.25, 7, 8, -15};
    check_trial(&(struct op_trial){.batch = {.num_samples = 2, .num_dense = 6, .dense = x},
        .build = sums,
        .num_expected = 4,
        .expected = (double[]){6, 15, -0.25, 0}});
    check_trial(&(struct op_trial){.batch = {.num_dense = 6}, .build = sums});
}

static void a_row_a_sample_is_refused(void **state)
{
    (void)state;
    assert_refused(ph_sum_last, "needs x (B,...,K); got (B,12)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sum_last_sums_over_the_last_dimension),
        cmocka_unit_test(a_row_a_sample_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
