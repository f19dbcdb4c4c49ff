/* Progressive validation of whole trainings: predict, then train. */
#include "train/loop/loop.h"

#include <math.h>

#include "base/format/json.h"
#include "store/store.h"
#include "support/test_support.h"
#include "unit/train/train_fixture.h"

#define MAX_WINDOWS 64

struct windows {
    size_t count;
    int64_t first_rows[MAX_WINDOWS], num_rows[MAX_WINDOWS], steps[MAX_WINDOWS];
    double logloss[MAX_WINDOWS], auc[MAX_WINDOWS], calibration[MAX_WINDOWS];
};

static void take_line(struct windows *windows, const char *line)
{
    struct ph__json *json;
    assert_ok(ph__json_parse(line, strlen(line), "metrics.jsonl", PH_ERROR_DATA, &json));
    const char *event = ph__json_as_text(ph__json_get(json, "event"), "");
    if (strcmp(event, "progressive") == 0) {
        size_t next = windows->count++;
        assert_true(next < MAX_WINDOWS);
        windows->first_rows[next] = ph__json_as_integer(ph__json_get(json, "first_row"), -1);
        windows->num_rows[next] = ph__json_as_integer(ph__json_get(json, "rows"), -1);
        windows->steps[next] = ph__json_as_integer(ph__json_get(json, "step"), -1);
        windows->logloss[next] = ph__json_as_number(ph__json_get(json, "logloss"), -1);
        windows->auc[next] = ph__json_as_number(ph__json_get(json, "auc"), -1);
        windows->calibration[next] = ph__json_as_number(ph__json_get(json, "calibration"), -1);
    }
    ph__json_destroy(json);
}

/* The events "progressive" of a run. */
static struct windows read_windows(const struct setup *setup)
{
    struct windows windows = {0};
    char path[600], line[4096];
    snprintf(path, sizeof path, "%s/metrics.jsonl", setup->folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        take_line(&windows, line);
    fclose(file);
    return windows;
}

static struct setup *set_up_stream(const char *model, const char *folder, int64_t progressive_rows)
{
    struct setup *setup = set_up(model, folder);
    setup->job.reading.is_shuffled = false;
    setup->train.epochs = 1;
    setup->train.progressive = true;
    setup->train.progressive_rows = progressive_rows;
    return setup;
}

/* The header and rows [first, first + count) of the training file. */
static const char *rows_of_training(size_t first, size_t count)
{
    char command[1500];
    const char *path = ph__path_join(&fixture.arena, test_folder(), "slice.tsv");
    snprintf(command, sizeof command, "(head -n 1 '%s'; tail -n +%zu '%s' | head -n %zu) >'%s'",
        fixture.data.paths.train, first + 2, fixture.data.paths.train, count, path);
    assert_int_equal(system(command), 0);
    return path;
}

/* What a model after so many steps says of rows that it has not seen: another training that ends there tells.
 */
static void rows_are_scored_by_the_model_before_it_learns_from_them(void **state)
{
    (void)state;
    struct setup *setup = set_up_stream("dlrm", "stream", 256);
    train(setup);
    struct windows windows = read_windows(setup);
    assert_int_equal(windows.count, 12);
    struct setup *shorter = set_up_stream("dlrm", "shorter", 256);
    shorter->job.paths.valid = NULL;
    shorter->train.progressive = false;
    for (size_t steps = 1; steps < 11; steps += 4) {
        shorter->train.max_steps = (int64_t)steps;
        shorter->job.paths.test = rows_of_training(steps * 256, 256);
        struct ph_train_summary summary = train(shorter);
        assert_int_equal(windows.steps[steps], steps);
        assert_int_equal(windows.first_rows[steps], steps * 256);
        assert_int_equal(windows.num_rows[steps], 256);
        assert_near(windows.logloss[steps], summary.test.logloss, 0, 1e-12);
        assert_near(windows.auc[steps], summary.test.auc, 0, 1e-12);
        assert_near(windows.calibration[steps], summary.test.calibration, 0, 1e-12);
    }
    free(setup);
    free(shorter);
}

static void measuring_leaves_the_model_as_it_is(void **state)
{
    (void)state;
    struct setup *setup = set_up_stream("dnn", "measured", 500);
    struct ph_train_summary measured = train(setup);
    assert_true(measured.has_progressive);
    assert_int_equal(measured.progressive.num_samples, 3000);
    setup->train.progressive = false;
    struct ph_train_summary plain = train(setup);
    assert_false(plain.has_progressive);
    assert_string_equal(measured.checkpoint_sha256, plain.checkpoint_sha256);
    free(setup);
}

static void windows_cover_the_stream_and_their_mean_is_the_summary(void **state)
{
    (void)state;
    struct setup *setup = set_up_stream("lr", "cover", 700);
    setup->job.paths.valid = setup->job.paths.test = NULL;
    struct ph_train_summary summary = train(setup);
    struct windows windows = read_windows(setup);
    assert_int_equal(windows.count, 5);
    double logloss = 0;
    for (size_t i = 0; i < windows.count; i++) {
        assert_int_equal(windows.first_rows[i], i * 700);
        assert_int_equal(windows.num_rows[i], i < 4 ? 700 : 200);
        logloss += windows.logloss[i] * (double)windows.num_rows[i];
    }
    assert_near(summary.progressive.logloss, logloss / 3000, 0, 1e-12);
    free(setup);
}

/* Stopped in the middle of a window, once, and twice. */
static void a_resumed_stream_is_measured_as_one_that_was_not_stopped(void **state)
{
    (void)state;
    struct setup *setup = set_up_stream("fm", "whole", 700);
    struct ph_train_summary whole = train(setup), resumed;
    struct windows expected = read_windows(setup);
    struct setup *stopped = set_up_stream("fm", "stopped", 700);
    stopped->train.checkpoint_steps = 1;
    stopped->train.max_steps = 4;
    train(stopped);
    stopped->job.options.is_resumed = true;
    stopped->train.max_steps = 9;
    assert_ok(ph__train(&stopped->job, &resumed));
    stopped->train.max_steps = 0;
    assert_ok(ph__train(&stopped->job, &resumed));
    struct windows windows = read_windows(stopped);
    assert_memory_equal(&windows, &expected, sizeof windows);
    assert_string_equal(resumed.checkpoint_sha256, whole.checkpoint_sha256);
    assert_memory_equal(&resumed.progressive.logloss, &whole.progressive.logloss, sizeof(double));
    assert_memory_equal(&resumed.progressive.auc, &whole.progressive.auc, sizeof(double));
    stopped->train.progressive_rows = 600;
    assert_fails(
        ph__train(&stopped->job, &resumed), PH_ERROR_CHECKPOINT, "train.progressive_rows '700', not '600'");
    free(setup);
    free(stopped);
}

static void a_finished_stream_is_told_again(void **state)
{
    (void)state;
    struct setup *setup = set_up_stream("lr", "finished", 700);
    struct ph_train_summary again;
    setup->train.checkpoint_steps = 5;
    struct ph_train_summary first = train(setup);
    setup->job.options.is_resumed = true;
    assert_ok(ph__train(&setup->job, &again));
    assert_true(again.was_finished && again.has_progressive);
    assert_true(again.progressive.logloss == first.progressive.logloss);
    assert_int_equal(again.progressive.num_samples, 3000);
    free(setup);
}

static void streams_that_are_none_are_refused(void **state)
{
    (void)state;
    struct ph_train_summary summary;
    struct setup *setup = set_up_stream("lr", "refused", 700);
    setup->job.reading.is_shuffled = true;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_CONFIG, "data.shuffle: false");
    setup->job.reading.is_shuffled = false;
    setup->train.epochs = 2;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_CONFIG, "train.epochs: 1");
    setup->train.epochs = 1;
    setup->job.reading.negative_rate = 0.5;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_CONFIG, "data.negative_rate: 1");
    setup->job.reading.negative_rate = 1;
    setup->train.progressive_rows = 0;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_CONFIG, "train.progressive_rows");
    assert_false(ph__file_exists(setup->folder));
    free(setup);
}

