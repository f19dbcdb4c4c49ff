#include <string.h>

#include "base/rng.h"
#include "graph/graph.h"
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

static ph_value of_neighbours(struct ph_builder *builder, ph_value x)
{
    const struct ph_aggregate_options mean = {.size = sizeof mean, .normalisation = PH_NORMALISE_MEAN};
    const ph_value bags = ph_feature_bags(builder, ph_input_ids(builder, 1), 0);
    const ph_value y = layer(builder, ph_aggregate(builder, x, bags, 0, &mean), PH_RELU, true);
    if (y != 0)
        assert_string_equal(ph__builder_producer(builder, y)->op->name, "relu"); /* behind the bias */
    return y;
}

/* Aggregates two columns in place of three; a node without neighbours has the bias alone. */
static void linear_before_an_aggregation_is_that_behind_it(void **state)
{
    (void)state;
    check_trial(&(struct op_trial){.batch = {.num_samples = 3,
                                       .num_dense = 3,
                                       .num_sparse = 1,
                                       .num_ids = 3,
                                       .dense = samples,
                                       .lengths = (const int32_t[]){2, 0, 1},
                                       .offsets = (const uint32_t[]){0, 2, 2, 3},
                                       .ids = (const int64_t[]){1, 2, 2}},
        .parameters = parameters,
        .build = of_neighbours,
        .num_expected = 6,
        .expected = (double[]){1, 0, 0.5, 0, 2.5, 0}});
}

static ph_value rows_of_three(struct ph_builder *builder, ph_value x)
{
    return layer(builder, ph_reshape(builder, x, 2, (size_t[]){3, 3}), PH_RELU, true);
}

static ph_value rows_of_three_in_a_fourth_dimension(struct ph_builder *builder, ph_value x)
{
    return layer(builder, ph_reshape(builder, x, 3, (size_t[]){3, 1, 3}), PH_RELU, true);
}

static void linear_takes_all_dimensions_but_the_last_as_rows(void **state)
{
    (void)state;
    struct op_trial trial = {.batch = {.num_samples = 1, .num_dense = 9, .dense = samples},
        .parameters = parameters,
        .num_expected = 6,
        .expected = (double[]){6.5, 0, 0, 0, 2.5, 0}};
    trial.build = rows_of_three;
    check_trial(&trial);
    trial.build = rows_of_three_in_a_fourth_dimension;
    check_trial(&trial);
}

/* ROWS rows of IN reals, as ROWS samples or as ROWS / LENGTH samples of LENGTH rows, go through two layers.
 */
enum { ROWS = 84, LENGTH = 4, IN = 19, HIDDEN = 33, OUT = 3 };
static const char *const result_names[] = {"y", "gradient.0", "gradient.1", "gradient.2", "gradient.3"};
enum { NUM_RESULTS = 5, MOST_ELEMENTS = HIDDEN * IN };

struct results {
    size_t elements[NUM_RESULTS];
    ph_real data[NUM_RESULTS][MOST_ELEMENTS];
};

static ph_value width_of(struct ph_builder *builder, ph_value x, size_t length, size_t width)
{
    return length == 1 ? x : ph_reshape(builder, x, 3, (size_t[]){2, length / 2, width});
}

