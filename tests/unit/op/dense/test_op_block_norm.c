#include "support/op_trial.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "graph/graph.h"

/* ---- values ---- */

static ph_value norm(struct ph_builder *builder, ph_value x)
{
    return ph_block_norm(builder, x, PH_IDENTITY);
}

static ph_value rectified(struct ph_builder *builder, ph_value x)
{
    return ph_block_norm(builder, x, PH_RELU);
}

static ph_value swished_vectors(struct ph_builder *builder, ph_value x)
{
    return ph_block_norm(builder, ph_reshape(builder, x, 2, (size_t[]){2, 2}), PH_HARD_SWISH);
}

/* Rows (3 4) and (-1 1) have the root mean squares sqrt(12.5) and 1. */
static void each_row_is_divided_by_its_root_mean_square(void **state)
{
    (void)state;
    const ph_real x[] = {3, 4, -1, 1};
    const double a = 3 / sqrt(12.5), b = 4 / sqrt(12.5);
    struct op_trial trial = {.batch = {.num_samples = 2, .num_dense = 2, .dense = x},
        .build = norm,
        .num_expected = 4,
        .expected = (double[]){a, b, -1, 1}};
    check_trial(&trial);
    trial.build = rectified;
    trial.expected = (double[]){a, b, 0, 1};
    check_trial(&trial);
    trial.build = swished_vectors;
    trial.batch.num_samples = 1;
    trial.batch.num_dense = 4;
    trial.expected = (double[]){a * (a + 3) / 6, b * (b + 3) / 6, -1.0 / 3, 2.0 / 3};
    check_trial(&trial);
    check_trial(&(struct op_trial){.batch = {.num_dense = 2}, .build = norm});
}

enum { WIDE = 300 };

static void blocks_of_256_are_normed_apart(void **state)
{
    (void)state;
    ph_real x[WIDE];
    double expected[WIDE];
    for (size_t i = 0; i < WIDE; i++) {
        x[i] = i < 256 ? 2 : -5;
        expected[i] = i < 256 ? 1 : -1;
    }
    check_trial(&(struct op_trial){.batch = {.num_samples = 1, .num_dense = WIDE, .dense = x},
        .build = norm,
        .num_expected = WIDE,
        .expected = expected});
}

static ph_value of_one_dimension(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return norm(builder, ph_input_id_weights(builder));
}

static void block_norm_refuses_one_dimension(void **state)
{
    (void)state;
    assert_refused(of_one_dimension, "x (...,K) of 2 dims or more");
}

/* ---- fused into linear layers ---- */

enum { ROWS = 70, IN = 37, OUT = 6, MAX_NUMBERS = WIDE * IN };
static const char *const names[] = {"y", "d0", "d1"};
enum { NUM_RESULTS = 3 };

struct design {
    enum ph_mode mode;
    enum ph_precision precision;
    enum ph_activation activation;
    bool is_int8, has_norm;
};

struct results {
    size_t count[NUM_RESULTS];
    ph_real numbers[NUM_RESULTS][MAX_NUMBERS];
};

static ph_real samples[ROWS * IN], labels[ROWS * OUT];

/* Each of a layer's operators is a node, or all are one. */
static ph_value layer(
    struct ph_builder *builder, ph_value x, ph_value weight, const struct design *design, bool is_one)
{
    if (is_one && design->has_norm)
        return ph_linear_block_norm(builder, x, weight, 0, design->activation);
    if (is_one)
        return ph_linear(builder, x, weight, 0, design->activation);
    x = ph_linear(builder, x, weight, 0, PH_IDENTITY);
    return design->has_norm ? ph_block_norm(builder, x, design->activation) : ph_hard_swish(builder, x);
}

static void build(struct ph_builder *builder, const struct design *design, bool is_one)
{
    static const struct ph_site_recipe int8[] = {
        {"0", PH_RECIPE_INT8, PH_RECIPE_INT8}, {"1", PH_RECIPE_INT8, PH_RECIPE_INT8}};
    const struct ph_init normal = {PH_INIT_NORMAL, .2};
    ph_builder_set_precision(builder, design->precision);
    ph_builder_set_recipes(builder, int8, design->is_int8 ? 2 : 0);
    const ph_value weights[] = {ph_parameter(builder, "0", 2, (size_t[]){WIDE, IN}, normal),
        ph_parameter(builder, "1", 2, (size_t[]){OUT, WIDE}, normal)};
    const ph_value hidden = layer(builder, ph_input_dense(builder, IN), weights[0], design, is_one);
    const ph_value y = layer(builder, hidden, weights[1], design, is_one);
    ph_output(builder, names[0], y);
    if (design->mode != PH_TRAINING)
        return;
    const ph_value loss = ph_squared_error(builder, y, ph_input_labels(builder, OUT), 0);
    ph_value gradients[2];
    ph_backward(builder, loss, 2, weights, gradients);
    ph_output(builder, names[1], gradients[0]);
    ph_output(builder, names[2], gradients[1]);
}