static void restored_state_is_what_it_was(void **state)
{
    (void)state;
    struct ph_state *carried = NULL;
    struct ph__state_snapshot snapshot = {0};
    struct ph__state_array *means = NULL, *variances = NULL;
    assert_ok(ph_state_create(&carried));
    assert_ok(ph__state_add(carried, "mean", 3, 0, &means));
    assert_ok(ph__state_add(carried, "variance", 2, 1, &variances));
    ph_real *mean = means->data, *variance = variances->data;
    mean[1] = 5;
    assert_ok(ph__state_snapshot_take(&snapshot, carried));
    mean[1] = 6;
    variance[0] = 7;
    const uint64_t version = means->version;
    ph__state_snapshot_restore(&snapshot, carried);
    assert_true(means->version > version); /* what was made of the statistics is made anew */
    assert_true(mean[0] == 0 && mean[1] == 5 && variance[0] == 1);
    mean[2] = 8;
    assert_ok(ph__state_snapshot_take(&snapshot, carried));
    mean[2] = 9;
    ph__state_snapshot_restore(&snapshot, carried);
    assert_true(mean[2] == 8);
    ph__state_snapshot_fini(&snapshot);
    ph_state_destroy(carried);
}

static void state_that_carries_nothing_is_fine(void **state)
{
    (void)state;
    struct ph_state *carried = NULL;
    struct ph__state_snapshot snapshot = {0};
    assert_ok(ph_state_create(&carried));
    assert_ok(ph__state_snapshot_take(&snapshot, carried));
    ph__state_snapshot_restore(&snapshot, carried);
    ph__state_snapshot_fini(&snapshot);
    ph_state_destroy(carried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_scored_by_the_model_before_it_learns_from_them),
        cmocka_unit_test(measuring_leaves_the_model_as_it_is),
        cmocka_unit_test(windows_cover_the_stream_and_their_mean_is_the_summary),
        cmocka_unit_test(a_resumed_stream_is_measured_as_one_that_was_not_stopped),
        cmocka_unit_test(a_finished_stream_is_told_again),
        cmocka_unit_test(streams_that_are_none_are_refused),
        cmocka_unit_test(restored_state_is_what_it_was),
        cmocka_unit_test(state_that_carries_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
