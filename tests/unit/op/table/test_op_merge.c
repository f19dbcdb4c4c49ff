/* merge and entries against a naive count, through a program that only merges. */
#include "op/table/op_table.h"

#include "graph/executor.h"
#include "unit/op/table_fixture.h"

struct merged {
    struct table_model model;
    ph_value unique, order, rows, coefficients;
};

/* slots -> merge, entries; kept readable by an update that is never run. */
static void build_merge(struct merged *merged, const struct table_case *trial)
{
    merged->model = (struct table_model){.trial = trial, .random = {.key = {.seed = test_seed()}}};
    struct table_model *model = &merged->model;
    struct ph_builder *builder;
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    struct ph_table_slice slices[8];
    static const char *const names[] = {"t.a", "t.b", "t.c", "t.d"};
    for (size_t f = 0; f < trial->num_features; f++)
        slices[f] = (struct ph_table_slice){names[table_slice_of(trial, f)], trial->num_rows};
    ph_value table =
        ph_table(builder, "t", trial->num_features, slices, 1, (struct ph_init){PH_INIT_CONSTANT, 0});
    const struct ph__declaration *declaration = ph__builder_declaration(builder, table);
    ph_value slots = ph__slots(builder, ph_input_ids(builder, trial->num_features), declaration, NULL);
    ph__merge(builder, slots, &merged->unique, &merged->order);
    ph__entries(builder, slots, merged->order, 0, PH_LOOKUP_MEANS, &merged->rows, &merged->coefficients);
    ph_output(builder, "unique", merged->unique);
    ph_output(builder, "order", merged->order);
    ph_output(builder, "rows", merged->rows);
    ph_output(builder, "coefficients", merged->coefficients);
    assert_ok(ph_builder_finish(builder, &model->program));
    ph_builder_destroy(builder);
    const struct ph_backend_options options = {.size = sizeof options, .num_threads = trial->num_threads};
    assert_ok(ph_store_create(1, &model->store));
    assert_ok(ph_state_create(&model->state));
    assert_ok(ph_backend_create(&options, &model->backend));
    assert_ok(
        ph_executor_create(model->program, model->store, model->state, model->backend, &model->executor));
    assert_ok(ph_workspace_create(model->executor, 1, 1, &model->workspace));
}

static const struct ph__operand *value_of(const struct merged *merged, ph_value value)
{
    return &merged->model.workspace->values[value];
}

static size_t num_unique(const struct merged *merged)
{
    return (size_t)merged->model.workspace->extents[value_of(merged, merged->unique)->type->dims[0].symbol];
}

/* The bag (feature-major) of position p. */
static size_t bag_of(const struct ph_batch *batch, size_t p)
{
    size_t bag = 0;
    while (batch->offsets[bag + 1] <= p)
        bag++;
    return bag;
}

static void check_entry(const struct merged *merged, size_t entry, uint32_t slot)
{
    const struct ph_batch *batch = &merged->model.batch;
    const uint32_t *order = value_of(merged, merged->order)->data,
                   *rows = value_of(merged, merged->rows)->data;
    const ph_real *coefficients = value_of(merged, merged->coefficients)->data;
    const size_t p = order[entry], bag = bag_of(batch, p);
    const size_t feature = bag / batch->num_samples, sample = bag % batch->num_samples;
    const struct table_case *trial = merged->model.trial;
    assert_int_equal(table_slice_of(trial, feature) * trial->num_rows + (size_t)batch->ids[p], slot);
    assert_int_equal(rows[entry], sample * batch->num_sparse + feature);
    assert_true(coefficients[entry] == 1 / (ph_real)batch->lengths[bag]);
}

static void check_merge(const struct merged *merged)
{
    const struct ph_batch *batch = &merged->model.batch;
    const uint32_t *unique = value_of(merged, merged->unique)->data,
                   *order = value_of(merged, merged->order)->data;
    const uint32_t *starts = value_of(merged, merged->order)->index;
    const size_t count = num_unique(merged);
    size_t entries = 0;
    for (size_t u = 0; u < count; u++) {
        assert_true(u == 0 || unique[u - 1] < unique[u]);
        assert_int_equal(starts[u], entries);
        assert_true(starts[u] < starts[u + 1]);
        for (; entries < starts[u + 1]; entries++) {
            assert_true(entries == starts[u] || order[entries - 1] < order[entries]);
            check_entry(merged, entries, unique[u]);
        }
    }
    assert_int_equal(entries, batch->num_ids);
    assert_int_equal(starts[count], batch->num_ids);
}

static void every_position_is_listed_once_under_its_slot(void **state)
{
    (void)state;
    static const struct table_case cases[] = {
        {.num_features = 1, .num_rows = 1, .num_samples = 7, .max_ids = 3},
        {.num_features = 3, .num_rows = 4, .num_samples = 5, .max_ids = 2},
        {.num_features = 4, .num_rows = 100, .num_samples = 1000, .max_ids = 3},
        {.num_features = 2, .num_rows = 5000, .num_samples = 3000, .max_ids = 4},
        {.num_features = 2, .num_rows = 3000000, .num_samples = 500, .max_ids = 2},
        {.num_features = 2, .num_rows = 9, .num_samples = 5, .max_ids = 0},
        {.num_features = 2, .num_rows = 9, .num_samples = 0, .max_ids = 1},
        {.num_features = 4, .num_rows = 9, .num_slices = 2, .num_samples = 0, .max_ids = 1},
        {.num_features = 2, .num_rows = 4, .num_slices = 1, .num_samples = 5, .max_ids = 2},
        {.num_features = 3, .num_rows = 9, .num_slices = 2, .num_samples = 40, .max_ids = 3},
        {.num_features = 4, .num_rows = 100, .num_slices = 3, .num_samples = 1000, .max_ids = 3},
        {.num_features = 4, .num_rows = 5000, .num_slices = 2, .num_samples = 900, .max_ids = 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t threads = 1; threads <= 3; threads++) {
            struct table_case trial = cases[i];
            trial.dim = 1;
            trial.num_threads = threads;
            struct merged merged;
            build_merge(&merged, &trial);
            for (int batch = 0; batch < 2; batch++) {
                table_model_next_batch(&merged.model);
                assert_ok(ph_workspace_bind(merged.model.workspace, &merged.model.batch, 1, 1));
                assert_ok(ph_workspace_run(merged.model.workspace, "forward"));
                check_merge(&merged);
            }
            table_model_fini(&merged.model);
        }
}

static void equal_ids_are_one_slot(void **state)
{
    (void)state;
    const struct table_case trial = {
        .num_features = 1, .dim = 1, .num_rows = 1, .num_samples = 4000, .max_ids = 5, .num_threads = 2};
    struct merged merged;
    build_merge(&merged, &trial);
    table_model_next_batch(&merged.model);
    assert_ok(ph_workspace_bind(merged.model.workspace, &merged.model.batch, 1, 1));
    assert_ok(ph_workspace_run(merged.model.workspace, "forward"));
    assert_int_equal(num_unique(&merged), 1);
    table_model_fini(&merged.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_position_is_listed_once_under_its_slot),
        cmocka_unit_test(equal_ids_are_one_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
