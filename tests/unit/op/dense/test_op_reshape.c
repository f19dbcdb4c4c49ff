#include "support/op_trial.h"

static ph_value cube(struct ph_builder *builder, ph_value x)
{
    return ph_reshape(builder, x, 2, (size_t[]){3, 2});
}

static void assert_shape(struct ph_workspace *workspace, const struct ph_state *state)
{
    (void)state;
    const ph_real *data = NULL;
    struct ph_shape shape;
    assert_ok(ph_workspace_output(workspace, "y", &data, &shape));
    assert_int_equal(shape.num_dims, 3);
    assert_int_equal(shape.dims[0], 2);
    assert_int_equal(shape.dims[1], 3);
    assert_int_equal(shape.dims[2], 2);
}

static void reshape_keeps_the_elements(void **state)
{
    (void)state;
    const ph_real x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    check_trial(&(struct op_trial){.batch = {.num_samples = 2, .num_dense = 6, .dense = x},
        .build = cube,
        .num_expected = 12,
        .expected = (double[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
        .check = assert_shape});
}

static ph_value too_few(struct ph_builder *builder, ph_value x)
{
    return ph_reshape(builder, x, 2, (size_t[]){5, 2});
}

static ph_value too_deep(struct ph_builder *builder, ph_value x)
{
    return ph_reshape(builder, x, 4, (size_t[]){2, 2, 3, 1});
}

static void reshape_refuses_another_number_of_elements(void **state)
{
    (void)state;
    assert_refused(too_few, "(B,12) and (B,5,2) have different numbers of elements");
    assert_refused(too_deep, "at most 3 dimensions behind the batch, got 4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reshape_keeps_the_elements),
        cmocka_unit_test(reshape_refuses_another_number_of_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
