#include "train/folder/summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_support.h"

static const struct ph_train_summary sample = {
    .epochs = 3,
    .best_epoch = 2,
    .steps = 36,
    .skipped_steps = 1,
    .ended_by = PH_ENDED_BY_PATIENCE,
    .samples = 9000,
    .num_threads = 2,
    .train_seconds = 0.1 + 0.2,
    .samples_per_s = 30000,
    .reader_wait_share = 0.1 * 0.3,
    .flops_per_sample = 1e6 / 3,
    .parameters = 12345,
    .peak_rss_bytes = 1 << 30,
    .memory = {1, 2, 3, 4, 5, 6, 7, 0},
    .has_valid = true,
    .valid = {.num_samples = 500,
        .auc = 0.75,
        .logloss = 0.5,
        .ne = 0.9,
        .calibration = 1.01,
        .grouped_auc = NAN,
        .base_rate = 0.25},
    .checkpoint_sha256 = "0123456789abcdef",
};

static const struct ph__split_bad_rows bad_rows = {
    .train = {2, "train.csv:7: no number"}, .test = {1, "test.csv:9: too long"}};

static const char *write_sample(void)
{
    static char path[512];
    static const struct ph_model_settings model = {.kind = 0};
    static const struct ph_train_settings train = {.deterministic = true};
    const struct ph__train_job job = {
        .run.seed = 7, .model = &model, .train = &train, .options.folder = "run"};
    snprintf(path, sizeof path, "%s/summary.json", test_folder());
    assert_ok(ph__summary_write(&job, &sample, &bad_rows, "some backend", NULL, path));
    return path;
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    struct ph_train_summary read;
    struct ph__split_bad_rows read_bad_rows;
    assert_ok(ph__summary_read(write_sample(), &read, &read_bad_rows, NULL, 0));
    assert_int_equal(read.train_bad_rows, 2);
    assert_memory_equal(&read_bad_rows, &bad_rows, sizeof bad_rows);
    assert_int_equal(read.epochs, 3);
    assert_int_equal(read.best_epoch, 2);
    assert_int_equal(read.steps, 36);
    assert_int_equal(read.skipped_steps, 1);
    assert_int_equal(read.ended_by, PH_ENDED_BY_PATIENCE);
    assert_int_equal(read.samples, 9000);
    assert_int_equal(read.num_threads, 2);
    assert_int_equal(read.parameters, 12345);
    assert_int_equal(read.peak_rss_bytes, 1 << 30);
    assert_true(read.train_seconds == sample.train_seconds && read.samples_per_s == 30000);
    assert_true(read.reader_wait_share == sample.reader_wait_share);
    assert_true(read.flops_per_sample == sample.flops_per_sample);
    assert_memory_equal(&read.memory, &sample.memory, sizeof sample.memory);
    assert_true(read.has_valid && !read.has_test);
    assert_true(read.valid.auc == 0.75 && read.valid.num_samples == 500 && isnan(read.valid.grouped_auc));
    assert_string_equal(read.checkpoint_sha256, sample.checkpoint_sha256);
}

static void a_summary_that_does_not_say_how_it_ended_is_read(void **state)
{
    (void)state;
    struct ph_train_summary read;
    char command[1200];
    const char *path = write_sample();
    snprintf(command, sizeof command, "sed -i '/ended_by/d' '%s'", path);
    assert_int_equal(system(command), 0);
    assert_ok(ph__summary_read(path, &read, NULL, NULL, 0));
    assert_int_equal(read.ended_by, PH_ENDED_BY_UNKNOWN);
    assert_string_equal(ph__train_end_name(read.ended_by), "");
}

static void the_backend_is_read_as_far_as_it_fits(void **state)
{
    (void)state;
    struct ph_train_summary read;
    char backend[64], cut[5];
    assert_ok(ph__summary_read(write_sample(), &read, NULL, backend, sizeof backend));
    assert_string_equal(backend, "some backend");
    assert_ok(ph__summary_read(write_sample(), &read, NULL, cut, sizeof cut));
    assert_string_equal(cut, "some");
}

static void what_is_no_summary_is_named(void **state)
{
    (void)state;
    struct ph_train_summary read;
    assert_fails(
        ph__summary_read("/no/such/summary", &read, NULL, NULL, 0), PH_ERROR_CHECKPOINT, "/no/such/summary");
    assert_fails(ph__summary_read(test_write_file("none.json", "{}"), &read, NULL, NULL, 0),
        PH_ERROR_CHECKPOINT, "'threads' is missing");
    assert_fails(ph__summary_read(test_write_file("none.json", "no"), &read, NULL, NULL, 0),
        PH_ERROR_CHECKPOINT, "JSON");
}

static void a_progress_is_told_as_json(void **state)
{
    (void)state;
    const struct ph_metrics valid = {.num_samples = 7, .auc = 0.75, .logloss = NAN};
    struct ph_train_progress progress = {.epoch = 2, .epochs = 3, .step = 40, .loss = 0.5, .auc = NAN};
    struct ph__json *json = NULL;
    char *text = NULL;
    assert_ok(ph_train_progress_json(&progress, &text));
    assert_ok(ph__json_parse(text, strlen(text), "progress", PH_ERROR_BUG, &json));
    assert_int_equal(ph__json_as_integer(ph__json_get(json, "step"), 0), 40);
    assert_true(ph__json_as_number(ph__json_get(json, "loss"), 0) == 0.5);
    assert_true(ph__json_is_null(ph__json_get(json, "auc")));
    assert_true(ph__json_is_null(ph__json_get(json, "valid")));
    ph__json_destroy(json);
    ph_text_free(text);
    progress.valid = &valid;
    progress.is_best = true;
    assert_ok(ph_train_progress_json(&progress, &text));
    assert_ok(ph__json_parse(text, strlen(text), "progress", PH_ERROR_BUG, &json));
    assert_true(ph__json_as_bool(ph__json_get(json, "is_best"), false));
    assert_true(ph__json_as_number(ph__json_get(ph__json_get(json, "valid"), "auc"), 0) == 0.75);
    ph__json_destroy(json);
    ph_text_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(a_summary_that_does_not_say_how_it_ended_is_read),
        cmocka_unit_test(the_backend_is_read_as_far_as_it_fits),
        cmocka_unit_test(what_is_no_summary_is_named),
        cmocka_unit_test(a_progress_is_told_as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
