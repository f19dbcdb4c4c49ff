#include "kernel_test.h"

static const struct ph_optimizer_step step = {.kind = PH_ROWWISE_ADAGRAD,
    .learning_rate = 0.05f,
    .gradient_scale = 0.5f,
    .l2 = 0.01f,
    .epsilon = 1e-6f};

static void check_row(const struct ph_kernels *kernels, size_t dim, int has_gradient)
{
    const float *grad = random_floats(dim, -1, 1);
    float *w = random_floats(dim, -1, 1);
    const float *before = copied_floats(dim, w);
    float s = 0.25f;
    kernels->rowwise_adagrad_update(&step, dim, has_gradient ? grad : NULL, w, &s);

    double g[300], squares = 0;
    for (size_t d = 0; d < dim; d++) {
        g[d] = (has_gradient ? 0.5 * (double)grad[d] : 0) + (double)step.l2 * (double)before[d];
        squares += g[d] * g[d];
    }
    const double sum = 0.25 + squares / (double)dim;
    assert_near((double)s, sum, 0, 2e-6);
    for (size_t d = 0; d < dim; d++)
        assert_near((double)w[d], (double)before[d] - (double)step.learning_rate * g[d] / (sqrt(sum) + 1e-6),
            1e-6, 0);
}

static void check_dimensions(const struct ph_kernels *kernels)
{
    for (size_t dim = 1; dim <= 150; dim++) {
        reset_arrays(NULL);
        check_row(kernels, dim, 1);
        check_row(kernels, dim, 0);
    }
}

static void rowwise_adagrad_keeps_one_sum_a_row(void **state)
{
    (void)state;
    on_every_isa(check_dimensions);
}

static void check_no_columns(const struct ph_kernels *kernels)
{
    float s = 3;
    kernels->rowwise_adagrad_update(&step, 0, NULL, NULL, &s);
    assert_true(s == 3);
}

static void row_of_no_columns_changes_nothing(void **state)
{
    (void)state;
    on_every_isa(check_no_columns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rowwise_adagrad_keeps_one_sum_a_row, reset_arrays, reset_arrays),
        cmocka_unit_test_setup_teardown(row_of_no_columns_changes_nothing, reset_arrays, reset_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
