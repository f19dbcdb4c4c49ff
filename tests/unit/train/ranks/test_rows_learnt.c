/* Rows that slots show to have been learnt from, against rows marked batch by batch in the same training; and what ranks know of them. */
#include "train/ranks/rows_learnt.h"

#include <math.h>

#include "unit/train/rank_training.h"
#include "unit/train/train_fixture.h"

static char *page; /* report.html, as it was read last; the arena's */

static char *page_of(const struct setup *setup)
{
    size_t size = 0;
    const char *path = ph__path_join(&fixture.arena, setup->folder, "report.html");
    assert_ok(ph__file_read(&fixture.arena, path, 1 << 24, &page, &size));
    return page;
}

static const char *row_of(const struct setup *setup, const char *feature)
{
    char begin[64];
    snprintf(begin, sizeof begin, "<td>%s</td>", feature);
    char *row = strstr(page_of(setup), begin);
    assert_non_null(row);
    *strstr(row, "</tr>") = '\0';
    return row;
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

/* The row of the page of a training that was not stopped, and of one that was resumed behind its first step. */
static void train_both_ways(const char *name, enum ph_optimizer_kind optimizer, enum ph_table_scope scope,
    double l2, const char **whole, const char **resumed)
{
    char folder[64];
    const struct ph_train_observer observer = {.on_progress = stop_at_once};
    struct ph_train_summary summary;
    snprintf(folder, sizeof folder, "%s_whole", name);
    struct setup *setup = set_up_few(folder, optimizer, scope, l2);
    train(setup);
    *whole = row_of(setup, "C1");
    free(setup);
    snprintf(folder, sizeof folder, "%s_resumed", name);
    setup = set_up_few(folder, optimizer, scope, l2);
    setup->train.report_seconds = 0;
    setup->job.observer = &observer;
    setup->job.stop_signal = &stop;
    assert_int_equal(ph_train(&setup->job, &summary), PH_ERROR_TERMINATED);
    stop = 0;
    setup->job.observer = NULL;
    setup->job.is_resumed = true;
    assert_ok(ph_train(&setup->job, &summary));
    assert_true(summary.resumed_step > 0 && summary.resumed_step < 5);
    *resumed = row_of(setup, "C1");
    free(setup);
}

/* The share of rows, and the last cell: of test ids. Those of the validation were counted before slots were looked at. */
static void expect_same_cells(const char *whole, const char *resumed)
{
    assert_memory_equal(whole, resumed, (size_t)(strstr(whole, "</td>") - whole));
    assert_string_equal(strrchr(whole, '"'), strrchr(resumed, '"'));
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
        const char *whole, *resumed;
        train_both_ways(cases[i].name, cases[i].optimizer, cases[i].scope, cases[i].l2, &whole, &resumed);
        assert_null(strstr(whole, "<td>–</td>"));
        expect_same_cells(strstr(whole, "class=\"bar\""), strstr(resumed, "class=\"bar\""));
        assert_null(strstr(whole, "width:100.00%")); /* 20 samples and 40 rows */
    }
}

static void where_all_rows_decay_or_nothing_is_kept_slots_tell_nothing(void **state)
{
    (void)state;
    const char *whole, *resumed;
    train_both_ways("decay", PH_ADAM, PH_SCOPE_WHOLE, 1e-3, &whole, &resumed);
    assert_null(strstr(whole, "<td>–</td>")); /* batches told it */
    assert_non_null(strstr(resumed, "<td>–</td>"));
    train_both_ways("sgd", PH_SGD, PH_SCOPE_TOUCHED, 0, &whole, &resumed);
    assert_non_null(strstr(resumed, "<td>–</td>"));
}

/* ---- what report.html says of tables and ids after a training by ranks, against the same training alone -------------- */

/* A section of report.html; the arena's. */
static const char *section_of(const struct setup *setup, const char *id)
{
    char begin[64];
    snprintf(begin, sizeof begin, "<section id=\"%s\">", id);
    char *section = strstr(page_of(setup), begin);
    assert_non_null(section);
    *strstr(section, "</section>") = '\0';
    return section;
}

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

