/* What the cost rules say of one step, forward and backward, against counts made by hand. A multiplication
 * and an addition are two; biases and activations are not counted. */
#include <string.h>

#include "graph/executor.h"
#include "phloem/op.h"
#include "support/test_support.h"

enum { B = 2, F = 3, D = 5, K = 7, C = 2, T = 4, NUM_DENSE = 36, ITEMS = 3, ROWS = 9, MAX_WRT = 8 };

static const struct ph_init normal = {PH_INIT_NORMAL, 1};

static ph_value parameter(struct ph_builder *builder, const char *name, size_t rank, const size_t *dims)
{
    return ph_parameter(builder, name, rank, dims, normal);
}

/* x's columns [begin, begin + product of dims) as (B, dims...) */
static ph_value columns(struct ph_builder *builder, ph_value x, size_t begin, size_t rank, const size_t *dims)
{
    size_t count = 1;
    for (size_t i = 0; i < rank; i++)
        count *= dims[i];
    return ph_reshape(builder, ph_slice(builder, x, 1, begin, count), rank, dims);
}

static ph_value vectors(struct ph_builder *builder, ph_value x, size_t num_vectors)
{
    return columns(builder, x, 0, 2, (size_t[]){num_vectors, D});
}

/* ---- operators behind x (B,NUM_DENSE) ---- */

static ph_value linear(struct ph_builder *builder, ph_value x)
{
    ph_value weight = parameter(builder, "weight", 2, (size_t[]){K, F});
    ph_value bias = parameter(builder, "bias", 1, (size_t[]){K});
    return ph_linear(builder, columns(builder, x, 0, 1, (size_t[]){F}), weight, bias, PH_IDENTITY);
}

static ph_value cross(struct ph_builder *builder, ph_value x)
{
    ph_value parts[3];
    for (size_t i = 0; i < 3; i++)
        parts[i] = columns(builder, x, i * K, 1, (size_t[]){K});
    return ph_cross(builder, parts[0], parts[1], parts[2]);
}

static ph_value layer_norm(struct ph_builder *builder, ph_value x)
{
    ph_value gamma = parameter(builder, "gamma", 1, (size_t[]){D});
    return ph_layer_norm(
        builder, vectors(builder, x, F), gamma, parameter(builder, "beta", 1, (size_t[]){D}), 1e-5);
}

static ph_value fm(struct ph_builder *builder, ph_value x)
{
    return ph_fm(builder, vectors(builder, x, F));
}

static ph_value dots(struct ph_builder *builder, ph_value x)
{
    return ph_dot_interaction(builder, 0, vectors(builder, x, F));
}

static ph_value dots_with_first(struct ph_builder *builder, ph_value x)
{
    ph_value first = columns(builder, x, F * D, 1, (size_t[]){D});
    return ph_dot_interaction(builder, first, vectors(builder, x, F));
}

static ph_value cin(struct ph_builder *builder, ph_value x)
{
    ph_value first = columns(builder, x, C * D, 2, (size_t[]){F, D});
    ph_value weight = parameter(builder, "weight", 2, (size_t[]){K, C * F});
    return ph_cin(
        builder, vectors(builder, x, C), first, weight, parameter(builder, "bias", 1, (size_t[]){K}));
}

static ph_value convolution(struct ph_builder *builder, ph_value x)
{
    ph_value image = columns(builder, x, 0, 3, (size_t[]){C, F, D});
    ph_value weight = parameter(builder, "weight", 4, (size_t[]){K, C, 3, 1});
    return ph_convolution(builder, image, weight, parameter(builder, "bias", 1, (size_t[]){K}));
}

static ph_value bilinear_head(struct ph_builder *builder, ph_value x)
{
    ph_value y = columns(builder, x, 2 * F, 1, (size_t[]){2 * D});
    ph_value weight = parameter(builder, "weight", 4, (size_t[]){T, 2, F, D});
    return ph_bilinear_head(builder, columns(builder, x, 0, 1, (size_t[]){2 * F}), y, weight);
}

