/* What models do with samples works with items: programs over M items give the bits of programs over M
 * samples. */
#include "op/table/op_table.h"

#include <string.h>

#include "base/rng.h"
#include "support/test_support.h"

enum { WIDTH = 21, MOST_ROWS = 3000, MOST_RESULT = 40000, NUM_LEARNT = 11 };

static ph_real rows[MOST_ROWS * WIDTH];
static const struct ph_init normal = {PH_INIT_NORMAL, 1};

static ph_value layer(struct ph_builder *builder, ph_value x, size_t in, size_t out, const char *name,
    enum ph_activation activation)
{
    ph_builder_push_scope(builder, name);
    const ph_value weight = ph_parameter(builder, "weight", 2, (size_t[]){out, in}, normal);
    const ph_value bias = ph_parameter(builder, "bias", 1, &out, normal);
    ph_builder_pop_scope(builder);
    return ph_linear(builder, x, weight, bias, activation);
}

/* Every operator that models use behind a lookup: x (rows, WIDTH) -> (rows, 2). Dropout goes by sample: see
 * its test. */
static ph_value perceptron(struct ph_builder *builder, ph_value x)
{
    const size_t hidden = 40;
    ph_value pair[] = {ph_multiply(builder, x, ph_sigmoid(builder, x)), x};
    x = layer(builder, ph_concat(builder, 2, pair, 1), 2 * WIDTH, hidden, "a", PH_IDENTITY);
    const ph_value gamma = ph_parameter(builder, "gamma", 1, &hidden, normal);
    const ph_value beta = ph_parameter(builder, "beta", 1, &hidden, normal);
    x = ph_batch_norm(builder, x, gamma, beta, "norm",
        &(struct ph_batch_norm_options){
            .size = sizeof(struct ph_batch_norm_options), .epsilon = 1e-3, .momentum = 0.1});
    x = ph_relu(builder, x);
    x = ph_add(builder, ph_slice(builder, x, 1, 0, 20), ph_slice(builder, x, 1, 20, 20));
    x = layer(builder, x, 20, 12, "b", PH_SIGMOID);
    x = layer(builder, ph_reshape(builder, x, 2, (size_t[]){3, 4}), 4, 2, "c", PH_RELU);
    x = ph_add(builder, x, ph_parameter(builder, "row", 1, (size_t[]){2}, normal));
    return layer(builder, ph_reshape(builder, x, 1, (size_t[]){6}), 6, 2, "d", PH_IDENTITY);
}

struct trial {
    enum ph_mode mode;
    enum ph_precision precision;
    bool is_of_items;
    size_t num_rows, num_samples; /* num_rows samples where they are not items */
    size_t num_threads;
};

struct result {
    size_t size;
    ph_real data[MOST_RESULT];
};

/* The rows of the table are what the samples of the other program are. */
static ph_value items(struct ph_builder *builder, ph_value *bags_out)
{
    static const struct ph_table_slice slices[] = {{"items.before", 2}, {"items.history", MOST_ROWS}};
    const ph_value table = ph_table(builder, "items", 2, slices, WIDTH, normal);
    *bags_out = ph_feature_bags(builder, ph_input_ids(builder, 2), 1);
    return ph_embedding_rows(builder, *bags_out, table, 1, 0);
}

