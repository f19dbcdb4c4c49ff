/* Selected features against a naive walk over the bags. */
#include "graph/executor.h"
#include "unit/op/table_fixture.h"

enum { NUM_FEATURES = 4, MOST_SELECTED = 4 };

struct selection {
    size_t count, features[MOST_SELECTED];
};

/* A program that selects the features' ids and looks them up. */
struct trial {
    struct selection selection;
    bool has_weights; /* in the batch */
    size_t num_samples, max_ids;
};

static const struct ph_init normal = {PH_INIT_NORMAL, 1};

static ph_value table_of(struct ph_builder *builder)
{
    static const struct ph_table_slice slices[] = {{"t.a", 9}, {"t.b", 9}, {"t.c", 9}, {"t.d", 9}};
    return ph_table(builder, "t", NUM_FEATURES, slices, 3, normal);
}

/* The bag of a selected feature and sample, item by item. */
static void check_bag(const struct ph_batch *batch, const struct ph__operand *bags, const ph_real *weights,
    size_t bag, size_t source)
{
    const size_t first = batch->offsets[source], count = batch->offsets[source + 1] - first;
    assert_int_equal(bags->index[bag + 1] - bags->index[bag], count);
    for (size_t i = 0; i < count; i++) {
        const size_t item = bags->index[bag] + i;
        assert_int_equal(((const int64_t *)bags->data)[item], batch->ids[first + i]);
        assert_true(weights[item] == (batch->id_weights != NULL ? batch->id_weights[first + i] : 1));
    }
}

static void check_selection(const struct trial *trial)
{
    const struct selection *selection = &trial->selection;
    const struct table_case given = {.num_features = NUM_FEATURES,
        .dim = 3,
        .num_rows = 9,
        .num_samples = trial->num_samples,
        .max_ids = trial->max_ids,
        .has_id_weights = trial->has_weights,
        .num_threads = 2};
    struct table_model model = {.trial = &given, .random = {.key = {.seed = test_seed()}}};
    struct ph_builder *builder;
    assert_ok(ph_builder_create(PH_INFERENCE, &builder));
    const ph_value table = table_of(builder), ids = ph_input_ids(builder, NUM_FEATURES),
                   weights = ph_input_id_weights(builder);
    const ph_value bags = ph_select_features(builder, ids, selection->count, selection->features);
    assert_int_equal(ph_select_features(builder, ids, selection->count, selection->features), bags);
    ph_output(builder, "all", ph_embedding_bag(builder, ids, table, PH_POOL_MEAN, weights));
    const ph_value pooled = ph_embedding_bag(builder, bags, table, PH_POOL_MEAN, weights);
    ph_output(builder, "some", pooled);
    const ph_value slots = ph__builder_producer(builder, pooled)->inputs[0],
                   selected_weights = ph__builder_producer(builder, pooled)->inputs[2];
    ph_output(builder, "bags", bags);
    ph_output(builder, "slots", slots);
    ph_output(builder, "weights", selected_weights);
    assert_ok(ph_builder_finish(builder, &model.program));
    ph_builder_destroy(builder);
    assert_ok(ph_store_create(1, &model.store));
    assert_ok(ph_state_create(&model.state));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 2},
        &model.backend));
    assert_ok(ph_executor_create(model.program, model.store, model.state, model.backend, &model.executor));
    assert_ok(ph_workspace_create(model.executor, 1, 1, &model.workspace));
    table_model_next_batch(&model);
    assert_ok(ph_workspace_bind(model.workspace, &model.batch, 1, 1));
    assert_ok(ph_workspace_run(model.workspace, "forward"));

    const struct ph__operand *operand = &model.workspace->values[bags];
    const ph_real *some, *all;
    struct ph_shape shape;
    assert_ok(ph_workspace_output(model.workspace, "all", &all, &shape));
    assert_ok(ph_workspace_output(model.workspace, "some", &some, &shape));
    assert_int_equal(shape.dims[1], selection->count);
    assert_int_equal(operand->index[0], 0);
    for (size_t i = 0; i < selection->count * trial->num_samples; i++) {
        const size_t feature = selection->features[i / trial->num_samples], sample = i % trial->num_samples;
        check_bag(&model.batch, operand, model.workspace->values[selected_weights].data, i,
            feature * trial->num_samples + sample);
        assert_memory_equal(some + (sample * selection->count + i / trial->num_samples) * 3,
            all + (sample * NUM_FEATURES + feature) * 3, 3 * sizeof *all);
    }
    assert_int_equal(model.workspace->extents[operand->type->dims[1].symbol],
        operand->index[selection->count * trial->num_samples]);
    table_model_fini(&model);
}

