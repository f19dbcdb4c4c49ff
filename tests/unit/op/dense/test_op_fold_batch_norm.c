/* Batch norm in inference programs: melted into the linear layer before it, where nothing else reads what
 * flows between. */
#include "support/test_support.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "graph/graph.h"
#include "phloem/op.h"
#include "store/store.h"

enum { NUM_ROWS = 100, NUM_INPUTS = 19, NUM_HIDDEN = 37, NUM_OUTPUTS = 5 };

static const struct ph_init normal = {PH_INIT_NORMAL, 0.5};
static const struct ph_batch_norm_options options = {
    .size = sizeof options, .epsilon = 1e-5, .momentum = 0.1};

/* ---- programs ---- */

/* linear -> batch norm -> activation, with and without a bias, and a linear layer behind both. */
struct design {
    bool reads_between, shows_between; /* what flows between the first layer and its norm */
    bool has_early_activation;         /* before the first norm */
    bool has_no_norm;
};

static ph_value layer(
    struct ph_builder *builder, const char *name, ph_value x, size_t units, bool has_bias, bool is_relu)
{
    ph_builder_push_scope(builder, name);
    const size_t inputs = ph_value_type(builder, x).dims[1].extent;
    ph_value weight = ph_parameter(builder, "weight", 2, (size_t[]){units, inputs}, normal);
    ph_value bias = has_bias ? ph_parameter(builder, "bias", 1, &units, normal) : 0;
    ph_value y = ph_linear(builder, x, weight, bias, is_relu ? PH_RELU : PH_IDENTITY);
    ph_builder_pop_scope(builder);
    return y;
}

static ph_value norm(struct ph_builder *builder, const char *name, ph_value x)
{
    ph_builder_push_scope(builder, name);
    const size_t units = ph_value_type(builder, x).dims[1].extent;
    ph_value gamma = ph_parameter(builder, "gamma", 1, &units, normal);
    ph_value beta = ph_parameter(builder, "beta", 1, &units, normal);
    ph_value y = ph_batch_norm(builder, x, gamma, beta, "norm", &options);
    ph_builder_pop_scope(builder);
    return y;
}

static void build(struct ph_builder *builder, const struct design *design)
{
    ph_value x = ph_input_dense(builder, NUM_INPUTS);
    ph_value between = layer(builder, "0", x, NUM_HIDDEN, true, design->has_early_activation);
    x = design->has_no_norm ? between : ph_relu(builder, norm(builder, "0", between));
    if (design->reads_between)
        x = ph_add(builder, x, between);
    if (design->shows_between)
        ph_output(builder, "between", between);
    x = layer(builder, "1", x, NUM_HIDDEN, false, false);
    x = design->has_no_norm ? x : ph_sigmoid(builder, norm(builder, "1", x));
    ph_output(builder, "y", layer(builder, "2", x, NUM_OUTPUTS, true, false));
}

static struct ph_program *build_program(const struct design *design, enum ph_mode mode, bool is_fused)
{
    struct ph_builder *builder = NULL;
    struct ph_program *program = NULL;
    assert_ok(ph_builder_create(mode, &builder));
    build(builder, design);
    assert_ok((is_fused ? ph_builder_finish : ph__builder_finish_unfused)(builder, &program));
    ph_builder_destroy(builder);
    return program;
}

/* ---- one store and state for several programs ---- */

struct model {
    struct ph_store *store;
    struct ph_state *state;
    ph_real x[NUM_ROWS * NUM_INPUTS];
};

static void start(struct model *model)
{
    struct ph__rng_sequence rng = {.key = {.seed = test_seed()}};
    assert_ok(ph_store_create(test_seed(), &model->store));
    assert_ok(ph_state_create(&model->state));
    for (size_t i = 0; i < NUM_ROWS * NUM_INPUTS; i++)
        model->x[i] = (ph_real)(4 * ph__rng_next_uniform(&rng) - 1);
}

static void stop(struct model *model)
{
    ph_state_destroy(model->state);
    ph_store_destroy(model->store);
}

struct machine {
    struct ph_program *program;
    struct ph_backend *backend;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
};

