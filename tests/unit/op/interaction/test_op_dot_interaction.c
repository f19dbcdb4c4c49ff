#include "support/op_trial.h"

static ph_value cube(struct ph_builder *builder, ph_value x, size_t begin, size_t features)
{
    ph_value columns = ph_slice(builder, x, 1, begin, features * 2);
    return ph_reshape(builder, columns, 2, (size_t[]){features, 2});
}

static ph_value three_without_first(struct ph_builder *builder, ph_value x)
{
    return ph_dot_interaction(builder, 0, cube(builder, x, 0, 3));
}

static ph_value two_behind_first(struct ph_builder *builder, ph_value x)
{
    return ph_dot_interaction(builder, ph_slice(builder, x, 1, 0, 2), cube(builder, x, 2, 2));
}

static const ph_real samples[] = {1, 2, 3, 4, 5, 6, 1, 0, 0, 1, 2, 2};

static void dot_interaction_is_the_lower_triangle_in_row_order(void **state)
{
    (void)state;
    check_trial(&(struct op_trial){.batch = {.num_samples = 2, .num_dense = 6, .dense = samples},
        .build = three_without_first,
        .num_expected = 6,
        .expected = (double[]){11, 17, 39, 0, 2, 2}});
}

static void the_first_vector_comes_before_the_products(void **state)
{
    (void)state;
    check_trial(&(struct op_trial){.batch = {.num_samples = 2, .num_dense = 6, .dense = samples},
        .build = two_behind_first,
        .num_expected = 10,
        .expected = (double[]){1, 2, 11, 17, 39, 1, 0, 0, 2, 2}});
    check_trial(&(struct op_trial){.batch = {.num_dense = 6}, .build = two_behind_first});
}

static ph_value a_single_vector(struct ph_builder *builder, ph_value x)
{
    return ph_dot_interaction(builder, 0, cube(builder, x, 0, 1));
}

static ph_value a_longer_first(struct ph_builder *builder, ph_value x)
{
    return ph_dot_interaction(builder, ph_slice(builder, x, 1, 0, 3), cube(builder, x, 0, 3));
}

static void dot_interaction_refuses_what_has_no_products(void **state)
{
    (void)state;
    assert_refused(a_single_vector, "at least two vectors; got token, (B,1,2)");
    assert_refused(a_longer_first, "got (B,3), (B,3,2)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dot_interaction_is_the_lower_triangle_in_row_order),
        cmocka_unit_test(the_first_vector_comes_before_the_products),
        cmocka_unit_test(dot_interaction_refuses_what_has_no_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
