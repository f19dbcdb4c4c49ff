#include "support/op_trial.h"

static ph_value cube(struct ph_builder *builder, ph_value x, size_t begin, size_t rows, size_t columns)
{
    ph_value slice = ph_slice(builder, x, 1, begin, rows * columns);
    return ph_reshape(builder, slice, 2, (size_t[]){rows, columns});
}

static ph_value features(struct ph_builder *builder, ph_value x)
{
    const ph_value parts[] = {cube(builder, x, 2, 2, 2), cube(builder, x, 0, 1, 2)};
    return ph_concat(builder, 2, parts, 1);
}

static ph_value columns(struct ph_builder *builder, ph_value x)
{
    const ph_value parts[] = {cube(builder, x, 0, 2, 2), cube(builder, x, 4, 2, 1)};
    return ph_concat(builder, 2, parts, 2);
}

static void concat_joins_along_its_axis(void **state)
{
    (void)state;
    const ph_real x[] = {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60};
    struct op_trial trial = {.batch = {.num_samples = 2, .num_dense = 6, .dense = x}, .num_expected = 12};
    trial.build = features;
    trial.expected = (double[]){3, 4, 5, 6, 1, 2, 30, 40, 50, 60, 10, 20};
    check_trial(&trial);
    trial.build = columns;
    trial.expected = (double[]){1, 2, 5, 3, 4, 6, 10, 20, 50, 30, 40, 60};
    check_trial(&trial);
    check_trial(&(struct op_trial){.batch = {.num_dense = 6}, .build = columns});
}

static ph_value along_the_batch(struct ph_builder *builder, ph_value x)
{
    return ph_concat(builder, 2, (ph_value[]){x, x}, 0);
}

static ph_value other_widths(struct ph_builder *builder, ph_value x)
{
    const ph_value parts[] = {cube(builder, x, 0, 2, 3), cube(builder, x, 0, 2, 2)};
    return ph_concat(builder, 2, parts, 1);
}

static ph_value nothing(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return ph_concat(builder, 0, NULL, 1);
}

static void concat_refuses_what_does_not_agree(void **state)
{
    (void)state;
    assert_refused(along_the_batch, "not the first; got (B,12), (B,12)");
    assert_refused(other_widths, "got (B,2,3), (B,2,2)");
    assert_refused(nothing, "needs at least one array");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(concat_joins_along_its_axis),
        cmocka_unit_test(concat_refuses_what_does_not_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
