#include "unit/op/table_fixture.h"

static const struct table_case usual = {.num_features = 3,
    .dim = 2,
    .num_rows = 10,
    .num_samples = 3000,
    .max_ids = 2,
    .optimizer = {.rule.kind = PH_SGD}};

/* Runs forward with one id replaced; `p` is its position. */
static ph_status run_with(struct table_model *model, size_t p, int64_t id)
{
    ((int64_t *)(uintptr_t)model->batch.ids)[p] = id;
    assert_ok(ph_workspace_bind(model->workspace, &model->batch, 1, 1));
    return ph_workspace_run(model->workspace, "forward");
}

static void an_id_outside_its_table_is_bad_data(void **state)
{
    (void)state;
    const int64_t bad[] = {10, -1, INT64_MAX, INT64_MIN, (int64_t)1 << 32, 29};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct table_model model;
        table_model_init(&model, &usual);
        table_model_next_batch(&model);
        model.batch.first_sample = 500;
        const size_t bag = 1 * 3000 + 2100;
        size_t filled = bag;
        while (model.batch.lengths[filled] == 0)
            filled++;
        const size_t position = model.batch.offsets[filled + 1] - 1;
        const int64_t former = model.batch.ids[position];
        char wanted[128];
        snprintf(wanted, sizeof wanted, "feature 'f1', sample %zu: id %lld is outside its table of 10 rows",
            500 + filled - 3000, (long long)bad[i]);
        assert_fails(run_with(&model, position, bad[i]), PH_ERROR_DATA, wanted);
        assert_ok(run_with(&model, position, former));
        assert_ok(run_with(&model, position, 9));
        table_model_fini(&model);
    }
}

/* LR's weights and an embedding of the same features share what depends on ids alone. */
static size_t count_in_pair(size_t second_rows, const char *operator_name)
{
    struct ph_builder *builder;
    struct ph_program *program;
    const struct ph_init normal = {PH_INIT_NORMAL, 1};
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    const struct ph_table_slice first[] = {{"linear.user", 30}, {"linear.item", 20}};
    const struct ph_table_slice second[] = {{"embedding.user", 30}, {"embedding.item", second_rows}};
    ph_value tables[] = {ph_table(builder, "linear", 2, first, 1, normal),
        ph_table(builder, "embedding", 2, second, 10, normal)};
    ph_value ids = ph_input_ids(builder, 2);
    ph_value linear = ph_embedding_bag(builder, ids, tables[0], PH_POOL_SUM, 0);
    ph_value vectors = ph_embedding_bag(builder, ids, tables[1], PH_POOL_SUM, 0);
    ph_value parts[] = {
        ph_reshape(builder, linear, 1, (size_t[]){2}), ph_reshape(builder, vectors, 1, (size_t[]){20})};
    ph_value logits = ph_concat(builder, 2, parts, 1);
    ph_value loss = ph_bce_with_logits(builder, logits, ph_input_labels(builder, 22), 0, 0), gradients[2];
    ph_builder_begin_entry(builder, "backward");
    ph_backward(builder, loss, 2, tables, gradients);
    ph_output(builder, "a", gradients[0]);
    ph_output(builder, "b", gradients[1]);
    assert_ok(ph_builder_finish(builder, &program));
    const size_t count = ph_program_num_nodes(program, operator_name);
    ph_program_destroy(program);
    ph_builder_destroy(builder);
    return count;
}

static void tables_of_equal_rows_share_slots_and_merge(void **state)
{
    (void)state;
    static const char *const shared[] = {"slots", "merge", "entries"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(count_in_pair(20, shared[i]), 1);
        assert_int_equal(count_in_pair(21, shared[i]), 2);
    }
}

static void assert_bag_refused(size_t num_slices, bool is_table, const char *part)
{
    struct ph_builder *builder;
    struct ph_program *program;
    const struct ph_init normal = {PH_INIT_NORMAL, 1};
    assert_ok(ph_builder_create(PH_TRAINING, &builder));
    const struct ph_table_slice slices[] = {{"t.a", 3}, {"t.b", 3}};
    ph_value table = is_table ? ph_table(builder, "t", num_slices, slices, 1, normal)
                              : ph_parameter(builder, "t", 2, (size_t[]){6, 1}, normal);
    assert_int_equal(ph_embedding_bag(builder, ph_input_ids(builder, 2), table, PH_POOL_SUM, 0), 0);
    assert_fails(ph_builder_finish(builder, &program), PH_ERROR_CONFIG, part);
    ph_builder_destroy(builder);
}

static void a_table_must_have_a_slice_for_each_feature(void **state)
{
    (void)state;
    assert_bag_refused(1, true, "table 't' has 1 features, but the ids have 2");
    assert_bag_refused(2, false, "'t' is not a table");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_outside_its_table_is_bad_data),
        cmocka_unit_test(tables_of_equal_rows_share_slots_and_merge),
        cmocka_unit_test(a_table_must_have_a_slice_for_each_feature),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
