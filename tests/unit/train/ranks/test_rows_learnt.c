/* Rows that slots show to have been learnt from, against rows marked batch by batch in the same training; and
 * what ranks know of them. */
#include "train/ranks/rows_learnt.h"

#include <math.h>

#include "unit/report/page_reader.h"
#include "unit/train/rank_training.h"
#include "unit/train/train_fixture.h"

/* Reads report.html; destroy it with ph__json_destroy. */
static struct ph__json *page_of(const struct setup *setup)
{
    return page_read(ph__path_join(&fixture.arena, setup->folder, "report.html"));
}

static struct setup *set_up_few(
    const char *folder, enum ph_optimizer_kind optimizer, enum ph_table_scope scope, double l2)
{
    struct setup *setup = set_up("fm", folder);
    setup->train.report = true;
    setup->train.batch_size = 4;
    setup->train.epochs = 1;
    setup->train.max_steps = 5;
    setup->train.checkpoint_steps = 1;
    setup->optimizer.rule.kind = optimizer;
    setup->optimizer.embedding_scope = scope;
    setup->optimizer.embedding_l2 = l2;
    return setup;
}

static volatile int stop;

static ph_status stop_at_once(void *context, const struct ph_train_progress *progress)
{
    (void)context;
    (void)progress;
    stop = 15;
    return PH_OK;
}

/* Trains without a stop, and again with one behind the first step; returns both pages. */
static void train_both_ways(const char *name, enum ph_optimizer_kind optimizer, enum ph_table_scope scope,
    double l2, struct ph__json *pages[2])
{
    char folder[64];
    const struct ph_train_observer observer = {.on_progress = stop_at_once};
    struct ph_train_summary summary;
    snprintf(folder, sizeof folder, "%s_whole", name);
    struct setup *setup = set_up_few(folder, optimizer, scope, l2);
    train(setup);
    pages[0] = page_of(setup);
    free(setup);
    snprintf(folder, sizeof folder, "%s_resumed", name);
    setup = set_up_few(folder, optimizer, scope, l2);
    setup->train.report_seconds = 0;
    setup->job.options.observer = &observer;
    setup->job.options.stop_signal = &stop;
    assert_int_equal(ph__train(&setup->job, &summary), PH_ERROR_TERMINATED);
    stop = 0;
    setup->job.options.observer = NULL;
    setup->job.options.is_resumed = true;
    assert_ok(ph__train(&setup->job, &summary));
    assert_true(summary.resumed_step > 0 && summary.resumed_step < 5);
    pages[1] = page_of(setup);
    free(setup);
}

enum { LEARNT = 2, UNLEARNT_TEST = 6 }; /* columns of the table of ids */

static double cell_of(const struct ph__json *page, const char *feature, size_t column)
{
    return ph__json_as_number(ph__json_at(page_row(page, "id-table", feature), column), (double)NAN);
}

static bool is_told(const struct ph__json *page)
{
    return isfinite(cell_of(page, "C1", LEARNT));
}

/* The share of rows and test ids agree; ids of the validation were counted before slots were looked at. */
static void expect_same_share(
    const struct ph__json *whole, const struct ph__json *resumed, const char *feature)
{
    const double learnt = cell_of(whole, feature, LEARNT);
    assert_true(learnt > 0);
    assert_true(cell_of(resumed, feature, LEARNT) == learnt);
    assert_true(cell_of(resumed, feature, UNLEARNT_TEST) == cell_of(whole, feature, UNLEARNT_TEST));
}

static void destroy_pages(struct ph__json *pages[2])
{
    ph__json_destroy(pages[0]);
    ph__json_destroy(pages[1]);
}

