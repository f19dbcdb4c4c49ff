#include "support/op_trial.h"

#include <math.h>

/* gamma [2 1], beta [0 1] over rows of mean and deviation (3 2), (7 0), (-1 1) */
static const ph_real parameters[] = {2, 1, 0, 1};
static const ph_real samples[] = {1, 5, 7, 7, 0, -2};

static ph_value norm_over(struct ph_builder *builder, ph_value x, size_t columns)
{
    const struct ph_init zeros = {PH_INIT_CONSTANT, 0};
    ph_value gamma = ph_parameter(builder, "gamma", 1, &columns, zeros);
    ph_value beta = ph_parameter(builder, "beta", 1, &columns, zeros);
    return ph_layer_norm(builder, x, gamma, beta, 0.5);
}

static ph_value norm(struct ph_builder *builder, ph_value x)
{
    return norm_over(builder, x, 2);
}

static ph_value norm_of_vectors(struct ph_builder *builder, ph_value x)
{
    return norm(builder, ph_reshape(builder, x, 2, (size_t[]){3, 2}));
}

static void each_row_is_normalised_by_itself(void **state)
{
    (void)state;
    const double a = 2 / sqrt(4.5), b = 1 / sqrt(1.5);
    struct op_trial trial = {.batch = {.num_samples = 3, .num_dense = 2, .dense = samples},
        .parameters = parameters,
        .build = norm,
        .num_expected = 6,
        .expected = (double[]){-2 * a, a + 1, 0, 1, 2 * b, 1 - b}};
    check_trial(&trial);
    trial.mode = PH_INFERENCE;
    check_trial(&trial);
    trial.build = norm_of_vectors;
    trial.batch.num_samples = 1;
    trial.batch.num_dense = 6;
    check_trial(&trial);
    check_trial(&(struct op_trial){.batch = {.num_dense = 2}, .parameters = parameters, .build = norm});
}

static ph_value of_no_epsilon(struct ph_builder *builder, ph_value x)
{
    return ph_layer_norm(builder, x, x, x, 0);
}

static ph_value of_one_dimension(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return norm(builder, ph_input_id_weights(builder));
}

static void layer_norm_refuses_wrong_shapes_and_epsilons(void **state)
{
    (void)state;
    assert_refused(norm, "needs x (...,K) of rank 2 at least, gamma (K), beta (K); got (B,12), (2), (2)");
    assert_refused(of_one_dimension, "got (N), (2), (2)");
    assert_refused(of_no_epsilon, "layer norm: epsilon 0 must be positive");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_normalised_by_itself),
        cmocka_unit_test(layer_norm_refuses_wrong_shapes_and_epsilons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