static struct ph_program *program_of(const struct design *design, bool is_fused)
{
    struct ph_builder *builder = NULL;
    struct ph_program *program = NULL;
    assert_ok(ph_builder_create(design->mode, &builder));
    build(builder, design, is_fused);
    assert_ok((is_fused ? ph_builder_finish : ph__builder_finish_unfused)(builder, &program));
    ph_builder_destroy(builder);
    return program;
}

static size_t num_separate(const struct ph_program *program)
{
    static const char *const ops[] = {
        "block_norm", "block_norm_backward", "hard_swish", "hard_swish_backward", "relu", "sigmoid"};
    size_t count = 0;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        count += ph_program_num_nodes(program, ops[i]);
    return count;
}

static void run(struct ph_program *program, size_t num_results, struct results *results)
{
    const struct ph_batch batch = {
        .num_samples = ROWS, .num_dense = IN, .num_tasks = OUT, .dense = samples, .labels = labels};
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
    assert_ok(ph_workspace_create(executor, ROWS, 0, &workspace));
    assert_ok(ph_workspace_bind(workspace, &batch, 1, 1));
    assert_ok(ph_workspace_run(workspace, "forward"));
    for (size_t i = 0; i < num_results; i++) {
        const ph_real *data;
        struct ph_shape shape;
        assert_ok(ph_workspace_output(workspace, names[i], &data, &shape));
        results->count[i] = ph_shape_elements(&shape);
        assert_true(results->count[i] <= MAX_NUMBERS);
        memcpy(results->numbers[i], data, results->count[i] * sizeof *data);
    }
    ph_workspace_destroy(workspace);
    ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    ph_state_destroy(state);
    ph_store_destroy(store);
}

static void check_fusion(const struct design *design)
{
    static struct results fused, separate;
    const size_t num_results = design->mode == PH_TRAINING ? NUM_RESULTS : 1;
    struct ph_program *programs[] = {program_of(design, true), program_of(design, false)};
    run(programs[0], num_results, &fused);
    run(programs[1], num_results, &separate);
    for (size_t i = 0; i < num_results; i++) {
        assert_int_equal(fused.count[i], separate.count[i]);
        assert_memory_equal(fused.numbers[i], separate.numbers[i], fused.count[i] * sizeof **fused.numbers);
    }
    if (design->mode == PH_INFERENCE)
        assert_int_equal(num_separate(programs[0]), 0);
    else if (design->activation == PH_HARD_SWISH) /* behind the last product there is no other to fuse with */
        assert_int_equal(num_separate(programs[0]), 1);
    ph_program_destroy(programs[0]);
    ph_program_destroy(programs[1]);
}

static void check_arithmetic(enum ph_mode mode, enum ph_precision precision, bool is_int8)
{
    struct design design = {.mode = mode, .precision = precision, .is_int8 = is_int8};
    design.activation = PH_HARD_SWISH;
    check_fusion(&design);
    design.has_norm = true;
    for (int activation = PH_IDENTITY; activation <= PH_HARD_SWISH; activation++) {
        design.activation = (enum ph_activation)activation;
        if (activation != PH_SIGMOID || precision == PH_PRECISION_FP32) /* its gradient reads a rounded y */
            check_fusion(&design);
    }
}

static void fused_layers_have_the_bits_of_separate_operators(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    for (size_t i = 0; i < ROWS * IN; i++)
        samples[i] = (ph_real)ph__rng_next_normal(&random);
    for (size_t i = 0; i < ROWS * OUT; i++)
        labels[i] = (ph_real)ph__rng_below(&random, 2);
    for (int mode = PH_TRAINING; mode <= PH_INFERENCE; mode++) {
        check_arithmetic((enum ph_mode)mode, PH_PRECISION_FP32, false);
        check_arithmetic((enum ph_mode)mode, PH_PRECISION_FP32, true);
        check_arithmetic((enum ph_mode)mode, PH_PRECISION_BF16, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_divided_by_its_root_mean_square),
        cmocka_unit_test(blocks_of_256_are_normed_apart),
        cmocka_unit_test(block_norm_refuses_one_dimension),
        cmocka_unit_test(fused_layers_have_the_bits_of_separate_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