static ph_value field_aware(struct ph_builder *builder, ph_value x)
{
    return ph_field_aware(builder, columns(builder, x, 0, 2, (size_t[]){F, F * 4}));
}

static ph_value pool(struct ph_builder *builder, bool has_weights)
{
    const struct ph_table_slice slice = {"table.f", ROWS};
    ph_value table = ph_table(builder, "table", 1, &slice, D, normal);
    ph_value bags = ph_feature_bags(builder, ph_input_ids(builder, 1), 0);
    ph_value items = ph_embedding_rows(builder, bags, table, 0, 0);
    return ph_pool_rows(builder, items, bags, has_weights ? ph_slice(builder, items, 1, 0, 1) : 0);
}

static ph_value sum_of_rows(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return pool(builder, false);
}

static ph_value weighted_rows(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return pool(builder, true);
}

/* ---- the table ---- */

static const struct {
    ph_value (*build)(struct ph_builder *builder, ph_value x);
    const char *op;
    double flops;
} cases[] = {
    /* (B,F) times (F,K), and each of the two gradients: 2 B F K = 2 * 2 * 3 * 7 */
    {linear, "linear", 84},
    {linear, "linear_backward_data", 84},
    {linear, "linear_backward_weight", 84},
    /* a product and a sum for each of B K = 2 * 7 */
    {cross, "cross", 28},
    /* for each of B F D = 2 * 3 * 5: 1 for the mean, 3 for the variance, 4 to norm, scale and shift */
    {layer_norm, "layer_norm", 240},
    /* g = gamma dy and the normed x, each made twice: 6; the sums of g, of g x, of dy and of dy x: 6; dx of
       these: 4 */
    {layer_norm, "layer_norm_backward", 480},
    /* for each of B F D = 30: added to the sum, squared, added to the squares; backward three as well */
    {fm, "fm", 90},
    {fm, "fm_backward", 90},
    /* F (F - 1) / 2 = 3 pairs: 2 B 3 D = 2 * 2 * 3 * 5; each changes two vectors: twice that */
    {dots, "dot_interaction", 60},
    {dots, "dot_interaction_backward", 120},
    /* 6 pairs of 4 vectors */
    {dots_with_first, "dot_interaction", 120},
    {dots_with_first, "dot_interaction_backward", 240},
    /* B C F D = 2 * 2 * 3 * 5 = 60 products of two vectors' numbers: 1 to make each, 2 K = 14 to add it to K
       sums */
    {cin, "cin", 900},
    /* 2 K for the gradient of a product, and with it 2 for that of each of its factors: 60 * 18 */
    {cin, "cin_backward_data", 1080},
    {cin, "cin_backward_weight", 900},
    /* B K F D = 210 results, 3 * 1 taps over C = 2 channels: 2 * 6 each; dx and dW are as many products in
       another order */
    {convolution, "convolution", 2520},
    {convolution, "convolution_backward_data", 2520},
    {convolution, "convolution_backward_weight", 2520},
    /* T 2 F D = 4 * 2 * 3 * 5 = 120 weights, each used once a sample: 2 B 120; backward for x, for y; for the
       weights */
    {bilinear_head, "bilinear_head", 480},
    {bilinear_head, "bilinear_head_backward_data", 960},
    {bilinear_head, "bilinear_head_backward_weight", 480},
    /* 3 pairs of vectors of 4 numbers: 2 B 3 * 4; backward one product for each of B F F 4 = 2 * 3 * 3 * 4 */
    {field_aware, "field_aware", 48},
    {field_aware, "field_aware_backward", 72},
    /* ITEMS D = 3 * 5 sums, and as many products where there are weights */
    {sum_of_rows, "pool_rows", 15},
    {weighted_rows, "pool_rows", 30},
};

/* ---- running ---- */

