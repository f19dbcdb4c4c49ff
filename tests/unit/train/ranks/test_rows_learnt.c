/* Rows that slots show to have been learnt from, against rows marked batch by batch in the same training. */
#include "train/ranks/rows_learnt.h"

#include "unit/train/train_fixture.h"

static char *page; /* report.html of a training, where its rows are told; the arena's */

static const char *row_of(const struct setup *setup, const char *feature)
{
    char begin[64];
    size_t size = 0;
    const char *path = ph__path_join(&fixture.arena, setup->folder, "report.html");
    assert_ok(ph__file_read(&fixture.arena, path, 1 << 24, &page, &size));
    snprintf(begin, sizeof begin, "<td>%s</td>", feature);
    char *row = strstr(page, begin);
    assert_non_null(row);
    *strstr(row, "</tr>") = '\0';
    return row;
}

static struct setup *set_up_few(const char *folder, int optimizer, int scope, double l2)
{
    struct setup *setup = set_up("fm", folder);
    setup->train.report = true;
    setup->train.batch_size = 4;
    setup->train.epochs = 1;
    setup->train.max_steps = 5;
    setup->train.checkpoint_steps = 1;
    setup->optimizer.kind = optimizer;
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
static void train_both_ways(
    const char *name, int optimizer, int scope, double l2, const char **whole, const char **resumed)
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
        int optimizer, scope;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_tell_what_batches_did),
        cmocka_unit_test(where_all_rows_decay_or_nothing_is_kept_slots_tell_nothing),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
