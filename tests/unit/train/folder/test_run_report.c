/* What report.html holds of whole trainings; that it is sound HTML and looks right,
 * tests/system/test_report_html.sh sees. */
#include "train/folder/run_report.h"

#include <math.h>
#include <signal.h>

#include "unit/report/page_reader.h"
#include "unit/train/train_fixture.h"

static struct ph__json *page; /* that page_of has read last */

static int make(void **state)
{
    page = NULL;
    return make_data(state);
}

static int drop(void **state)
{
    ph__json_destroy(page);
    return drop_data(state);
}

static const struct ph__json *page_of(const struct setup *setup)
{
    ph__json_destroy(page);
    page = page_read(ph__path_join(&fixture.arena, setup->folder, "report.html"));
    return page;
}

static bool is_there(const struct setup *setup, const char *name)
{
    return ph__file_exists(ph__path_join(&fixture.arena, setup->folder, name));
}

static struct setup *set_up_report(const char *model, const char *folder)
{
    struct setup *setup = set_up(model, folder);
    setup->train.report = true;
    setup->train.report_seconds = 0;
    return setup;
}

static void a_finished_training_has_all_sections(void **state)
{
    (void)state;
    static const char *const ids[] = {
        "figures", "curves", "calibration", "operators", "tables", "ids", "graph", "memory"};
    struct setup *setup = set_up_report("dlrm", "whole");
    struct ph_train_summary summary = train(setup);
    page_of(setup);
    for (size_t i = 0; i < COUNT(ids); i++)
        assert_non_null(page_find(page, ids[i]));
    static const char auc[] = "{\"name\":\"AUC\",\"value\":";
    char *text = NULL;
    assert_ok(ph__json_text(page_find(page, "figures"), 0, &text));
    const char *found = strstr(text, auc);
    assert_non_null(found);
    assert_true(fabs(strtod(found + sizeof auc - 1, NULL) - summary.test.auc) < 1e-12);
    free(text);
    assert_int_equal(page_points(page, "loss-curve"), summary.steps);
    assert_int_equal(page_points(page, "valid-auc-curve"), summary.epochs);
    assert_true(page_points(page, "calibration-points") >= 5);
    page_expect(page, "500 samples of the test data");
    page_expect(page, "Finished after 36 steps in 3 epochs, ended by train.epochs");
    page_expect(page, "embedding.C1");
    page_expect(page, "linear_backward_weight");
    assert_non_null(page_find(page, "model-graph"));
    assert_null(page_find(page, "config")); /* nobody has left one */
    free(setup);
}

static void what_is_not_measured_is_left_out(void **state)
{
    (void)state;
    struct setup *setup = set_up_report("lr", "bare");
    setup->job.paths.valid = setup->job.paths.test = NULL;
    setup->train.epochs = 1;
    train(setup);
    page_of(setup);
    assert_int_equal(page_points(page, "loss-curve"), 12);
    assert_int_equal(page_points(page, "valid-loss-curve"), SIZE_MAX);
    assert_null(page_find(page, "calibration"));
    page_expect(page, "{\"name\":\"test data\",\"value\":\"none\"}");
    free(setup);
}

static void calibration_is_on_validation_data_where_there_is_no_other(void **state)
{
    (void)state;
    struct setup *setup = set_up_report("fm", "untested");
    setup->job.paths.test = NULL;
    train(setup);
    page_expect(page_of(setup), "500 samples of the validation data");
    free(setup);
}

/* Of a low base rate the axes are logarithmic: a rate of nothing has no place there, but its samples count.
 */
static void groups_without_a_positive_are_shown_too(void **state)
{
    (void)state;
    struct ph__metrics_file metrics = {.has_calibration = true, .calibrated_on = "test"};
    struct setup setup = {0};
    struct ph__page written;
    for (size_t i = 0; i < 20; i++)
        metrics.calibration.bins[i] =
            (struct ph__calibration_bin){1000, 0.1 * (double)(i + 1), i % 2 == 0 ? 0 : 1};
    snprintf(setup.folder, sizeof setup.folder, "%s", test_folder());
    ph__page_init(&written, "t", "h", NULL);
    ph__run_report_calibration(&written, &metrics);
    assert_ok(ph__page_write(&written, ph__path_join(&fixture.arena, setup.folder, "report.html")));
    ph__page_fini(&written);
    assert_int_equal(page_points(page_of(&setup), "calibration-points"), 10);
}

