/* Lookups item by item, beside pooled ones of the same table. That gradients are right is shown by
 * tests/gradient/test_ops_history.c. */
#include <math.h>

#include "unit/op/table_fixture.h"

#include "tensor/row_format.h"

enum { NUM_FEATURES = 3, HISTORY = 1 };

/* ---- what is looked up ---- */

enum { DIM = 19, NUM_ROWS = 50, NUM_SAMPLES = 2500 };

struct lookup {
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;
    struct ph_program *program;
    struct ph_executor *executor;
    struct ph_workspace *workspace;
};

/* "pooled" (B,F,D) of the bags and "rows" (M,D) of one feature's items, times the weights of the ids. */
static struct ph_program *build_lookup(enum ph_mode mode, bool has_weights)
{
    static const struct ph_table_slice slices[] = {{"t.a", NUM_ROWS}, {"t.b", NUM_ROWS}, {"t.c", NUM_ROWS}};
    struct ph_builder *builder;
    struct ph_program *program;
    assert_ok(ph_builder_create(mode, &builder));
    const ph_value table =
        ph_table(builder, "t", NUM_FEATURES, slices, DIM, (struct ph_init){PH_INIT_NORMAL, 1});
    const ph_value ids = ph_input_ids(builder, NUM_FEATURES);
    const ph_value weights = has_weights ? ph_input_id_weights(builder) : 0;
    ph_output(builder, "pooled", ph_embedding_bag(builder, ids, table, PH_POOL_SUM, weights));
    ph_output(builder, "rows",
        ph_embedding_rows(builder, ph_feature_bags(builder, ids, HISTORY), table, HISTORY, weights));
    assert_ok(ph_builder_finish(builder, &program));
    ph_builder_destroy(builder);
    return program;
}

static void start(struct lookup *lookup, enum ph_row_format format, enum ph_mode mode, bool has_weights)
{
    lookup->program = build_lookup(mode, has_weights);
    assert_ok(ph_store_create(test_seed(), &lookup->store));
    assert_ok(ph_state_create(&lookup->state));
    if (mode == PH_TRAINING)
        ph__store_learn_rows(lookup->store, format);
    else
        ph__store_set_row_format(lookup->store, format);
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 3},
        &lookup->backend));
    assert_ok(ph_executor_create(
        lookup->program, lookup->store, lookup->state, lookup->backend, &lookup->executor));
    assert_ok(ph_workspace_create(lookup->executor, 1, 1, &lookup->workspace));
}

static void stop(struct lookup *lookup)
{
    ph_workspace_destroy(lookup->workspace);
    ph_executor_destroy(lookup->executor);
    ph_backend_destroy(lookup->backend);
    ph_program_destroy(lookup->program);
    ph_state_destroy(lookup->state);
    ph_store_destroy(lookup->store);
}

static void fill_table(struct lookup *lookup, struct ph__rng_sequence *random)
{
    static ph_real numbers[NUM_ROWS * DIM];
    for (size_t f = 0; f < NUM_FEATURES; f++) {
        struct ph_tensor slice = ph_store_tensor(lookup->store, f);
        for (size_t i = 0; i < NUM_ROWS * DIM; i++)
            numbers[i] = (ph_real)ph__rng_next_normal(random);
        ph__rows_encode(slice.row_format, NUM_ROWS, DIM, numbers, slice.data, slice.low);
    }
    ph_store_touch(lookup->store);
}

