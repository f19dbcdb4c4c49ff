#include "gradient/gradient_check.h"

static ph_value scale(struct ph_builder *builder, ph_value x)
{
    return ph_scale(builder, x, -1.5);
}

static ph_value cross(struct ph_builder *builder, ph_value x)
{
    ph_value first = ph_slice(builder, x, 1, 0, 4);
    return ph_cross(builder, first, ph_slice(builder, x, 1, 4, 4), ph_sigmoid(builder, first));
}

static ph_value cross_of_one(struct ph_builder *builder, ph_value x)
{
    return ph_cross(builder, x, x, x);
}

/* What one multiplies the other divides: the gradient is that of the numbers, which pass unchanged. */
static ph_value scale_gradient(struct ph_builder *builder, ph_value x)
{
    return ph_scale_gradient(builder, ph_scale_gradient(builder, x, 4), 0.25);
}

static ph_value scale_rows(struct ph_builder *builder, ph_value x)
{
    return ph_scale_rows(builder, ph_slice(builder, x, 1, 0, 7), ph_slice(builder, x, 1, 7, 1));
}

static ph_value row_dots(struct ph_builder *builder, ph_value x)
{
    return ph_row_dots(builder, ph_slice(builder, x, 1, 0, 4), ph_slice(builder, x, 1, 4, 4));
}

static ph_value row_dots_of_one(struct ph_builder *builder, ph_value x)
{
    return ph_row_dots(builder, x, x);
}

static ph_value sum_last(struct ph_builder *builder, ph_value x)
{
    return ph_sum_last(builder, ph_reshape(builder, x, 2, (size_t[]){2, 4}));
}

static void crosses_have_the_gradients_of_differences(void **state)
{
    (void)state;
    const struct gradient_case cases[] = {
        {.op = "scale", .build = scale},
        {.op = "scale_gradient", .build = scale_gradient},
        {.op = "cross", .build = cross},
        {.op = "cross", .build = cross_of_one},
        {.op = "scale_rows", .build = scale_rows},
        {.op = "row_dots", .build = row_dots},
        {.op = "row_dots", .build = row_dots_of_one},
        {.op = "sum_last", .build = sum_last},
    };
    const size_t batches[] = {0, 1, 5};
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
        cmocka_unit_test(crosses_have_the_gradients_of_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