static const char *const plans[] = {
    "default: {kind: table_wise}\n",
    "default: {kind: row_wise}\n",
    "default: {kind: column_wise}\n",
    "default: {kind: data_parallel}\n",
    "tables: {embedding.C1: {kind: row_wise}, \"*C2\": {kind: table_wise}}\ndefault: {kind: data_parallel}\n",
};

static void expect_equal_ids(const char *ids, struct setup *setup, const char *plan)
{
    train_anew_on_ranks(setup, 3, plan);
    assert_string_equal(section_of(setup, "ids"), ids);
}

static void ids_are_those_of_all_ranks(void **state)
{
    (void)state;
    struct setup *setup = set_up_deepfm("ids");
    train(setup);
    const char *ids = section_of(setup, "ids");
    for (size_t i = 0; i < COUNT(plans); i++)
        expect_equal_ids(ids, setup, plans[i]);
    free(setup);
}

/* A whole pass over the data: rows are known by batches alone, and no slot tells more. */
static void ids_of_whole_passes_are_those_of_all_ranks(void **state)
{
    (void)state;
    struct setup *setup = set_up("dlrm", "passes");
    setup->train.report = true;
    train(setup);
    expect_equal_ids(section_of(setup, "ids"), setup, plans[1]);
    free(setup);
}

/* The share of rows learnt from, and the last cell of each feature: of test ids; those of the validation were counted
 * before slots were looked at. */
static void expect_equal_told(const char *whole, const char *resumed)
{
    for (size_t f = 0; f < 4; f++) {
        whole = strstr(whole, "<tr><td>C") + 4, resumed = strstr(resumed, "<tr><td>C") + 4;
        const char *whole_end = strstr(whole, "</tr>"), *resumed_end = strstr(resumed, "</tr>");
        const size_t told = (size_t)(strstr(whole, "%</span>") - whole);
        assert_memory_equal(whole, resumed, told);
        assert_memory_equal(whole_end - 32, resumed_end - 32, 32);
    }
}

/* In a training that was resumed, by another number of ranks, slots tell which rows are learnt. */
static void slots_of_all_ranks_tell(void **state)
{
    (void)state;
    const struct ph_train_observer observer = {.on_progress = stop_at_once};
    struct thread_rank_end ends[2];
    struct setup *setup = set_up_deepfm("told");
    train(setup);
    const char *whole = section_of(setup, "ids");
    for (size_t i = 0; i < COUNT(plans); i++) {
        setup->train.report_seconds = 0;
        setup->job.observer = &observer;
        setup->job.stop_signal = &stop;
        setup->job.is_resumed = false;
        remove_folder(setup);
        train_on_ranks(setup, 2, plans[i], ends);
        assert_int_equal(ends[0].status, PH_ERROR_TERMINATED);
        stop = 0;
        setup->job.observer = NULL;
        setup->job.is_resumed = true;
        const struct ph_train_summary summary = train_on_ranks(setup, 3, plans[i], NULL);
        assert_true(summary.resumed_step > 0 && summary.resumed_step < 5);
        expect_equal_told(whole, section_of(setup, "ids"));
    }
    free(setup);
}

/* Cells of one row of the table of tables: name to bytes of slots. */
static void tables_are_those_of_all_ranks(void **state)
{
    (void)state;
    struct setup *setup = set_up_deepfm("tables");
    train(setup);
    const char *alone = section_of(setup, "tables");
    train_anew_on_ranks(setup, 3, plans[1]);
    const char *shared = section_of(setup, "tables");
    for (size_t i = 0; i < 8; i++) { /* four of embeddings, four of the linear part */
        alone = strstr(alone, "<tr><td>") + 1, shared = strstr(shared, "<tr><td>") + 1;
        const size_t length = (size_t)(strstr(alone, "</tr>") - alone);
        assert_memory_equal(alone, shared, length);
        assert_memory_equal(shared + length, "<td>row_wise</td></tr>", 22);
    }
    assert_non_null(strstr(page_of(setup), "<dt>ranks</dt><dd>3; threads"));
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
