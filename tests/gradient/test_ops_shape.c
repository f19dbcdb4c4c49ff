#include "gradient/gradient_check.h"

static ph_value concat_columns(struct ph_builder *builder, ph_value x)
{
    const ph_value parts[] = {
        ph_slice(builder, x, 1, 4, 3), ph_sigmoid(builder, x), ph_slice(builder, x, 1, 0, 1)};
    return ph_concat(builder, 3, parts, 1);
}

/* (B,3,2), (B,1,2), (B,1,2) along the features, and (B,3,2), (B,3,1) along the last dimension */
static ph_value concat_features(struct ph_builder *builder, ph_value x)
{
    const ph_value parts[] = {take_columns(builder, x, 0, 2, (size_t[]){3, 2}),
        take_columns(builder, x, 6, 2, (size_t[]){1, 2}), take_columns(builder, x, 6, 2, (size_t[]){1, 2})};
    return ph_concat(builder, 3, parts, 1);
}

static ph_value concat_last(struct ph_builder *builder, ph_value x)
{
    const ph_value parts[] = {
        take_columns(builder, x, 0, 2, (size_t[]){3, 2}), take_columns(builder, x, 5, 2, (size_t[]){3, 1})};
    return ph_concat(builder, 2, parts, 2);
}

static ph_value slice_middle(struct ph_builder *builder, ph_value x)
{
    ph_value cube = ph_reshape(builder, x, 2, (size_t[]){4, 2});
    return ph_slice(builder, cube, 1, 1, 2);
}

static ph_value slice_last(struct ph_builder *builder, ph_value x)
{
    ph_value cube = ph_reshape(builder, x, 3, (size_t[]){2, 2, 2});
    return ph_slice(builder, cube, 3, 1, 1);
}

static ph_value reshape_twice(struct ph_builder *builder, ph_value x)
{
    ph_value cube = ph_reshape(builder, ph_sigmoid(builder, x), 3, (size_t[]){2, 2, 2});
    return ph_multiply(builder, ph_reshape(builder, cube, 1, (size_t[]){8}), x);
}

static ph_value sum_features(struct ph_builder *builder, ph_value x)
{
    return ph_sum_features(builder, ph_reshape(builder, x, 2, (size_t[]){4, 2}));
}

static ph_value sum_of_single_weights(struct ph_builder *builder, ph_value x)
{
    return ph_sum_features(builder, ph_reshape(builder, x, 2, (size_t[]){8, 1}));
}

static void joining_cutting_and_summing_have_the_gradients_of_differences(void **state)
{
    (void)state;
    const struct gradient_case cases[] = {
        {.op = "concat", .build = concat_columns},
        {.op = "concat", .build = concat_features},
        {.op = "concat", .build = concat_last},
        {.op = "slice", .build = slice_middle},
        {.op = "slice", .build = slice_last},
        {.op = "reshape", .build = reshape_twice},
        {.op = "sum_features", .build = sum_features},
        {.op = "sum_features", .build = sum_of_single_weights},
    };
    const size_t batches[] = {0, 1, 7};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t j = 0; j < sizeof batches / sizeof batches[0]; j++) {
            struct gradient_case gradient_case = cases[i];
            gradient_case.num_dense = 8;
            gradient_case.num_samples = batches[j];
            check_gradients(&gradient_case);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joining_cutting_and_summing_have_the_gradients_of_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
