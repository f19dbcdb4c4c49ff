#include "train/folder/metrics_file.h"

#include <math.h>

#include "support/test_support.h"

static void lines_become_curves_of_their_kind(void **state)
{
    (void)state;
    const char *path = test_write_file("metrics.jsonl",
        "{\"event\":\"train\",\"epoch\":1,\"step\":5,\"loss\":0.7,\"auc\":null,\"learning_rate\":0.1}\n"
        "{\"event\":\"valid\",\"epoch\":1,\"step\":5,\"auc\":0.6,\"logloss\":0.65,\"ne\":0.9,\"calibration\":"
        "1.1}\n"
        "{\"event\":\"calibration\",\"epoch\":1,\"step\":5,\"of\":\"valid\",\"bins\":[[3,10,1.5,2]]}\n"
        "{\"event\":\"progressive\",\"epoch\":1,\"step\":6,\"logloss\":0.5}\n"
        "{\"event\":\"train\",\"epoch\":1,\"step\":9,\"loss\":0.6,\"auc\":0.7,\"learning_rate\":0.01}\n"
        "{\"event\":\"something else\"}\n"
        "{\"event\":\"test\",\"epoch\":1,\"step\":9,\"auc\":0.8}\n"
        "{\"event\":\"calibration\",\"epoch\":1,\"step\":9,\"of\":\"test\",\"bins\":[[4,20,2.5,2]]}\n");
    struct ph__metrics_file metrics;
    assert_ok(ph__metrics_file_read(path, &metrics));
    assert_int_equal(metrics.train.count, 2);
    assert_near(metrics.train.columns[PH_CURVE_STEP][1], 9, 0, 0);
    assert_near(metrics.train.columns[PH_CURVE_LOSS][0], 0.7, 0, 0);
    assert_true(isnan(metrics.train.columns[PH_CURVE_AUC][0]));
    assert_near(metrics.train.columns[PH_CURVE_LEARNING_RATE][1], 0.01, 0, 0);
    assert_true(isnan(metrics.train.columns[PH_CURVE_SAMPLES_PER_S][1]));
    assert_int_equal(metrics.valid.count, 1);
    assert_near(metrics.valid.columns[PH_CURVE_LOSS][0], 0.65, 0, 0);
    assert_near(metrics.valid.columns[PH_CURVE_CALIBRATION][0], 1.1, 0, 0);
    assert_int_equal(metrics.progressive.count, 1);
    assert_int_equal(metrics.test.count, 1);
    assert_true(metrics.has_calibration);
    assert_string_equal(metrics.calibrated_on, "test");
    assert_int_equal(metrics.calibration.bins[3].count, 0);
    assert_int_equal(metrics.calibration.bins[4].count, 20);
    ph__metrics_file_fini(&metrics);
}

static void what_is_no_line_of_ours_is_passed_over(void **state)
{
    (void)state;
    const char *path = test_write_file("torn.jsonl",
        "nonsense\n\n[1,2]\n{\"event\":7}\n{\"event\":\"train\",\"step\":1,\"loss\":\"high\"}\n"
        "{\"event\":\"calibration\",\"of\":\"valid\",\"bins\":[[999,1,1,1]]}\n{\"event\":\"train\",\"ste");
    struct ph__metrics_file metrics;
    assert_ok(ph__metrics_file_read(path, &metrics));
    assert_int_equal(metrics.train.count, 1);
    assert_true(isnan(metrics.train.columns[PH_CURVE_LOSS][0]));
    assert_int_equal(metrics.valid.count, 0);
    assert_false(metrics.has_calibration);
    ph__metrics_file_fini(&metrics);
}

static void an_empty_and_a_missing_file_have_no_curves(void **state)
{
    (void)state;
    const char *paths[] = {test_write_file("empty.jsonl", ""), test_path("missing.jsonl")};
    for (size_t i = 0; i < 2; i++) {
        struct ph__metrics_file metrics;
        assert_ok(ph__metrics_file_read(paths[i], &metrics));
        assert_int_equal(metrics.train.count + metrics.valid.count + metrics.test.count, 0);
        assert_false(metrics.has_calibration);
        ph__metrics_file_fini(&metrics);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_become_curves_of_their_kind),
        cmocka_unit_test(what_is_no_line_of_ours_is_passed_over),
        cmocka_unit_test(an_empty_and_a_missing_file_have_no_curves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
