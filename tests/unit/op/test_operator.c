#include "op/operator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/op_trial.h"

enum { NUM_SAMPLES = 1000, NUM_COLUMNS = 37, MAX_OUTPUTS = 16 };

static ph_real dense[NUM_SAMPLES * NUM_COLUMNS], labels[NUM_SAMPLES];

static ph_value layer(
    struct ph_builder *builder, const char *name, ph_value x, size_t out, enum ph_activation activation)
{
    const struct ph_init init = {PH_INIT_XAVIER_NORMAL, 1};
    const size_t in = ph_value_type(builder, x).dims[1].extent;
    ph_builder_push_scope(builder, name);
    ph_value weight = ph_parameter(builder, "weight", 2, (size_t[]){out, in}, init);
    ph_value bias = ph_parameter(builder, "bias", 1, &out, init);
    ph_value y = ph_linear(builder, x, weight, bias, activation);
    ph_builder_pop_scope(builder);
    return y;
}

static ph_value normalised(struct ph_builder *builder, ph_value x)
{
    const size_t columns = ph_value_type(builder, x).dims[1].extent;
    ph_value gamma = ph_parameter(builder, "gamma", 1, &columns, (struct ph_init){PH_INIT_CONSTANT, 1});
    ph_value beta = ph_parameter(builder, "beta", 1, &columns, (struct ph_init){PH_INIT_CONSTANT, 0});
    return ph_batch_norm(builder, x, gamma, beta, "norm",
        &(struct ph_batch_norm_options){
            .size = sizeof(struct ph_batch_norm_options), .epsilon = 1e-5, .momentum = 0.1});
}

/* Vectors (B,F,D) that have looked at each other. */
static ph_value attended(struct ph_builder *builder, ph_value x)
{
    const size_t columns = ph_value_type(builder, x).dims[2].extent;
    const struct ph_init init = {PH_INIT_NORMAL, 1};
    ph_value gamma = ph_parameter(builder, "vector_gamma", 1, &columns, init);
    ph_value beta = ph_parameter(builder, "vector_beta", 1, &columns, init);
    ph_value y = ph_attention(builder, x, x, x, 0,
        &(struct ph_attention_options){.size = sizeof(struct ph_attention_options), .num_heads = 2});
    return ph_layer_norm(builder, ph_add(builder, x, y), gamma, beta, 1e-5);
}

/* Every kind of loop and reduction once, forward and backward. */
static ph_value network(struct ph_builder *builder, ph_value x)
{
    ph_value hidden = layer(builder, "a", x, 72, PH_RELU);
    hidden = ph_dropout(builder, normalised(builder, hidden), 0.2);
    ph_value cube = attended(builder, ph_reshape(builder, hidden, 2, (size_t[]){9, 8}));
    ph_value dots = ph_dot_interaction(builder, layer(builder, "b", x, 8, PH_SIGMOID), cube);
    ph_value row = ph_parameter(builder, "row", 1, (size_t[]){8}, (struct ph_init){PH_INIT_NORMAL, 1});
    const ph_value parts[] = {
        dots, ph_add(builder, ph_sum_features(builder, cube), row), ph_fm(builder, cube)};
    return layer(builder, "c", ph_concat(builder, 3, parts, 1), 1, PH_IDENTITY);
}

static struct ph_program *build(size_t *num_gradients_out)
{
    struct ph_builder *builder = NULL;
    struct ph_program *program = NULL;
    ph_value wrt[MAX_OUTPUTS], gradients[MAX_OUTPUTS];
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    ph_value logits = network(builder, ph_input_dense(builder, NUM_COLUMNS));
    ph_value loss = ph_bce_with_logits(builder, logits, ph_input_labels(builder, 1), 0, 0);
    ph_output(builder, "logits", logits);
    ph_output(builder, "loss", loss);
    *num_gradients_out = ph_builder_num_parameters(builder);
    assert_true(*num_gradients_out <= MAX_OUTPUTS);
    for (size_t i = 0; i < *num_gradients_out; i++)
        wrt[i] = ph_builder_parameter(builder, i);
    ph_backward(builder, loss, *num_gradients_out, wrt, gradients);
    for (size_t i = 0; i < *num_gradients_out; i++) {
        char name[32];
        snprintf(name, sizeof name, "gradient.%zu", i);
        ph_output(builder, name, gradients[i]);
    }
    assert_ok(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    return program;
}

/* Logits and gradients one behind the other, malloc'ed, and the loss. */
struct results {
    ph_real *values;
    size_t count;
    double loss;
};

static void append(struct results *results, const struct ph_workspace *workspace, const char *name)
{
    const ph_real *data = NULL;
    struct ph_shape shape;
    assert_ok(ph_workspace_output(workspace, name, &data, &shape));
    const size_t count = ph_shape_elements(&shape);
    results->values = realloc(results->values, (results->count + count) * sizeof *results->values);
    assert_non_null(results->values);
    memcpy(results->values + results->count, data, count * sizeof *data);
    results->count += count;
}

static struct results run_with(size_t num_threads)
{
    const struct ph_backend_options options = {.size = sizeof options, .num_threads = num_threads};
    const struct ph_batch batch = {.num_samples = NUM_SAMPLES,
        .num_dense = NUM_COLUMNS,
        .num_tasks = 1,
        .dense = dense,
        .labels = labels};
    size_t num_gradients = 0;
    struct results results = {0};
    struct ph_program *program = build(&num_gradients);
    struct ph_store *store = NULL;
    struct ph_state *state = NULL;
    struct ph_backend *backend = NULL;
    struct ph_executor *executor = NULL;
    struct ph_workspace *workspace = NULL;
    assert_ok(ph_store_create(1, &store));
    assert_ok(ph_state_create(&state));
    assert_ok(ph_backend_create(&options, &backend));
    assert_ok(ph_executor_create(program, store, state, backend, &executor));
    assert_ok(ph_workspace_create(executor, NUM_SAMPLES, 0, &workspace));
    assert_ok(ph_workspace_bind(workspace, &batch, 1, 1));
    assert_ok(ph_workspace_run(workspace, "forward"));
    assert_ok(ph_workspace_scalar(workspace, "loss", &results.loss));
    append(&results, workspace, "logits");
    for (size_t i = 0; i < num_gradients; i++) {
        char name[32];
        snprintf(name, sizeof name, "gradient.%zu", i);
        append(&results, workspace, name);
    }
    ph_workspace_destroy(workspace);
    ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    ph_state_destroy(state);
    ph_store_destroy(store);
    ph_program_destroy(program);
    return results;
}

static void the_bits_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUM_SAMPLES * NUM_COLUMNS; i++)
        dense[i] = (ph_real)sin((double)i);
    for (size_t i = 0; i < NUM_SAMPLES; i++)
        labels[i] = i % 3 == 0;
    const struct results one = run_with(1);
    assert_true(isfinite(one.loss));
    for (size_t num_threads = 2; num_threads <= 5; num_threads++) {
        const struct results many = run_with(num_threads);
        assert_int_equal(many.count, one.count);
        assert_memory_equal(many.values, one.values, one.count * sizeof *one.values);
        assert_memory_equal(&many.loss, &one.loss, sizeof one.loss);
        free(many.values);
    }
    free(one.values);
}