static struct machine make_machine(struct model *model, struct ph_program *program, size_t num_threads)
{
    struct machine machine = {.program = program};
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = num_threads},
        &machine.backend));
    assert_ok(ph_executor_create(program, model->store, model->state, machine.backend, &machine.executor));
    assert_ok(ph_workspace_create(machine.executor, NUM_ROWS, 0, &machine.workspace));
    return machine;
}

static void destroy_machine(struct machine *machine)
{
    ph_workspace_destroy(machine->workspace);
    ph_executor_destroy(machine->executor);
    ph_backend_destroy(machine->backend);
    ph_program_destroy(machine->program);
}

static void run_rows(
    struct machine *machine, const struct model *model, size_t first, size_t count, ph_real *y)
{
    const struct ph_batch batch = {
        .num_samples = count, .num_dense = NUM_INPUTS, .dense = model->x + first * NUM_INPUTS};
    const ph_real *data = NULL;
    struct ph_shape shape;
    assert_ok(ph_workspace_bind(machine->workspace, &batch, 1, 1));
    assert_ok(ph_workspace_run(machine->workspace, "forward"));
    assert_ok(ph_workspace_output(machine->workspace, "y", &data, &shape));
    memcpy(y, data, count * NUM_OUTPUTS * sizeof *y);
}

static void assert_alike(const ph_real *y, const ph_real *expected)
{
    for (size_t i = 0; i < NUM_ROWS * NUM_OUTPUTS; i++)
        assert_near((double)y[i], (double)expected[i], 1e-5, 1e-5);
}

static double largest_difference(const ph_real *a, const ph_real *b)
{
    double largest = 0;
    for (size_t i = 0; i < NUM_ROWS * NUM_OUTPUTS; i++)
        largest = fmax(largest, fabs((double)a[i] - (double)b[i]));
    return largest;
}

/* ---- tests ---- */

static const struct design plain = {0};

/* The training program moves the statistics; the inference programs beside it never run again from stale
 * weights. */
static void folded_equals_unfolded_while_the_statistics_move(void **state)
{
    (void)state;
    static struct model model;
    static ph_real y[NUM_ROWS * NUM_OUTPUTS], expected[NUM_ROWS * NUM_OUTPUTS],
        before[NUM_ROWS * NUM_OUTPUTS];
    start(&model);
    struct machine training = make_machine(&model, build_program(&plain, PH_TRAINING, true), 1);
    struct machine folded = make_machine(&model, build_program(&plain, PH_INFERENCE, true), 1);
    struct machine unfolded = make_machine(&model, build_program(&plain, PH_INFERENCE, false), 1);
    for (size_t step = 0; step < 4; step++) {
        memcpy(before, y, sizeof y);
        run_rows(&folded, &model, 0, NUM_ROWS, y);
        run_rows(&unfolded, &model, 0, NUM_ROWS, expected);
        assert_alike(y, expected);
        assert_true(largest_difference(y, before) > 1e-2);
        run_rows(&training, &model, step * 10, NUM_ROWS / 2, expected);
    }
    destroy_machine(&unfolded);
    destroy_machine(&folded);
    destroy_machine(&training);
    stop(&model);
}

static void folded_weights_follow_what_is_written_from_outside(void **state)
{
    (void)state;
    static struct model model;
    static ph_real y[NUM_ROWS * NUM_OUTPUTS], before[NUM_ROWS * NUM_OUTPUTS];
    start(&model);
    struct machine folded = make_machine(&model, build_program(&plain, PH_INFERENCE, true), 1);
    run_rows(&folded, &model, 0, NUM_ROWS, before);
    ((ph_real *)ph_state_tensor(model.state, 0).data)[0] = 3;
    ph_state_touch(model.state);
    run_rows(&folded, &model, 0, NUM_ROWS, y);
    assert_true(largest_difference(y, before) > 1e-3);
    memcpy(before, y, sizeof y);
    struct ph_tensor beta;
    assert_ok(ph_store_find(model.store, "0.beta", &beta));
    ((ph_real *)beta.data)[0] += 3;
    ph_store_touch(model.store);
    run_rows(&folded, &model, 0, NUM_ROWS, y);
    assert_true(largest_difference(y, before) > 1e-3);
    destroy_machine(&folded);
    stop(&model);
}

