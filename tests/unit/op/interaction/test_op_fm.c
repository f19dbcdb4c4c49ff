#include "support/op_trial.h"

static ph_value three_fields_of_two(struct ph_builder *builder, ph_value x)
{
    return ph_fm(builder, ph_reshape(builder, x, 2, (size_t[]){3, 2}));
}

/* <(1,2),(3,4)> + <(1,2),(5,6)> + <(3,4),(5,6)> = 11 + 17 + 39 */
static void fm_is_the_sum_of_all_pairwise_products(void **state)
{
    (void)state;
    const ph_real x[] = {1, 2, 3, 4, 5, 6, 0, 0, 1, 1, 0, 0};
    check_trial(&(struct op_trial){.batch = {.num_samples = 2, .num_dense = 6, .dense = x},
        .build = three_fields_of_two,
        .num_expected = 2,
        .expected = (double[]){67, 0}});
    check_trial(&(struct op_trial){.batch = {.num_dense = 6}, .build = three_fields_of_two});
}

static ph_value flat(struct ph_builder *builder, ph_value x)
{
    return ph_fm(builder, x);
}

static void fm_refuses_a_matrix(void **state)
{
    (void)state;
    assert_refused(flat, "needs x (B,F,D); got (B,12)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fm_is_the_sum_of_all_pairwise_products),
        cmocka_unit_test(fm_refuses_a_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