/* Bags of one id, but for some of the feature's own without any. */
static void run(struct lookup *lookup, struct ph__rng_sequence *random, bool has_weights, int32_t *lengths)
{
    enum { NUM_BAGS = NUM_FEATURES * NUM_SAMPLES };
    static uint32_t offsets[NUM_BAGS + 1];
    static int64_t ids[NUM_BAGS];
    static ph_real weights[NUM_BAGS];
    for (size_t bag = 0; bag < NUM_BAGS; bag++) {
        lengths[bag] = bag / NUM_SAMPLES != HISTORY || bag % 7 != 0;
        ids[bag] = (int64_t)ph__rng_below(random, NUM_ROWS);
        weights[bag] = (ph_real)ph__rng_next_normal(random);
        offsets[bag + 1] = offsets[bag] + (uint32_t)lengths[bag];
    }
    const struct ph_batch batch = {.num_samples = NUM_SAMPLES,
        .num_sparse = NUM_FEATURES,
        .num_ids = offsets[NUM_BAGS],
        .lengths = lengths,
        .offsets = offsets,
        .ids = ids,
        .id_weights = has_weights ? weights : NULL};
    assert_ok(ph_workspace_bind(lookup->workspace, &batch, 0, 0));
    assert_ok(ph_workspace_run(lookup->workspace, "forward"));
}

/* A row has the bits of a bag of that one id. */
static void check_rows(enum ph_row_format format, enum ph_mode mode, int weights)
{
    static int32_t lengths[NUM_FEATURES * NUM_SAMPLES];
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    struct lookup lookup;
    const ph_real *pooled, *rows;
    struct ph_shape shape;
    start(&lookup, format, mode, weights > 0);
    fill_table(&lookup, &random);
    run(&lookup, &random, weights > 1, lengths);
    assert_ok(ph_workspace_output(lookup.workspace, "pooled", &pooled, &shape));
    assert_ok(ph_workspace_output(lookup.workspace, "rows", &rows, &shape));
    assert_int_equal(shape.num_dims, 2);
    assert_int_equal(shape.dims[1], DIM);
    size_t item = 0;
    for (size_t sample = 0; sample < NUM_SAMPLES; sample++) {
        const ph_real *bag = pooled + (sample * NUM_FEATURES + HISTORY) * DIM;
        if (lengths[HISTORY * NUM_SAMPLES + sample] == 0)
            continue;
        assert_true(item < shape.dims[0] && bag[0] != 0);
        assert_memory_equal(rows + item++ * DIM, bag, DIM * sizeof *bag);
    }
    assert_int_equal(item, shape.dims[0]);
    stop(&lookup);
}

static void rows_of_every_format_are_those_of_bags_of_one_id(void **state)
{
    (void)state;
    static const enum ph_row_format learnt[] = {PH_ROWS_FP32, PH_ROWS_FP16, PH_ROWS_BF16, PH_ROWS_BF16_SPLIT};
    for (int weights = 0; weights < 3; weights++) {
        for (int format = 0; format < PH_ROW_FORMAT_COUNT; format++)
            check_rows((enum ph_row_format)format, PH_INFERENCE, weights);
        for (size_t i = 0; i < sizeof learnt / sizeof *learnt; i++)
            check_rows(learnt[i], PH_TRAINING, weights);
    }
}

/* ---- what is learnt ---- */

/* The history's rows, pooled behind the lookup: (B,1,D). */
static ph_value history(struct ph_builder *builder, ph_value ids, ph_value table)
{
    const ph_value bags = ph_feature_bags(builder, ids, HISTORY);
    const ph_value rows = ph_embedding_rows(builder, bags, table, HISTORY, 0);
    const size_t dim = ph_value_type(builder, table).dims[1].extent;
    return ph_reshape(builder, ph_pool_rows(builder, rows, bags, 0), 2, (size_t[]){1, dim});
}

/* The other features are pooled without it: the two gradients of the table have no slot in common. */
static ph_value rows_apart(struct ph_builder *builder, ph_value ids, ph_value table)
{
    const ph_value selected = ph_select_features(builder, ids, 2, (size_t[]){0, 2});
    const ph_value others = ph_embedding_bag(builder, selected, table, PH_POOL_SUM, 0);
    const ph_value parts[] = {
        ph_slice(builder, others, 1, 0, 1), history(builder, ids, table), ph_slice(builder, others, 1, 1, 1)};
    return ph_concat(builder, 3, parts, 1);
}

