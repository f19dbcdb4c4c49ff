/* Facts of tables against the encoder's rows, the batch's lengths and the optimizers' formulas. */
#include "train/config/table_facts.h"

#include "model/model_options.h"
#include "train/config/training_program.h"
#include "unit/train/train_fixture.h"

static const struct ph__table_facts *fact_of(const struct ph__table_list *list, const char *name)
{
    for (size_t i = 0; i < list->num_tables; i++)
        if (strcmp(list->tables[i].name, name) == 0)
            return &list->tables[i];
    fail_msg("no facts of %s", name);
    return NULL;
}

static void expect_bytes(
    const struct ph__table_facts *table, size_t weight_bytes, size_t slot_bytes, size_t row_slot_bytes)
{
    assert_int_equal(table->weight_bytes, weight_bytes);
    assert_int_equal(table->slot_bytes, slot_bytes);
    assert_int_equal(table->row_slot_bytes, row_slot_bytes);
}

/* The bags of make_data have 1, 2, 1 and 3 ids. */
static void a_jobs_tables_have_their_rows_ids_and_bytes(void **state)
{
    (void)state;
    static const double ids[] = {1, 2, 1, 3};
    struct setup *setup = set_up("deepfm", "facts");
    struct ph__table_list list;
    setup->optimizer.embedding_kind = PH_EMBEDDING_ROWWISE_ADAGRAD;
    setup->optimizer.embedding_l2 = 0;
    assert_ok(ph__table_list_of_job(&setup->job, &list));
    assert_int_equal(list.num_tables, 2 * ph_encoder_num_sparse(fixture.encoder));
    for (size_t f = 0; f < ph_encoder_num_sparse(fixture.encoder); f++) {
        const struct ph_sparse_feature *feature = ph_encoder_sparse(fixture.encoder, f);
        for (size_t part = 0; part < 2; part++) {
            char name[64];
            snprintf(name, sizeof name, "%s.%s", part == 0 ? "embedding" : "linear", feature->name);
            const struct ph__table_facts *table = fact_of(&list, name);
            assert_int_equal(table->num_rows, feature->num_rows);
            assert_int_equal(table->dim, part == 0 ? 6 : 1);
            assert_int_equal(table->num_features, 1);
            assert_int_equal(table->reads[0].feature, f);
            assert_false(table->reads[0].is_of_items);
            assert_int_equal(table->parameter == list.tables[0].parameter,
                strncmp(table->name, list.tables[0].name, strcspn(name, ".")) == 0);
            assert_near(table->ids_per_sample, ids[f], 1e-9, 0);
            expect_bytes(table, 4 * table->dim, 4, 4);
        }
    }
    ph__table_list_fini(&list);
    free(setup);
}

static void bytes_follow_optimizer_and_row_format(void **state)
{
    (void)state;
    static const struct {
        enum ph_optimizer_kind kind;
        enum ph_row_format format;
        size_t weight_bytes, slot_bytes;
    } cases[] = {{PH_SGD, PH_ROWS_FP16, 12, 0}, {PH_ADAGRAD, PH_ROWS_BF16, 12, 24},
        {PH_ADAM, PH_ROWS_BF16_SPLIT, 24, 48}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct setup *setup = set_up("dlrm", "facts");
        struct ph__table_list list;
        setup->optimizer.rule.kind = cases[i].kind;
        setup->train.row_format = cases[i].format;
        assert_ok(ph__table_list_of_job(&setup->job, &list));
        expect_bytes(&list.tables[0], cases[i].weight_bytes, cases[i].slot_bytes, 0);
        ph__table_list_fini(&list);
        free(setup);
    }
}

/* Row-wise state moves by the squares of a row's whole gradient, which l2 gives to all rows or to those of
 * the batch. */
