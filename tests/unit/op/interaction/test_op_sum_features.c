#include "support/op_trial.h"

static ph_value sum(struct ph_builder *builder, ph_value x)
{
    return ph_sum_features(builder, ph_reshape(builder, x, 2, (size_t[]){3, 2}));
}

static void sum_features_adds_the_vectors_of_a_sample(void **state)
{
    (void)state;
    const ph_real x[] = {1, 2, 3, 4, 5, 6, -1, 0, 1, 0, 7, 0};
    check_trial(&(struct op_trial){.batch = {.num_samples = 2, .num_dense = 6, .dense = x},
        .build = sum,
        .num_expected = 4,
        .expected = (double[]){9, 12, 7, 0}});
    check_trial(&(struct op_trial){.batch = {.num_dense = 6}, .build = sum});
}

static ph_value flat(struct ph_builder *builder, ph_value x)
{
    return ph_sum_features(builder, x);
}

static void sum_features_refuses_a_matrix(void **state)
{
    (void)state;
    assert_refused(flat, "needs x (B,F,D); got (B,12)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sum_features_adds_the_vectors_of_a_sample),
        cmocka_unit_test(sum_features_refuses_a_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
