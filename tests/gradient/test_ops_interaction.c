#include "gradient/gradient_check.h"

static ph_value fm_of_many(struct ph_builder *builder, ph_value x)
{
    return ph_fm(builder, ph_reshape(builder, x, 2, (size_t[]){4, 5}));
}

static ph_value fm_of_one(struct ph_builder *builder, ph_value x)
{
    return ph_fm(builder, ph_reshape(builder, x, 2, (size_t[]){1, 20}));
}

static ph_value dot_with_first(struct ph_builder *builder, ph_value x)
{
    ph_value first = ph_slice(builder, x, 1, 0, 4);
    return ph_dot_interaction(builder, first, take_columns(builder, x, 4, 2, (size_t[]){4, 4}));
}

static ph_value dot_without_first(struct ph_builder *builder, ph_value x)
{
    return ph_dot_interaction(builder, 0, ph_reshape(builder, x, 2, (size_t[]){5, 4}));
}

static ph_value dot_of_two(struct ph_builder *builder, ph_value x)
{
    ph_value first = ph_slice(builder, x, 1, 0, 10);
    return ph_dot_interaction(builder, first, take_columns(builder, x, 10, 2, (size_t[]){1, 10}));
}

static void interactions_have_the_gradients_of_differences(void **state)
{
    (void)state;
    const struct gradient_case cases[] = {
        {.op = "fm", .build = fm_of_many},
        {.op = "fm", .build = fm_of_one},
        {.op = "dot_interaction", .build = dot_with_first},
        {.op = "dot_interaction", .build = dot_without_first},
        {.op = "dot_interaction", .build = dot_of_two},
    };
    const size_t batches[] = {0, 1, 5};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t j = 0; j < sizeof batches / sizeof batches[0]; j++) {
            struct gradient_case gradient_case = cases[i];
            gradient_case.num_dense = 20;
            gradient_case.num_samples = batches[j];
            check_gradients(&gradient_case);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interactions_have_the_gradients_of_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
