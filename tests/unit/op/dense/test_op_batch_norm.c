#include "support/op_trial.h"

#include <math.h>
#include <string.h>

/* gamma [2 1], beta [0 1]; columns (1 2 3 6) of mean 3 and variance 3.5, and a constant. */
static const ph_real parameters[] = {2, 1, 0, 1};
static const ph_real samples[] = {1, 7, 2, 7, 3, 7, 6, 7};

static ph_value norm(struct ph_builder *builder, ph_value x)
{
    const struct ph_init zeros = {PH_INIT_CONSTANT, 0};
    ph_value gamma = ph_parameter(builder, "gamma", 1, (size_t[]){2}, zeros);
    ph_value beta = ph_parameter(builder, "beta", 1, (size_t[]){2}, zeros);
    return ph_batch_norm(builder, x, gamma, beta, "norm",
        &(struct ph_batch_norm_options){
            .size = sizeof(struct ph_batch_norm_options), .epsilon = 0.5, .momentum = 0.1});
}

static void assert_state(const struct ph_state *state, const char *name, double first, double second)
{
    for (size_t i = 0; i < ph_state_num_tensors(state); i++) {
        const struct ph_tensor tensor = ph_state_tensor(state, i);
        const ph_real *data = tensor.data;
        if (strcmp(tensor.name, name) != 0)
            continue;
        assert_near((double)data[0], first, 1e-6, 1e-6);
        assert_near((double)data[1], second, 1e-6, 1e-6);
        return;
    }
    fail_msg("no state %s", name);
}

/* The unbiased variance 14/3 moves the running one. */
static void assert_moved_statistics(struct ph_workspace *workspace, const struct ph_state *state)
{
    (void)workspace;
    assert_state(state, "norm.mean", 0.3, 0.7);
    assert_state(state, "norm.variance", 0.9 + 0.1 * 14 / 3, 0.9);
}

static void assert_untouched_statistics(struct ph_workspace *workspace, const struct ph_state *state)
{
    (void)workspace;
    assert_state(state, "norm.mean", 0, 0);
    assert_state(state, "norm.variance", 1, 1);
}

static void training_normalises_by_the_batch_and_moves_the_running_statistics(void **state)
{
    (void)state;
    check_trial(&(struct op_trial){.batch = {.num_samples = 4, .num_dense = 2, .dense = samples},
        .parameters = parameters,
        .build = norm,
        .num_expected = 8,
        .expected = (double[]){-2, 1, -1, 1, 0, 1, 3, 1},
        .check = assert_moved_statistics});
}

static void fewer_than_two_samples_leave_the_running_statistics_alone(void **state)
{
    (void)state;
    check_trial(&(struct op_trial){.batch = {.num_samples = 1, .num_dense = 2, .dense = samples},
        .parameters = parameters,
        .build = norm,
        .num_expected = 2,
        .expected = (double[]){0, 1},
        .check = assert_untouched_statistics});
    check_trial(&(struct op_trial){.batch = {.num_dense = 2},
        .parameters = parameters,
        .build = norm,
        .check = assert_untouched_statistics});
}

static void inference_normalises_by_the_running_statistics(void **state)
{
    (void)state;
    const double scale = 1 / sqrt(1.5);
    check_trial(&(struct op_trial){.mode = PH_INFERENCE,
        .batch = {.num_samples = 2, .num_dense = 2, .dense = samples},
        .parameters = parameters,
        .build = norm,
        .num_expected = 4,
        .expected = (double[]){2 * scale, 7 * scale + 1, 4 * scale, 7 * scale + 1},
        .check = assert_untouched_statistics});
}

enum { NUM_ROWS = 300 };

/* Deviations of 1 around 30000: sums of plain squares in float would lose them altogether. */
static void statistics_hold_where_the_mean_is_large(void **state)
{
    (void)state;
    static ph_real x[NUM_ROWS * 2];
    static double expected[NUM_ROWS * 2];
    for (size_t row = 0; row < NUM_ROWS; row++) {
        const double sign = row % 2 == 0 ? 1 : -1;
        x[2 * row] = (ph_real)(30000 + sign);
        x[2 * row + 1] = (ph_real)(sign * 1e-3);
        expected[2 * row] = 2 * sign / sqrt(1.5);
        expected[2 * row + 1] = 1 + sign * 1e-3 / sqrt(0.5 + 1e-6);
    }
    check_trial(&(struct op_trial){.batch = {.num_samples = NUM_ROWS, .num_dense = 2, .dense = x},
        .parameters = parameters,
        .build = norm,
        .num_expected = NUM_ROWS * 2,
        .expected = expected});
}

static ph_value cube(struct ph_builder *builder, ph_value x)
{
    return norm(builder, ph_reshape(builder, x, 2, (size_t[]){6, 2}));
}

static ph_value bad_epsilon(struct ph_builder *builder, ph_value x)
{
    return ph_batch_norm(builder, x, x, x, "norm",
        &(struct ph_batch_norm_options){.size = sizeof(struct ph_batch_norm_options), .epsilon = 0});
}

static void batch_norm_refuses_wrong_shapes_and_options(void **state)
{
    (void)state;
    assert_refused(cube, "needs x (B,K), gamma (K), beta (K); got (B,6,2), (2), (2)");
    assert_refused(norm, "got (B,12), (2), (2)");
    assert_refused(bad_epsilon, "batch norm norm: epsilon 0 must be positive");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_normalises_by_the_batch_and_moves_the_running_statistics),
        cmocka_unit_test(fewer_than_two_samples_leave_the_running_statistics_alone),
        cmocka_unit_test(inference_normalises_by_the_running_statistics),
        cmocka_unit_test(statistics_hold_where_the_mean_is_large),
        cmocka_unit_test(batch_norm_refuses_wrong_shapes_and_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