static void rows_stay_whole_where_all_of_them_are_summed(void **state)
{
    (void)state;
    static const struct {
        enum ph_embedding_kind kind;
        double l2;
        enum ph_table_scope scope;
        bool has_whole_rows;
    } cases[] = {{PH_EMBEDDING_ROWWISE_ADAGRAD, .1, PH_SCOPE_WHOLE, true},
        {PH_EMBEDDING_ROWWISE_ADAGRAD, .1, PH_SCOPE_TOUCHED, false},
        {PH_EMBEDDING_ROWWISE_ADAGRAD, 0, PH_SCOPE_WHOLE, false},
        {PH_EMBEDDING_ADAGRAD, .1, PH_SCOPE_WHOLE, false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct setup *setup = set_up("dlrm", "facts");
        struct ph__table_list list;
        setup->optimizer.embedding_kind = cases[i].kind;
        setup->optimizer.embedding_l2 = cases[i].l2;
        setup->optimizer.embedding_scope = cases[i].scope;
        assert_ok(ph__table_list_of_job(&setup->job, &list));
        assert_int_equal(list.tables[0].has_whole_rows, cases[i].has_whole_rows);
        ph__table_list_fini(&list);
        free(setup);
    }
}

/* A DIN whose history and target share rows, while the other feature is pooled: by hand, on two samples. */
static void features_that_share_a_table_count_for_it_together(void **state)
{
    (void)state;
    static const struct ph_table_slice sparse[] = {{"user", 7}, {"item", 5}, {"history", 5}};
    static const struct ph_table_slice slices[] = {{"user", 7}, {"item", 5}, {"item", 5}};
    static const int32_t lengths[] = {1, 1, 1, 1, 2, 3};
    static const uint32_t offsets[] = {0, 1, 2, 3, 4, 6, 9};
    static const int64_t ids[] = {6, 6, 1, 2, 1, 1, 3, 1, 0}; /* items: 1 is read 4 times; 0, 2 and 3 once */
    const struct ph_batch batch = {
        .num_samples = 2, .num_sparse = 3, .num_ids = 9, .lengths = lengths, .offsets = offsets, .ids = ids};
    const struct ph_model_features features = {
        .num_sparse = 3, .num_tasks = 1, .sparse = sparse, .slices = slices};
    static const char *const sets[] = {
        "model.kind=din", "model.embedding_dim=3", "model.din.targets=item", "model.din.histories=history"};
    static struct ph__model_section section;
    struct ph__section sections[PH_NUM_MODEL_SECTIONS];
    const size_t count = ph__model_sections(&section, sections);
    assert_ok(ph__config_read(NULL, sets, COUNT(sets), sections, count, &fixture.arena));
    assert_ok(ph__model_section_finish(&section, NULL, &fixture.arena));
    struct setup *setup = set_up("dlrm", "facts");
    struct ph__training_program learning;
    struct ph__table_list list;
    setup->job.model = &section.settings;
    assert_ok(ph__training_program_build(&setup->job, &features, NULL, &learning));
    assert_ok(ph__table_list_init(learning.program, PH_ROWS_FP32, &batch, &list));
    assert_int_equal(list.num_tables, 2);
    assert_int_equal(fact_of(&list, "embedding.user")->num_features, 1);
    assert_near(fact_of(&list, "embedding.user")->ids_per_sample, 1, 1e-9, 0);
    assert_int_equal(fact_of(&list, "embedding.item")->num_features, 2);
    assert_near(fact_of(&list, "embedding.item")->ids_per_sample, 1 + 2.5, 1e-9, 0);
    for (size_t i = 0; i < 2; i++) {
        const struct ph__table_read *read = &fact_of(&list, "embedding.item")->reads[i];
        assert_int_equal(read->is_of_items, read->feature == 2); /* the history */
    }
    assert_near(fact_of(&list, "embedding.user")->accesses[1], 1, 1e-12, 0);
    assert_near(fact_of(&list, "embedding.item")->accesses[0], .75, 1e-12, 0);
    assert_near(fact_of(&list, "embedding.item")->accesses[2], .25, 1e-12, 0);
    ph__table_list_fini(&list);
    ph_program_destroy(learning.program);
    free(setup);
}

static void a_job_without_data_is_refused(void **state)
{
    (void)state;
    struct setup *setup = set_up("dlrm", "facts");
    struct ph__table_list list;
    setup->job.paths.train = NULL;
    assert_fails(ph__table_list_of_job(&setup->job, &list), PH_ERROR_CONFIG, "data.train is missing");
    ph__table_list_fini(&list);
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_jobs_tables_have_their_rows_ids_and_bytes),
        cmocka_unit_test(bytes_follow_optimizer_and_row_format),
        cmocka_unit_test(rows_stay_whole_where_all_of_them_are_summed),
        cmocka_unit_test(features_that_share_a_table_count_for_it_together),
        cmocka_unit_test(a_job_without_data_is_refused),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