/* relu(x x + x) */
static ph_value squared(struct ph_builder *builder, ph_value x)
{
    return ph_relu(builder, ph_add(builder, ph_multiply(builder, x, x), x));
}

static ph_value of_two_cubes(struct ph_builder *builder, ph_value x)
{
    return squared(builder, ph_reshape(builder, x, 3, (size_t[]){2, 3, 2}));
}

static ph_value of_items(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return squared(builder, ph_input_id_weights(builder));
}

static ph_value dropped_cubes(struct ph_builder *builder, ph_value x)
{
    return ph_dropout(builder, of_two_cubes(builder, x), 0.5);
}

enum { NUM_ELEMENTS = 12 * 12 };

/* Zero or twice the value, each for some. */
static void assert_some_are_dropped(struct ph_workspace *workspace, const struct ph_state *state)
{
    const ph_real *y = NULL;
    struct ph_shape shape;
    size_t num_kept = 0;
    (void)state;
    assert_ok(ph_workspace_output(workspace, "y", &y, &shape));
    for (size_t i = 0; i < NUM_ELEMENTS; i++) {
        const ph_real value = dense[i] * dense[i] + dense[i];
        assert_true(y[i] == 0 || y[i] == 2 * value);
        num_kept += y[i] != 0;
    }
    assert_in_range(num_kept, NUM_ELEMENTS / 4, NUM_ELEMENTS * 3 / 4);
}

static void elementwise_operators_take_arrays_of_any_rank(void **state)
{
    (void)state;
    static double expected[NUM_ELEMENTS];
    static const int32_t lengths[12] = {NUM_ELEMENTS};
    static const int64_t ids[NUM_ELEMENTS];
    uint32_t offsets[13] = {0};
    for (size_t i = 0; i < NUM_ELEMENTS; i++) {
        dense[i] = (ph_real)(i + 1) / 8; /* exact, and so are the squares */
        expected[i] = (double)(dense[i] * dense[i] + dense[i]);
    }
    for (size_t i = 1; i < 13; i++)
        offsets[i] = NUM_ELEMENTS;
    struct op_trial trial = {.batch = {.num_samples = 12,
                                 .num_dense = 12,
                                 .dense = dense,
                                 .num_sparse = 1,
                                 .num_ids = NUM_ELEMENTS,
                                 .lengths = lengths,
                                 .offsets = offsets,
                                 .ids = ids,
                                 .id_weights = dense},
        .num_expected = NUM_ELEMENTS,
        .expected = expected};
    trial.build = of_two_cubes;
    check_trial(&trial);
    trial.build = of_items;
    check_trial(&trial);
    trial.tolerance = 10; /* of what is dropped, `check` says more */
    trial.check = assert_some_are_dropped;
    trial.build = dropped_cubes;
    check_trial(&trial);
}

static void dimensions_are_fixed_that_are_known_and_not_empty(void **state)
{
    (void)state;
    const struct ph_type type =
        ph__dense_type(3, (struct ph_dim[]){ph__dim_of(1, PH_SYMBOL_BATCH), ph__dim(0), ph__dim(3)});
    assert_true(ph__has_fixed_dims(&type, 2));
    assert_false(ph__has_fixed_dims(&type, 1));
    const struct ph_type of_batch = ph__dense_type(1, &type.dims[0]);
    assert_false(ph__has_fixed_dims(&of_batch, 0));
    assert_true(ph__has_fixed_dims(&of_batch, 1));
}

static void a_block_has_at_least_one_row(void **state)
{
    (void)state;
    assert_int_equal(ph__block_rows(0), PH_BLOCK_ELEMENTS);
    assert_int_equal(ph__block_rows(1), PH_BLOCK_ELEMENTS);
    assert_int_equal(ph__block_rows(100), PH_BLOCK_ELEMENTS / 100);
    assert_int_equal(ph__block_rows(PH_BLOCK_ELEMENTS * 2), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(elementwise_operators_take_arrays_of_any_rank),
        cmocka_unit_test(dimensions_are_fixed_that_are_known_and_not_empty),
        cmocka_unit_test(a_block_has_at_least_one_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