static volatile int stop;

static ph_status stop_at_15(void *context, const struct ph_train_progress *progress)
{
    (void)context;
    if (progress->step == 15)
        stop = SIGTERM;
    return PH_OK;
}

/* Stopped, it shows how far it got; resumed, all of it. */
static void curves_of_a_resumed_training_are_whole(void **state)
{
    (void)state;
    const struct ph_train_observer observer = {.on_progress = stop_at_15};
    struct setup *setup = set_up_report("deepfm", "resumed");
    struct ph_train_summary summary;
    setup->job.options.observer = &observer;
    setup->job.options.stop_signal = &stop;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_TERMINATED, "--resume continues from it");
    page_of(setup);
    page_expect(page, "Not finished: stopped at step 16, in epoch 2");
    assert_int_equal(page_points(page, "loss-curve"), 15);
    assert_false(is_there(setup, "summary.json"));
    stop = 0;
    setup->job.options.observer = NULL;
    setup->job.options.is_resumed = true;
    assert_ok(ph__train(&setup->job, &summary));
    page_of(setup);
    page_expect(page, "; resumed at step 16");
    assert_int_equal(page_points(page, "loss-curve"), 36);
    assert_int_equal(page_points(page, "valid-loss-curve"), 3);
    page_expect(page, "of the 20 training steps that this process took");
    free(setup);
}

static void a_profile_of_all_steps_is_called_one(void **state)
{
    (void)state;
    struct setup *setup = set_up_report("fm", "profiled");
    setup->job.options.profile_path = test_path("profile.txt");
    train(setup);
    assert_true(ph__file_exists(setup->job.options.profile_path));
    page_expect(page_of(setup), "Measured on all 36 training steps that this process took.");
    free(setup);
}

static void a_training_that_fails_leaves_what_it_had(void **state)
{
    (void)state;
    struct setup *setup = set_up_report("dnn", "failed");
    struct ph_train_summary summary;
    make_divergent(setup);
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_DIVERGED, "not finite");
    page_expect(page_of(setup), "Not finished");
    page_expect(page, "Reason: epoch 1, step ");
    free(setup);
}

/* The one row that the first sample names, of 40; by the end of a pass all of them. */
static void rows_met_are_counted(void **state)
{
    (void)state;
    struct setup *setup = set_up_report("fm", "ids");
    train(setup);
    page_of(setup);
    page_expect(page_row(page, "id-table", "C1"), "[\"C1\",40,1.0,");
    setup->train.batch_size = setup->train.max_steps = 1;
    train(setup);
    page_of(setup);
    page_expect(page_row(page, "id-table", "C1"), "[\"C1\",40,0.025,");
    page_expect(page, "No step was measured: the first one is left out, and this process took 1 in all.");
    free(setup);
}

static void nothing_is_left_where_it_is_not_wanted(void **state)
{
    (void)state;
    struct setup *setup = set_up_report("lr", "off");
    setup->train.report = false;
    train(setup);
    assert_false(is_there(setup, "report.html"));
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_finished_training_has_all_sections),
        cmocka_unit_test(what_is_not_measured_is_left_out),
        cmocka_unit_test(calibration_is_on_validation_data_where_there_is_no_other),
        cmocka_unit_test(groups_without_a_positive_are_shown_too),
        cmocka_unit_test(curves_of_a_resumed_training_are_whole),
        cmocka_unit_test(a_profile_of_all_steps_is_called_one),
        cmocka_unit_test(a_training_that_fails_leaves_what_it_had),
        cmocka_unit_test(rows_met_are_counted),
        cmocka_unit_test(nothing_is_left_where_it_is_not_wanted),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