static void selected_features_keep_their_bags_and_their_weights(void **state)
{
    (void)state;
    static const struct selection selections[] = {
        {1, {0}}, {1, {2}}, {1, {3}}, {2, {0, 3}}, {3, {1, 2, 3}}, {4, {0, 1, 2, 3}}};
    static const size_t num_samples[] = {0, 1, 40, 3000}, max_ids[] = {0, 1, 5};
    for (size_t i = 0; i < sizeof selections / sizeof *selections; i++)
        for (size_t j = 0; j < 24; j++)
            check_selection(&(struct trial){.selection = selections[i],
                .has_weights = j >= 12,
                .num_samples = num_samples[j % 4],
                .max_ids = max_ids[j / 4 % 3]});
}

static void assert_selection_refused(
    size_t num_features, const size_t *features, bool is_selected_twice, const char *part)
{
    struct ph_builder *builder;
    struct ph_program *program;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    ph_value ids = ph_input_ids(builder, 3);
    if (is_selected_twice)
        ids = ph_feature_bags(builder, ids, 0);
    assert_int_equal(ph_select_features(builder, ids, num_features, features), 0);
    assert_fails(ph_builder_finish(builder, &program), PH_ERROR_CONFIG, part);
    ph_builder_destroy(builder);
}

static void features_to_select_ascend_and_are_there(void **state)
{
    (void)state;
    static const char *const line = "feature_bags: features must ascend and be below 3";
    assert_selection_refused(1, (size_t[]){3}, false, line);
    assert_selection_refused(2, (size_t[]){1, 1}, false, line);
    assert_selection_refused(2, (size_t[]){2, 0}, false, line);
    assert_selection_refused(0, (size_t[]){0}, false, line);
    assert_selection_refused(
        1, (size_t[]){0}, true, "feature_bags: 'feature_bags' is not the ids of a batch");
}

/* The bad id's feature is named, and the sample by its place in the epoch. */
static void an_id_outside_its_slice_is_bad_data(void **state)
{
    (void)state;
    struct ph_builder *builder;
    struct table_model model = {0};
    assert_ok(ph_builder_create(PH_INFERENCE, &builder));
    const ph_value table = table_of(builder), ids = ph_input_ids(builder, NUM_FEATURES);
    ph_output(builder, "rows", ph_embedding_rows(builder, ph_feature_bags(builder, ids, 2), table, 2, 0));
    assert_ok(ph_builder_finish(builder, &model.program));
    ph_builder_destroy(builder);
    assert_ok(ph_store_create(1, &model.store));
    assert_ok(ph_state_create(&model.state));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 2},
        &model.backend));
    assert_ok(ph_executor_create(model.program, model.store, model.state, model.backend, &model.executor));
    assert_ok(ph_workspace_create(model.executor, 2, 8, &model.workspace));
    const struct ph_batch batch = {.num_samples = 2,
        .num_sparse = NUM_FEATURES,
        .num_ids = 8,
        .first_sample = 70,
        .lengths = (int32_t[]){1, 1, 1, 1, 0, 2, 1, 1},
        .offsets = (uint32_t[]){0, 1, 2, 3, 4, 4, 6, 7, 8},
        .ids = (int64_t[]){0, 0, 0, 0, 8, 9, 0, 0}};
    assert_ok(ph_workspace_bind(model.workspace, &batch, 1, 1));
    assert_fails(ph_workspace_run(model.workspace, "forward"), PH_ERROR_DATA,
        "feature 'c', sample 71: id 9 is outside its table of 9 rows");
    ph_workspace_destroy(model.workspace);
    ph_executor_destroy(model.executor);
    ph_program_destroy(model.program);
    ph_backend_destroy(model.backend);
    ph_state_destroy(model.state);
    ph_store_destroy(model.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selected_features_keep_their_bags_and_their_weights),
        cmocka_unit_test(features_to_select_ascend_and_are_there),
        cmocka_unit_test(an_id_outside_its_slice_is_bad_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