static void folded_rows_have_the_same_bits_in_every_batch(void **state)
{
    (void)state;
    static struct model model;
    static ph_real whole[NUM_ROWS * NUM_OUTPUTS], y[NUM_ROWS * NUM_OUTPUTS];
    static const size_t batches[] = {1, 7, 50};
    start(&model);
    for (size_t threads = 1; threads <= 3; threads++) {
        struct machine folded = make_machine(&model, build_program(&plain, PH_INFERENCE, true), threads);
        if (threads == 1)
            run_rows(&folded, &model, 0, NUM_ROWS, whole);
        for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
            for (size_t first = 0; first < NUM_ROWS; first += batches[i]) {
                const size_t left = NUM_ROWS - first;
                run_rows(
                    &folded, &model, first, left < batches[i] ? left : batches[i], y + first * NUM_OUTPUTS);
            }
            assert_memory_equal(y, whole, sizeof whole);
        }
        destroy_machine(&folded);
    }
    stop(&model);
}

static void assert_nodes(const struct design *design, const char *op, size_t num_nodes)
{
    struct ph_program *program = build_program(design, PH_INFERENCE, true);
    if (ph_program_num_nodes(program, op) != num_nodes)
        fail_msg("%zu nodes of %s, not %zu", ph_program_num_nodes(program, op), op, num_nodes);
    ph_program_destroy(program);
}

static void norm_and_activation_are_gone_from_the_program(void **state)
{
    (void)state;
    assert_nodes(&plain, "linear", 3);
    assert_nodes(&plain, "fold_batch_norm", 2);
    assert_nodes(&plain, "pack", 1);
    assert_nodes(&plain, NULL, 6);
}

/* The norm of layer 1 folds in each design. */
static void norm_stays_where_its_input_is_read_elsewhere_or_activated(void **state)
{
    (void)state;
    static const struct design designs[] = {
        {.reads_between = true}, {.shows_between = true}, {.has_early_activation = true}};
    for (size_t i = 0; i < sizeof designs / sizeof *designs; i++) {
        assert_nodes(&designs[i], "batch_norm_inference", 1);
        assert_nodes(&designs[i], "fold_batch_norm", 1);
        assert_nodes(&designs[i], "relu", 1);
        assert_nodes(&designs[i], "sigmoid", 0);
    }
}

static void program_without_norms_is_unchanged_node_for_node(void **state)
{
    (void)state;
    const struct design design = {.has_no_norm = true, .has_early_activation = true};
    struct ph_program *program = build_program(&design, PH_INFERENCE, true);
    struct ph_program *unfused = build_program(&design, PH_INFERENCE, false);
    assert_int_equal(program->graph.num_nodes, unfused->graph.num_nodes);
    for (size_t i = 0; i < program->graph.num_nodes; i++) {
        const struct ph__node *a = &program->graph.nodes[i], *b = &unfused->graph.nodes[i];
        assert_ptr_equal(a->op, b->op);
        assert_string_equal(a->name, b->name);
        assert_int_equal(a->num_inputs, b->num_inputs);
        assert_memory_equal(a->inputs, b->inputs, a->num_inputs * sizeof *a->inputs);
        assert_int_equal(a->attributes_size, b->attributes_size);
        assert_memory_equal(a->attributes, b->attributes, a->attributes_size);
    }
    ph_program_destroy(unfused);
    ph_program_destroy(program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_equals_unfolded_while_the_statistics_move),
        cmocka_unit_test(folded_weights_follow_what_is_written_from_outside),
        cmocka_unit_test(folded_rows_have_the_same_bits_in_every_batch),
        cmocka_unit_test(norm_and_activation_are_gone_from_the_program),
        cmocka_unit_test(norm_stays_where_its_input_is_read_elsewhere_or_activated),
        cmocka_unit_test(program_without_norms_is_unchanged_node_for_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
