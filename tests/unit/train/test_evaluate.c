/* Rows left out, and predictions corrected, wherever a training measures. */
#include "train/evaluate.h"

#include <math.h>

#include "train_fixture.h"

/* A copy of a file with a line that is none behind its first `line` lines. */
static const char *spoiled(const char *path, const char *name, int line)
{
    char command[2000];
    const char *copy = ph__path_join(&fixture.arena, test_folder(), name);
    snprintf(command, sizeof command, "sed '%da nonsense' '%s' >'%s'", line, path, copy);
    assert_int_equal(system(command), 0);
    return copy;
}

static void bad_rows_are_left_out_of_all_files_and_counted(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "clean");
    struct ph_train_summary clean = train(setup);
    assert_int_equal(clean.train_bad_rows.count + clean.valid_bad_rows.count + clean.test_bad_rows.count, 0);
    assert_string_equal(clean.train_bad_rows.first, "");
    setup->job.max_bad_rows = 1;
    setup->job.train_path = spoiled(setup->job.train_path, "bad_train.tsv", 100);
    setup->job.valid_path = spoiled(setup->job.valid_path, "bad_valid.tsv", 20);
    setup->job.test_path = spoiled(setup->job.test_path, "bad_test.tsv", 30);
    struct ph_train_summary summary = train(setup);
    assert_string_equal(summary.checkpoint_sha256, clean.checkpoint_sha256);
    assert_true(summary.valid.logloss == clean.valid.logloss && summary.test.logloss == clean.test.logloss);
    assert_int_equal(summary.train_bad_rows.count, 1);
    assert_int_equal(summary.valid_bad_rows.count, 1);
    assert_int_equal(summary.test_bad_rows.count, 1);
    assert_non_null(strstr(summary.train_bad_rows.first, "bad_train.tsv:101"));
    assert_non_null(strstr(summary.valid_bad_rows.first, "bad_valid.tsv:21"));
    assert_non_null(strstr(summary.test_bad_rows.first, "bad_test.tsv:31"));
    setup->job.max_bad_rows = 0;
    remove_folder(setup);
    assert_fails(ph_train(&setup->job, &summary), PH_ERROR_DATA, "bad_valid.tsv:21");
    setup->job.valid_path = setup->job.test_path = NULL;
    assert_fails(ph_train(&setup->job, &summary), PH_ERROR_DATA, "bad_train.tsv:101");
    free(setup);
}

/* Without the correction the predictions would be those for the sampled rows, more than twice as many clicks. */
static void sampling_negatives_leaves_predictions_calibrated(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "sampled");
    setup->optimizer.embedding_l2 = 0;
    setup->job.negative_rate = 0.2;
    struct ph_train_summary summary = train(setup);
    assert_true(summary.samples < 3 * 3000 / 2);
    assert_near(summary.test.calibration, 1, 0.25, 0);
    free(setup);
}

static void a_rate_that_is_no_share_is_refused(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "no_share");
    struct ph_train_summary summary;
    static const double rates[] = {-0.5, 1.5, NAN};
    for (size_t i = 0; i < COUNT(rates); i++) {
        setup->job.negative_rate = rates[i];
        assert_fails(ph_train(&setup->job, &summary), PH_ERROR_CONFIG, "data.negative_rate");
    }
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_rows_are_left_out_of_all_files_and_counted),
        cmocka_unit_test(sampling_negatives_leaves_predictions_calibrated),
        cmocka_unit_test(a_rate_that_is_no_share_is_refused),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
