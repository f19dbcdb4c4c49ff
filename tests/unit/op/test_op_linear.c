#include "support/op_trial.h"

static const struct ph_init zeros = {PH_INIT_CONSTANT, 0};

/* weight [[1 2 3] [-1 0 2]], bias [0.5 -3] */
static const ph_real parameters[] = {1, 2, 3, -1, 0, 2, (ph_real)0.5, -3};
static const ph_real samples[] = {1, 1, 1, 0, 1, -1, 2, 0, 0};

static ph_value layer(struct ph_builder *builder, ph_value x, enum ph_activation activation, bool has_bias)
{
    ph_value weight = ph_parameter(builder, "weight", 2, (size_t[]){2, 3}, zeros);
    ph_value bias = has_bias ? ph_parameter(builder, "bias", 1, (size_t[]){2}, zeros) : 0;
    return ph_linear(builder, x, weight, bias, activation);
}

static ph_value identity(struct ph_builder *builder, ph_value x)
{
    return layer(builder, x, PH_IDENTITY, true);
}

static ph_value relu(struct ph_builder *builder, ph_value x)
{
    return layer(builder, x, PH_RELU, true);
}

static ph_value without_bias(struct ph_builder *builder, ph_value x)
{
    return layer(builder, x, PH_IDENTITY, false);
}

static void linear_is_the_product_with_the_weight_and_the_bias(void **state)
{
    (void)state;
    struct op_trial trial = {.batch = {.num_samples = 3, .num_dense = 3, .dense = samples},
        .parameters = parameters,
        .num_expected = 6};
    trial.build = identity;
    trial.expected = (double[]){6.5, -2, -0.5, -5, 2.5, -5};
    check_trial(&trial);
    trial.build = relu;
    trial.expected = (double[]){6.5, 0, 0, 0, 2.5, 0};
    check_trial(&trial);
    trial.build = without_bias;
    trial.expected = (double[]){6, 1, -1, -2, 2, -2};
    check_trial(&trial);
}

static void linear_of_no_samples_is_empty(void **state)
{
    (void)state;
    check_trial(&(struct op_trial){.batch = {.num_dense = 3}, .parameters = parameters, .build = identity});
}

static ph_value both_layers_of_one_weight(struct ph_builder *builder, ph_value x)
{
    ph_value weight = ph_parameter(builder, "weight", 2, (size_t[]){3, 3}, zeros);
    return ph_linear(builder, ph_linear(builder, x, weight, 0, PH_IDENTITY), weight, 0, PH_IDENTITY);
}

static void a_weight_is_packed_once(void **state)
{
    (void)state;
    struct ph_builder *builder = NULL;
    struct ph_program *program = NULL;
    assert_ok(ph_builder_create(PH_INFERENCE, &builder));
    ph_output(builder, "y", both_layers_of_one_weight(builder, ph_input_dense(builder, 3)));
    assert_ok(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    assert_int_equal(ph_program_num_nodes(program, "linear"), 2);
    assert_int_equal(ph_program_num_nodes(program, "pack"), 1);
    ph_program_destroy(program);
}

/* Nodes of the operator in the gradient of two layers, of which the first has an activation, which a second reader may
 * watch. */
static size_t count_in_gradient(enum ph_activation activation, bool is_watched, const char *operator_name)
{
    struct ph_builder *builder = NULL;
    struct ph_program *program = NULL;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    const ph_value weights[] = {ph_parameter(builder, "a", 2, (size_t[]){3, 3}, zeros),
        ph_parameter(builder, "b", 2, (size_t[]){1, 3}, zeros),
        ph_parameter(builder, "c", 2, (size_t[]){1, 3}, zeros)};
    const ph_value hidden = ph_linear(builder, ph_input_dense(builder, 3), weights[0], 0, activation);
    ph_value logits = ph_linear(builder, hidden, weights[1], 0, PH_IDENTITY), gradients[2];
    if (is_watched)
        logits = ph_add(builder, logits, ph_linear(builder, hidden, weights[2], 0, PH_IDENTITY));
    const ph_value loss = ph_bce_with_logits(builder, logits, ph_input_labels(builder, 1), 0, 0);
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, 2, weights, gradients);
    ph_output(builder, "gradient", gradients[0]);
    assert_ok(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    const size_t count = ph_program_num_nodes(program, operator_name);
    ph_program_destroy(program);
    return count;
}

static void the_gradient_goes_on_through_an_activation_that_nobody_else_reads(void **state)
{
    (void)state;
    assert_int_equal(count_in_gradient(PH_RELU, false, "relu_backward"), 0);
    assert_int_equal(count_in_gradient(PH_RELU, true, "relu_backward"), 1);
    assert_int_equal(count_in_gradient(PH_SIGMOID, false, "sigmoid_backward"), 0);
    assert_int_equal(count_in_gradient(PH_SIGMOID, false, "linear_backward_data"), 1);
}

static ph_value wrong_width(struct ph_builder *builder, ph_value x)
{
    return identity(builder, x);
}

static ph_value wrong_bias(struct ph_builder *builder, ph_value x)
{
    ph_value weight = ph_parameter(builder, "weight", 2, (size_t[]){2, 12}, zeros);
    return ph_linear(builder, x, weight, ph_parameter(builder, "bias", 1, (size_t[]){3}, zeros), PH_IDENTITY);
}

static ph_value computed_weight(struct ph_builder *builder, ph_value x)
{
    return ph_linear(builder, x, x, 0, PH_IDENTITY);
}

static void linear_refuses_shapes_that_do_not_fit(void **state)
{
    (void)state;
    assert_refused(wrong_width, "got (B,12), (2,3), (2)");
    assert_refused(wrong_bias, "wants x (B,K), weight (M,K), bias (M) or none; got (B,12), (2,12), (3)");
    assert_refused(computed_weight, "the weight is no parameter");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_is_the_product_with_the_weight_and_the_bias),
        cmocka_unit_test(linear_of_no_samples_is_empty),
        cmocka_unit_test(a_weight_is_packed_once),
        cmocka_unit_test(the_gradient_goes_on_through_an_activation_that_nobody_else_reads),
        cmocka_unit_test(linear_refuses_shapes_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