/* All are pooled, and the history counts once more: they have its slots in common. */
static ph_value rows_too(struct ph_builder *builder, ph_value ids, ph_value table)
{
    const ph_value pooled = ph_embedding_bag(builder, ids, table, PH_POOL_SUM, 0);
    const ph_value twice = ph_add(builder, ph_slice(builder, pooled, 1, 1, 1), history(builder, ids, table));
    const ph_value parts[] = {ph_slice(builder, pooled, 1, 0, 1), twice, ph_slice(builder, pooled, 1, 2, 1)};
    return ph_concat(builder, 3, parts, 1);
}

/* What rows_too gives, by one lookup with weights. */
static void weigh_history_twice(struct ph_batch *batch)
{
    ph_real *weights = (ph_real *)(uintptr_t)batch->id_weights;
    const uint32_t *first = batch->offsets + HISTORY * batch->num_samples;
    for (size_t p = 0; p < batch->num_ids; p++)
        weights[p] = p >= first[0] && p < first[batch->num_samples] ? 2 : 1;
}

static void assert_near_parameter(const struct ph_parameter *a, const struct ph_parameter *b)
{
    for (size_t i = 0; i < a->elements; i++)
        assert_near((double)a->data[i], (double)b->data[i], 1e-6, 2e-5);
}

static void train(struct table_model *model, bool is_weighed)
{
    for (uint64_t step = 1; step <= 3; step++) {
        table_model_next_batch(model);
        if (is_weighed)
            weigh_history_twice(&model->batch);
        assert_ok(table_model_run(model, step));
    }
}

static struct table_case usual_case(enum ph_optimizer_kind kind, bool is_whole_table, double max_norm)
{
    return (struct table_case){.num_features = NUM_FEATURES,
        .dim = 5,
        .num_rows = 300,
        .num_samples = 150,
        .max_ids = 6,
        .optimizer = table_optimizer(kind, is_whole_table, is_whole_table ? 0.02 : 0),
        .max_norm = max_norm,
        .num_threads = 2};
}

/* With every optimizer, of touched rows and of the whole table, with clipping and without. */
static void rows_that_are_pooled_behind_the_lookup_learn_as_those_pooled_in_it(void **state)
{
    (void)state;
    for (int i = 0; i < 4 * PH_OPTIMIZER_COUNT; i++) {
        const struct table_case pooled = usual_case((enum ph_optimizer_kind)(i / 4), i & 1, i & 2 ? 0.01 : 0);
        struct table_case apart = pooled, too = pooled, weighed = pooled;
        apart.look_up = rows_apart;
        too.look_up = rows_too;
        too.has_id_weights = weighed.has_id_weights = true; /* of the batch: both draw the same numbers */
        const struct table_case *pairs[][2] = {{&pooled, &apart}, {&weighed, &too}};
        for (size_t pair = 0; pair < 2; pair++) {
            struct table_model models[2];
            for (size_t k = 0; k < 2; k++) {
                table_model_init(&models[k], pairs[pair][k]);
                train(&models[k], pair == 1);
            }
            assert_int_equal(table_model_count(&models[1], "update_table"), 1);
            assert_int_equal(table_model_count(&models[1], "embedding_update"), 0);
            assert_near_parameter(models[0].table, models[1].table);
            assert_near_parameter(models[0].vectors, models[1].vectors);
            for (size_t k = 0; k < 2; k++)
                table_model_fini(&models[k]);
        }
    }
}

static ph_value history_alone(struct ph_builder *builder, ph_value ids, ph_value table)
{
    const ph_value part = history(builder, ids, table);
    return ph_concat(builder, 3, (ph_value[]){part, part, part}, 1);
}