static struct ph_program *build(const struct trial *trial)
{
    struct ph_builder *builder;
    struct ph_program *program;
    ph_value bags = 0;
    assert_ok(ph_builder_create(trial->mode, &builder));
    ph_builder_set_precision(builder, trial->precision);
    ph_value y =
        perceptron(builder, trial->is_of_items ? items(builder, &bags) : ph_input_dense(builder, WIDTH));
    ph_output(builder, "y", y);
    if (trial->mode == PH_TRAINING) {
        const size_t first = trial->is_of_items ? 1 : 0; /* behind the table */
        ph_value learnt[NUM_LEARNT], gradients[NUM_LEARNT];
        if (trial->is_of_items)
            y = ph_pool_rows(builder, y, bags, 0);
        for (size_t i = 0; i < NUM_LEARNT; i++)
            learnt[i] = ph_builder_parameter(builder, first + i);
        ph_builder_begin_entry(builder, "backward");
        ph_backward(builder, ph_bce_with_logits(builder, y, ph_input_labels(builder, 2), 0, 0), NUM_LEARNT,
            learnt, gradients);
        for (size_t i = 0; i < NUM_LEARNT; i++)
            ph_output(builder, (char[]){'g', (char)('a' + i), '\0'}, gradients[i]);
    }
    assert_ok(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    return program;
}

/* Bags of 0 to 3 items where there are fewer samples than items, else of one each; the other feature has two
 * ids. */
static struct ph_batch make_batch(const struct trial *trial)
{
    static uint32_t offsets[2 * MOST_ROWS + 1];
    static int32_t lengths[2 * MOST_ROWS];
    static int64_t ids[3 * MOST_ROWS];
    static ph_real labels[2 * MOST_ROWS];
    struct ph_batch batch = {
        .num_samples = trial->num_rows, .num_dense = WIDTH, .num_tasks = 2, .dense = rows, .labels = labels};
    for (size_t i = 0; i < 2 * MOST_ROWS; i++)
        labels[i] = (ph_real)(i % 5 == 0);
    if (!trial->is_of_items)
        return batch;
    const size_t num_samples = batch.num_samples = trial->num_samples;
    size_t left = trial->num_rows;
    for (size_t bag = 0; bag < 2 * num_samples; bag++) {
        const size_t sample = bag % num_samples;
        const size_t most = num_samples == trial->num_rows ? 1 : sample % 4;
        const size_t last = sample + 1 == num_samples ? left : most < left ? most : left;
        const size_t length = bag < num_samples ? 2 : last;
        lengths[bag] = (int32_t)length;
        offsets[bag + 1] = offsets[bag] + (uint32_t)length;
        for (size_t i = 0; i < length; i++)
            ids[offsets[bag] + i] = bag < num_samples ? 0 : (int64_t)(trial->num_rows - left + i);
        left -= bag < num_samples ? 0 : length;
    }
    batch.num_sparse = 2;
    batch.num_ids = offsets[2 * num_samples];
    batch.offsets = offsets;
    batch.lengths = lengths;
    batch.ids = ids;
    return batch;
}

static void append(struct ph_workspace *workspace, const char *name, struct result *result)
{
    const ph_real *data;
    struct ph_shape shape;
    assert_ok(ph_workspace_output(workspace, name, &data, &shape));
    const size_t elements = ph_shape_elements(&shape);
    assert_true(result->size + elements <= MOST_RESULT);
    memcpy(result->data + result->size, data, elements * sizeof *data);
    result->size += elements;
}

static void run(const struct trial *trial, struct result *result_out)
{
    struct ph_program *program = build(trial);
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
    struct ph_tensor table;
    const struct ph_batch batch = make_batch(trial);
    assert_ok(ph_store_create(7, &store));
    assert_ok(ph_state_create(&state));
    assert_ok(ph_backend_create(&(struct ph_backend_options){.size = sizeof(struct ph_backend_options),
                                    .num_threads = trial->num_threads},
        &backend));
    assert_ok(ph_executor_create(program, store, state, backend, &executor));
    if (trial->is_of_items) {
        assert_ok(ph_store_find(store, "items.history", &table));
        memcpy(table.data, rows, sizeof rows);
        ph_store_touch(store);
    }
    assert_ok(ph_workspace_create(executor, 1, 1, &workspace));
    assert_ok(ph_workspace_bind(workspace, &batch, 1, 1));
    assert_ok(ph_workspace_run(workspace, "forward"));
    result_out->size = 0;
    append(workspace, "y", result_out);
    for (char gradient[] = "ga"; trial->mode == PH_TRAINING && gradient[1] < 'a' + NUM_LEARNT;
         gradient[1]++) {
        if (gradient[1] == 'a')
            assert_ok(ph_workspace_run(workspace, "backward"));
        append(workspace, gradient, result_out);
    }
    ph_workspace_destroy(workspace);
    ph_executor_destroy(executor);
    ph_backend_destroy(backend);
    ph_state_destroy(state);
    ph_store_destroy(store);
    ph_program_destroy(program);
}

/* Gradients are compared where each sample has one item: then the loss is the same. */
static void check_items(struct trial trial, bool has_gradients)
{
    static struct result of_samples, of_items;
    trial.num_threads = 2;
    run(&trial, &of_samples);
    trial.is_of_items = true;
    trial.num_threads = 3;
    run(&trial, &of_items);
    if (has_gradients)
        assert_int_equal(of_items.size, of_samples.size);
    const size_t size = has_gradients ? of_samples.size : trial.num_rows * 2;
    assert_true(of_items.size >= size);
    assert_memory_equal(of_items.data, of_samples.data, size * sizeof(ph_real));
}

static void items_go_through_models_as_samples_do(void **state)
{
    (void)state;
    static const struct {
        size_t num_rows, num_samples;
    } batches[] = {{0, 0}, {0, 5}, {1, 1}, {1, 3}, {257, 90}, {257, 257}, {MOST_ROWS, 1000}, {900, 900}};
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    for (size_t i = 0; i < MOST_ROWS * WIDTH; i++)
        rows[i] = (ph_real)ph__rng_next_normal(&random);
    for (size_t i = 0; i < 32; i++) {
        const struct trial trial = {.mode = i & 1 ? PH_INFERENCE : PH_TRAINING,
            .precision = i & 2 ? PH_PRECISION_BF16 : PH_PRECISION_FP32,
            .num_rows = batches[i / 4].num_rows,
            .num_samples = batches[i / 4].num_samples};
        check_items(trial, trial.num_rows == trial.num_samples);
    }
}

static void the_bags_of_items_are_found_by_their_dimension(void **state)
{
    (void)state;
    struct ph_builder *builder;
    ph_value bags;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    const struct ph_type of_items = ph_value_type(builder, items(builder, &bags)),
                         of_samples = ph_value_type(builder, ph_input_dense(builder, 3)),
                         of_ids = ph_value_type(builder, ph_input_id_weights(builder));
    assert_int_equal(ph__bags_of(builder, &of_items), bags);
    assert_int_equal(ph__bags_of(builder, &of_samples), 0);
    assert_int_equal(ph__bags_of(builder, &of_ids), 0); /* of two features: their bags are not one a sample */
    ph_builder_destroy(builder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_go_through_models_as_samples_do),
        cmocka_unit_test(the_bags_of_items_are_found_by_their_dimension),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