/* All that has a gradient is differentiated by. */
static void differentiate(struct ph_builder *builder, ph_value x, ph_value loss)
{
    static const char *const names[MAX_WRT] = {"g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7"};
    ph_value wrt[MAX_WRT] = {x}, gradients[MAX_WRT];
    const size_t count = 1 + ph_builder_num_parameters(builder);
    assert_true(count <= MAX_WRT);
    for (size_t i = 1; i < count; i++)
        wrt[i] = ph_builder_parameter(builder, i - 1);
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, count, wrt, gradients);
    for (size_t i = 0; i < count; i++)
        if (gradients[i] != 0)
            ph_output(builder, names[i], gradients[i]);
}

static struct ph_program *program_of(
    ph_value (*build)(struct ph_builder *builder, ph_value x), size_t *num_tasks_out)
{
    struct ph_builder *builder = NULL;
    struct ph_program *program = NULL;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    ph_value x = ph_input_dense(builder, NUM_DENSE);
    ph_value y = build(builder, x);
    assert_ok(ph_builder_status(builder));
    const struct ph_type type = ph_value_type(builder, y);
    *num_tasks_out = 1;
    for (size_t i = 1; i < type.num_dims; i++)
        *num_tasks_out *= type.dims[i].extent;
    y = ph_reshape(builder, y, 1, num_tasks_out);
    ph_value loss = ph_bce_with_logits(builder, y, ph_input_labels(builder, *num_tasks_out), 0, 0);
    ph_output(builder, "loss", loss);
    differentiate(builder, x, loss);
    assert_ok(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    return program;
}

/* Of the operators of that name, by the profile. */
static double flops_of(const struct ph_executor *executor, const char *op)
{
    const struct ph__graph *graph = &executor->program->graph;
    double flops = 0;
    assert_int_equal(ph_program_num_nodes(executor->program, op), 1);
    for (size_t i = 0; i < graph->num_nodes; i++)
        if (strcmp(graph->nodes[i].op->name, op) == 0)
            flops += executor->profile[i].cost.flops;
    return flops;
}

static double flops_of_step(ph_value (*build)(struct ph_builder *builder, ph_value x), const char *op)
{
    static const ph_real dense[B * NUM_DENSE], labels[B * NUM_DENSE * K];
    static const int32_t lengths[B] = {1, 2};
    static const uint32_t offsets[B + 1] = {0, 1, ITEMS};
    static const int64_t ids[ITEMS] = {4, 0, 8};
    struct ph_batch batch = {.num_samples = B,
        .num_dense = NUM_DENSE,
        .num_sparse = 1,
        .num_ids = ITEMS,
        .dense = dense,
        .labels = labels,
        .lengths = lengths,
        .offsets = offsets,
        .ids = ids};
    struct ph_program *program = program_of(build, &batch.num_tasks);
    struct ph_store *store = NULL;
    struct ph_state *state = NULL;
    struct ph_backend *backend = NULL;
    struct ph_executor *executor = NULL;
    struct ph_workspace *workspace = NULL;
    assert_ok(ph_store_create(1, &store));
    assert_ok(ph_state_create(&state));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1}, &backend));
    assert_ok(ph_executor_create(program, store, state, backend, &executor));
    assert_ok(ph_workspace_create(executor, B, ITEMS, &workspace));
    assert_ok(ph_executor_profile(executor, true, 0));
    assert_ok(ph_workspace_bind(workspace, &batch, 1, 1));
    assert_ok(ph_workspace_run(workspace, "forward"));
    assert_ok(ph_workspace_run(workspace, "backward"));
    const double flops = flops_of(executor, op);
    ph_workspace_destroy(workspace);
    ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    ph_state_destroy(state);
    ph_store_destroy(store);
    ph_program_destroy(program);
    return flops;
}

static void cost_rules_count_what_is_counted_by_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double flops = flops_of_step(cases[i].build, cases[i].op);
        if (flops != cases[i].flops)
            fail_msg("%s (case %zu): %g FLOP; by hand %g", cases[i].op, i, flops, cases[i].flops);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cost_rules_count_what_is_counted_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