/* A table that is looked up once still takes its step in one sweep, with the bits that two operators give. */
static void the_gradient_of_rows_alone_melts_into_the_update(void **state)
{
    (void)state;
    for (int kind = 0; kind < PH_OPTIMIZER_COUNT; kind++) {
        struct table_case fused = usual_case((enum ph_optimizer_kind)kind, false, 0);
        fused.look_up = history_alone;
        struct table_case plain = fused;
        plain.reads_gradient = true;
        struct table_model models[2];
        table_model_init(&models[0], &fused);
        table_model_init(&models[1], &plain);
        assert_int_equal(table_model_count(&models[0], "embedding_update"), 1);
        assert_int_equal(table_model_count(&models[1], "embedding_update"), 0);
        train(&models[0], false);
        train(&models[1], false);
        assert_same_model(&models[0], &models[1]);
        table_model_fini(&models[0]);
        table_model_fini(&models[1]);
    }
}

/* Pooled features that share a slice, in one sweep and by two operators, on one thread and on three. */
static void features_that_share_a_slice_learn_with_the_same_bits_fused_or_not(void **state)
{
    (void)state;
    for (int kind = 0; kind < PH_OPTIMIZER_COUNT; kind++) {
        struct table_case fused = usual_case((enum ph_optimizer_kind)kind, false, 0);
        fused.num_slices = 2;
        fused.num_samples = 1500;
        struct table_case plain = fused;
        plain.reads_gradient = true;
        plain.num_threads = 3;
        struct table_model models[2];
        table_model_init(&models[0], &fused);
        table_model_init(&models[1], &plain);
        assert_int_equal(models[0].table->num_slices, 2);
        assert_int_equal(table_model_count(&models[0], "embedding_update"), 1);
        train(&models[0], false);
        train(&models[1], false);
        assert_same_model(&models[0], &models[1]);
        table_model_fini(&models[0]);
        table_model_fini(&models[1]);
    }
}

static void threads_do_not_change_a_bit(void **state)
{
    (void)state;
    struct table_model models[2];
    struct table_case cases[2];
    for (size_t k = 0; k < 2; k++) {
        cases[k] = usual_case(PH_ADAM, false, 0.01);
        cases[k].num_samples = 3000;
        cases[k].dim = 24;
        cases[k].look_up = rows_too;
        cases[k].num_threads = k == 0 ? 1 : 3;
        table_model_init(&models[k], &cases[k]);
        train(&models[k], false);
    }
    assert_same_model(&models[0], &models[1]);
    for (size_t k = 0; k < 2; k++)
        table_model_fini(&models[k]);
}

/* ---- what is refused ---- */

static void assert_rows_refused(size_t num_selected, size_t feature, const char *part)
{
    static const struct ph_table_slice slices[] = {{"t.a", 3}, {"t.b", 3}};
    struct ph_builder *builder;
    struct ph_program *program;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    const ph_value table = ph_table(builder, "t", 2, slices, 1, (struct ph_init){PH_INIT_NORMAL, 1});
    const ph_value bags =
        ph_select_features(builder, ph_input_ids(builder, 2), num_selected, (size_t[]){0, 1});
    assert_int_equal(ph_embedding_rows(builder, bags, table, feature, 0), 0);
    assert_fails(ph_builder_finish(builder, &program), PH_ERROR_CONFIG, part);
    ph_builder_destroy(builder);
}

static void rows_are_of_one_feature_that_has_a_slice(void **state)
{
    (void)state;
    assert_rows_refused(2, 0, "embedding_rows: 'feature_bags' is not the bags of one feature");
    assert_rows_refused(1, 2, "embedding_rows: table 't' has 2 features, but no feature 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_every_format_are_those_of_bags_of_one_id),
        cmocka_unit_test(rows_that_are_pooled_behind_the_lookup_learn_as_those_pooled_in_it),
        cmocka_unit_test(the_gradient_of_rows_alone_melts_into_the_update),
        cmocka_unit_test(features_that_share_a_slice_learn_with_the_same_bits_fused_or_not),
        cmocka_unit_test(threads_do_not_change_a_bit),
        cmocka_unit_test(rows_are_of_one_feature_that_has_a_slice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