static void slots_tell_what_batches_did(void **state)
{
    (void)state;
    const struct {
        const char *name;
        enum ph_optimizer_kind optimizer;
        enum ph_table_scope scope;
        double l2;
    } cases[] = {{"adam", PH_ADAM, PH_SCOPE_TOUCHED, 1e-3},
        {"rowwise", PH_ROWWISE_ADAGRAD, PH_SCOPE_TOUCHED, 0}, {"no_decay", PH_ADAM, PH_SCOPE_WHOLE, 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ph__json *pages[2];
        train_both_ways(cases[i].name, cases[i].optimizer, cases[i].scope, cases[i].l2, pages);
        expect_same_share(pages[0], pages[1], "C1");
        assert_true(cell_of(pages[0], "C1", LEARNT) < 1); /* 20 samples and 40 rows */
        destroy_pages(pages);
    }
}

static void where_all_rows_decay_or_nothing_is_kept_slots_tell_nothing(void **state)
{
    (void)state;
    struct ph__json *pages[2];
    train_both_ways("decay", PH_ADAM, PH_SCOPE_WHOLE, 1e-3, pages);
    assert_true(is_told(pages[0])); /* batches told it */
    assert_false(is_told(pages[1]));
    destroy_pages(pages);
    train_both_ways("sgd", PH_SGD, PH_SCOPE_TOUCHED, 0, pages);
    assert_false(is_told(pages[1]));
    destroy_pages(pages);
}

/* ---- what report.html says of tables and ids after a training by ranks, against the same training alone
 * ---- */

/* So few steps that many rows are not learnt from, and ids of the validation and test data name such rows. */
static struct setup *set_up_deepfm(const char *folder)
{
    struct setup *setup = set_up("deepfm", folder);
    setup->train.report = true;
    setup->train.batch_size = 4;
    setup->train.epochs = 1;
    setup->train.max_steps = 5;
    setup->train.checkpoint_steps = 1;
    setup->optimizer.rule.kind = PH_ADAM;
    setup->optimizer.embedding_scope = PH_SCOPE_TOUCHED;
    setup->optimizer.embedding_l2 = 0;
    return setup;
}

static const char *const features[] = {"C1", "C2", "C3", "C4"};

static const char *const plans[] = {
    "default: {kind: table_wise}\n",
    "default: {kind: row_wise}\n",
    "default: {kind: column_wise}\n",
    "default: {kind: data_parallel}\n",
    "tables: {embedding.C1: {kind: row_wise}, \"*C2\": {kind: table_wise}}\ndefault: {kind: data_parallel}\n",
};

/* Trains on three ranks and expects the same section of ids. */
static void expect_equal_ids(const struct ph__json *alone, struct setup *setup, const char *plan)
{
    train_anew_on_ranks(setup, 3, plan);
    struct ph__json *shared = page_of(setup);
    page_expect_equal(page_find(shared, "ids"), page_find(alone, "ids"));
    ph__json_destroy(shared);
}

static void ids_are_those_of_all_ranks(void **state)
{
    (void)state;
    struct setup *setup = set_up_deepfm("ids");
    train(setup);
    struct ph__json *alone = page_of(setup);
    for (size_t i = 0; i < COUNT(plans); i++)
        expect_equal_ids(alone, setup, plans[i]);
    ph__json_destroy(alone);
    free(setup);
}

/* A whole pass over the data: rows are known by batches alone, and no slot tells more. */
static void ids_of_whole_passes_are_those_of_all_ranks(void **state)
{
    (void)state;
    struct setup *setup = set_up("dlrm", "passes");
    setup->train.report = true;
    train(setup);
    struct ph__json *alone = page_of(setup);
    expect_equal_ids(alone, setup, plans[1]);
    ph__json_destroy(alone);
    free(setup);
}

/* In a training that was resumed, by another number of ranks, slots tell which rows are learnt. */
static void slots_of_all_ranks_tell(void **state)
{
    (void)state;
    const struct ph_train_observer observer = {.on_progress = stop_at_once};
    struct thread_rank_end ends[2];
    struct setup *setup = set_up_deepfm("told");
    train(setup);
    struct ph__json *whole = page_of(setup);
    for (size_t i = 0; i < COUNT(plans); i++) {
        setup->train.report_seconds = 0;
        setup->job.options.observer = &observer;
        setup->job.options.stop_signal = &stop;
        setup->job.options.is_resumed = false;
        remove_folder(setup);
        train_on_ranks(setup, 2, plans[i], ends);
        assert_int_equal(ends[0].status, PH_ERROR_TERMINATED);
        stop = 0;
        setup->job.options.observer = NULL;
        setup->job.options.is_resumed = true;
        const struct ph_train_summary summary = train_on_ranks(setup, 3, plans[i], NULL);
        assert_true(summary.resumed_step > 0 && summary.resumed_step < 5);
        struct ph__json *resumed = page_of(setup);
        for (size_t f = 0; f < COUNT(features); f++)
            expect_same_share(whole, resumed, features[f]);
        ph__json_destroy(resumed);
    }
    ph__json_destroy(whole);
    free(setup);
}

/* Each row tells of the same table: name to bytes of slots, and how it is spread behind them. */
static void tables_are_those_of_all_ranks(void **state)
{
    (void)state;
    struct setup *setup = set_up_deepfm("tables");
    train(setup);
    struct ph__json *alone = page_of(setup);
    train_anew_on_ranks(setup, 3, plans[1]);
    struct ph__json *shared = page_of(setup);
    const struct ph__json *rows = ph__json_get(page_find(alone, "table-table"), "rows");
    const struct ph__json *shared_rows = ph__json_get(page_find(shared, "table-table"), "rows");
    assert_int_equal(ph__json_size(rows), 8); /* four of embeddings, four of the linear part */
    assert_int_equal(ph__json_size(shared_rows), 8);
    for (size_t i = 0; i < 8; i++) {
        const struct ph__json *row = ph__json_at(rows, i), *shared_row = ph__json_at(shared_rows, i);
        assert_int_equal(ph__json_size(row), 6);
        for (size_t column = 0; column < 6; column++)
            page_expect_equal(ph__json_at(shared_row, column), ph__json_at(row, column));
        assert_string_equal(ph__json_as_text(ph__json_at(shared_row, 6), ""), "row_wise");
    }
    page_expect(shared, "{\"name\":\"ranks\",\"value\":\"3; threads");
    ph__json_destroy(alone);
    ph__json_destroy(shared);
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_tell_what_batches_did),
        cmocka_unit_test(where_all_rows_decay_or_nothing_is_kept_slots_tell_nothing),
        cmocka_unit_test(ids_are_those_of_all_ranks),
        cmocka_unit_test(ids_of_whole_passes_are_those_of_all_ranks),
        cmocka_unit_test(slots_of_all_ranks_tell),
        cmocka_unit_test(tables_are_those_of_all_ranks),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
