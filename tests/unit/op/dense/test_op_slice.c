#include "support/op_trial.h"

static ph_value middle(struct ph_builder *builder, ph_value x)
{
    return ph_slice(builder, x, 1, 1, 2);
}

static ph_value second_feature(struct ph_builder *builder, ph_value x)
{
    return ph_slice(builder, ph_reshape(builder, x, 2, (size_t[]){2, 2}), 1, 1, 1);
}

static ph_value second_column(struct ph_builder *builder, ph_value x)
{
    return ph_slice(builder, ph_reshape(builder, x, 2, (size_t[]){2, 2}), 2, 1, 1);
}

static void slice_cuts_a_range_of_its_axis(void **state)
{
    (void)state;
    const ph_real x[] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct op_trial trial = {.batch = {.num_samples = 2, .num_dense = 4, .dense = x}, .num_expected = 4};
    trial.build = middle;
    trial.expected = (double[]){2, 3, 6, 7};
    check_trial(&trial);
    trial.build = second_feature;
    trial.expected = (double[]){3, 4, 7, 8};
    check_trial(&trial);
    trial.build = second_column;
    trial.expected = (double[]){2, 4, 6, 8};
    check_trial(&trial);
    check_trial(&(struct op_trial){.batch = {.num_dense = 4}, .build = middle});
}

static ph_value past_the_end(struct ph_builder *builder, ph_value x)
{
    return ph_slice(builder, x, 1, 11, 2);
}

static ph_value wrapped_around(struct ph_builder *builder, ph_value x)
{
    return ph_slice(builder, x, 1, 1, SIZE_MAX);
}

static ph_value no_such_axis(struct ph_builder *builder, ph_value x)
{
    return ph_slice(builder, x, 2, 0, 1);
}

static void slice_refuses_what_is_not_there(void **state)
{
    (void)state;
    assert_refused(past_the_end, "[11, 11 + 2) of dimension 1 lies outside its 12 elements");
    assert_refused(wrapped_around, "lies outside its 12 elements");
    assert_refused(no_such_axis, "got (B,12)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slice_cuts_a_range_of_its_axis),
        cmocka_unit_test(slice_refuses_what_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