static struct ph_program *two_layers(enum ph_mode mode, enum ph_precision precision, size_t length)
{
    const struct ph_init normal = {PH_INIT_NORMAL, 1};
    struct ph_builder *builder = NULL;
    struct ph_program *program = NULL;
    assert_ok(ph_builder_create(mode, &builder));
    ph_builder_set_precision(builder, precision);
    const ph_value learnt[] = {ph_parameter(builder, "a.weight", 2, (size_t[]){HIDDEN, IN}, normal),
        ph_parameter(builder, "a.bias", 1, (size_t[]){HIDDEN}, normal),
        ph_parameter(builder, "b.weight", 2, (size_t[]){OUT, HIDDEN}, normal),
        ph_parameter(builder, "b.bias", 1, (size_t[]){OUT}, normal)};
    ph_value x = width_of(builder, ph_input_dense(builder, length * IN), length, IN);
    x = ph_linear(builder, x, learnt[0], learnt[1], PH_RELU);
    x = ph_linear(builder, x, learnt[2], learnt[3], PH_IDENTITY);
    if (length > 1)
        x = ph_reshape(builder, x, 1, (size_t[]){length * OUT});
    ph_output(builder, result_names[0], x);
    if (mode == PH_TRAINING) {
        ph_value gradients[4];
        const ph_value loss = ph_bce_with_logits(builder, x, ph_input_labels(builder, length * OUT), 0, 0);
        ph_backward(builder, loss, 4, learnt, gradients);
        for (size_t i = 0; i < 4; i++)
            ph_output(builder, result_names[1 + i], gradients[i]);
    }
    assert_ok(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    return program;
}

static struct ph_batch random_batch(size_t length)
{
    static ph_real x[ROWS * IN], labels[ROWS * OUT];
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    for (size_t i = 0; i < ROWS * IN; i++)
        x[i] = (ph_real)ph__rng_next_normal(&random);
    for (size_t i = 0; i < ROWS * OUT; i++)
        labels[i] = (ph_real)ph__rng_below(&random, 2);
    return (struct ph_batch){.num_samples = ROWS / length,
        .num_dense = length * IN,
        .num_tasks = length * OUT,
        .dense = x,
        .labels = labels};
}

static void copy_results(struct ph_workspace *workspace, size_t num_results, struct results *results_out)
{
    *results_out = (struct results){0};
    for (size_t i = 0; i < num_results; i++) {
        const ph_real *data;
        struct ph_shape shape;
        assert_ok(ph_workspace_output(workspace, result_names[i], &data, &shape));
        results_out->elements[i] = ph_shape_elements(&shape);
        assert_true(results_out->elements[i] <= MOST_ELEMENTS);
        memcpy(results_out->data[i], data, results_out->elements[i] * sizeof *data);
    }
}

static void run_two_layers(
    enum ph_mode mode, enum ph_precision precision, size_t length, struct results *results_out)
{
    const struct ph_batch batch = random_batch(length);
    struct ph_program *program = two_layers(mode, precision, length);
    struct ph_store *store = NULL;
    struct ph_state *state = NULL;
    struct ph_backend *backend = NULL;
    struct ph_executor *executor = NULL;
    struct ph_workspace *workspace = NULL;
    assert_ok(ph_store_create(1, &store));
    assert_ok(ph_state_create(&state));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 2}, &backend));
    assert_ok(ph_executor_create(program, store, state, backend, &executor));
    assert_ok(ph_workspace_create(executor, batch.num_samples, 0, &workspace));
    assert_ok(ph_workspace_bind(workspace, &batch, 1, 1));
    assert_ok(ph_workspace_run(workspace, "forward"));
    copy_results(workspace, mode == PH_TRAINING ? NUM_RESULTS : 1, results_out);
    ph_workspace_destroy(workspace);
    ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    ph_state_destroy(state);
    ph_store_destroy(store);
    ph_program_destroy(program);
}

/* In either mode and precision, and so do the gradients of weights and biases. */
static void rows_of_any_shape_give_the_bits_of_as_many_samples(void **state)
{
    (void)state;
    static struct results flat, deep;
    for (int i = 0; i < 4; i++) {
        const enum ph_mode mode = i % 2 == 0 ? PH_TRAINING : PH_INFERENCE;
        const enum ph_precision precision = i / 2 == 0 ? PH_PRECISION_FP32 : PH_PRECISION_BF16;
        run_two_layers(mode, precision, 1, &flat);
        run_two_layers(mode, precision, LENGTH, &deep);
        assert_memory_equal(flat.elements, deep.elements, sizeof flat.elements);
        assert_memory_equal(flat.data, deep.data, sizeof flat.data);
        assert_true(mode == PH_INFERENCE || flat.data[1][0] != 0);
    }
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

/* Nodes of the operator in the gradient of two layers, of which the first has an activation, which a second
 * reader may watch. */
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

static ph_value deep_wrong_width(struct ph_builder *builder, ph_value x)
{
    return identity(builder, ph_reshape(builder, x, 2, (size_t[]){3, 4}));
}

static void linear_refuses_shapes_that_do_not_fit(void **state)
{
    (void)state;
    assert_refused(wrong_width, "got (B,12), (2,3), (2)");
    assert_refused(deep_wrong_width, "got (B,3,4), (2,3), (2)");
    assert_refused(wrong_bias, "needs x (...,K), weight (M,K), bias (M) or none; got (B,12), (2,12), (3)");
    assert_refused(computed_weight, "needs a weight (M,K) of fixed size; got (B,12)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_is_the_product_with_the_weight_and_the_bias),
        cmocka_unit_test(linear_of_no_samples_is_empty),
        cmocka_unit_test(linear_before_an_aggregation_is_that_behind_it),
        cmocka_unit_test(linear_takes_all_dimensions_but_the_last_as_rows),
        cmocka_unit_test(rows_of_any_shape_give_the_bits_of_as_many_samples),
        cmocka_unit_test(a_weight_is_packed_once),
        cmocka_unit_test(the_gradient_goes_on_through_an_activation_that_nobody_else_reads),
        cmocka_unit_test(linear_refuses_shapes_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
