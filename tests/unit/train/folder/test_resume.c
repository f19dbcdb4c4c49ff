/* Trainings that are stopped and resumed, in one process: they end as one that was not. */
#include <math.h>
#include <signal.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "store/checkpoint_names.h"
#include "train/folder/checkpoints.h"
#include "unit/train/train_fixture.h"

#define STEPS_AN_EPOCH 12

/* Stops the training at a step; shared with its observer. */
static struct {
    volatile int signal;
    uint64_t stop_step;       /* 0: never */
    uint64_t stop_evaluation; /* at the end of the evaluation behind this step; 0: never */
    size_t num_starts, num_notes;
    char note[1024];
} watch;

static ph_status see_progress(void *context, const struct ph_train_progress *progress)
{
    (void)context;
    if (progress->valid == NULL && progress->step == watch.stop_step)
        watch.signal = SIGTERM;
    if (progress->valid != NULL && progress->step == watch.stop_evaluation)
        watch.signal = SIGTERM;
    return PH_OK;
}

static ph_status see_start(void *context)
{
    (void)context;
    watch.num_starts++;
    return PH_OK;
}

static void see_note(void *context, const char *text)
{
    (void)context;
    watch.num_notes++;
    snprintf(watch.note, sizeof watch.note, "%s", text);
}

static const struct ph_train_observer observer = {
    .on_progress = see_progress, .on_start = see_start, .on_note = see_note};

/* Everything that is carried at once: dropout, batch norm, two optimizers with slots of all kinds, a plateau
 * schedule that cuts, evaluations within epochs, a warm-up. The observer sees each step. */
static struct setup *set_up_all(const char *model, const char *folder)
{
    struct setup *setup = set_up(model, folder);
    setup->train.evaluate_steps = 5;
    setup->train.warmup_steps = 7;
    setup->train.patience = 0;
    setup->train.report_seconds = 0;
    setup->train.checkpoint_steps = 4;
    setup->train.report = setup->train.tensorboard = true;
    setup->optimizer.embedding_kind = PH_EMBEDDING_ROWWISE_ADAGRAD;
    setup->optimizer.learning_rate = 0.2; /* so large that some evaluations are worse than the one before */
    setup->job.options.observer = &observer;
    setup->job.options.stop_signal = &watch.signal;
    memset(&watch, 0, sizeof watch);
    return setup;
}

/* Trains until the signal that comes with the report of a step: within the evaluation that follows it, or
 * else behind the next step. */
static void train_until(struct setup *setup, uint64_t step, bool is_resumed)
{
    struct ph_train_summary summary;
    setup->job.options.is_resumed = is_resumed;
    watch.stop_step = step;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_TERMINATED, "--resume continues from it");
    watch.stop_step = 0;
    watch.signal = 0;
}

static struct ph_train_summary resume(struct setup *setup)
{
    struct ph_train_summary summary;
    setup->job.options.is_resumed = true;
    assert_ok(ph__train(&setup->job, &summary));
    return summary;
}

static const char *path_in(const struct setup *setup, const char *name)
{
    return ph__path_join(&fixture.arena, setup->folder, name);
}

static char *text_of(const char *path)
{
    char *text;
    size_t size;
    assert_ok(ph__file_read(&fixture.arena, path, 1 << 24, &text, &size));
    return text;
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void expect_same_metrics(const struct ph_metrics *a, const struct ph_metrics *b)
{
    assert_true(same(a->auc, b->auc) && same(a->logloss, b->logloss) && same(a->ne, b->ne));
    assert_true(same(a->calibration, b->calibration) && a->num_samples == b->num_samples);
}

static void expect_same_outcome(const struct ph_train_summary *a, const struct ph_train_summary *b)
{
    assert_string_equal(a->checkpoint_sha256, b->checkpoint_sha256);
    assert_int_equal(a->steps, b->steps);
    assert_int_equal(a->epochs, b->epochs);
    assert_int_equal(a->best_epoch, b->best_epoch);
    assert_int_equal(a->skipped_steps, b->skipped_steps);
    assert_int_equal(a->samples, b->samples);
    assert_int_equal(a->parameters, b->parameters);
    assert_true(a->flops_per_sample == b->flops_per_sample);
    expect_same_metrics(&a->valid, &b->valid);
    expect_same_metrics(&a->test, &b->test);
}

/* metrics.jsonl without its only times. */
static void expect_same_reports(const struct setup *a, const struct setup *b)
{
    const char *left = text_of(path_in(a, "metrics.jsonl")), *right = text_of(path_in(b, "metrics.jsonl"));
    static const char time_key[] = ",\"samples_per_s\":";
    while (*left != '\0' || *right != '\0') {
        size_t length = strcspn(left, "\n");
        const char *time = strstr(left, time_key);
        size_t compared = time != NULL && time < left + length ? (size_t)(time - left) : length;
        assert_memory_equal(left, right, compared);
        left += length + 1;
        right += strcspn(right, "\n") + 1;
    }
}

static void training_stopped_at_a_step_ends_as_one_that_was_not(void **state)
{
    (void)state;
    struct setup *whole = set_up_all("dlrm", "whole"), *stopped = set_up_all("dlrm", "stopped");
    struct ph_train_summary wanted = train(whole);
    assert_int_equal(wanted.steps, 3 * STEPS_AN_EPOCH);
    assert_true(wanted.best_epoch > 0);
    for (uint64_t step = 1; step < wanted.steps; step += step < 14 && !test_is_brief() ? 2 : 7) {
        remove_folder(stopped);
        stopped->job.reading.num_prefetched = step % 3;
        stopped->job.run.num_threads = step % 3 == 0 ? 2 : 1;
        train_until(stopped, step, false);
        struct ph_train_summary resumed = resume(stopped);
        bool is_in_evaluation = step % 5 == 0 || step % STEPS_AN_EPOCH == 0;
        assert_int_equal(resumed.resumed_step, is_in_evaluation ? step : step + 1);
        expect_same_outcome(&resumed, &wanted);
        expect_same_reports(stopped, whole);
    }
    free(whole);
    free(stopped);
}

/* The training is done and saved, also where nothing else is: a resumed one measures on the test data and no
 * more. */
static void expect_tested_when_it_resumes(int64_t checkpoint_steps)
{
    struct setup *whole = set_up_all("fm", "tested"), *stopped = set_up_all("fm", "untested");
    struct ph_train_summary wanted = train(whole), summary;
    remove_folder(stopped);
    stopped->train.checkpoint_steps = checkpoint_steps;
    watch.stop_evaluation = wanted.steps;
    assert_fails(ph__train(&stopped->job, &summary), PH_ERROR_TERMINATED, "--resume continues from it");
    memset(&watch, 0, sizeof watch);
    assert_false(ph__file_exists(path_in(stopped, "summary.json")));
    struct ph_train_summary resumed = resume(stopped);
    assert_int_equal(resumed.resumed_step, wanted.steps);
    expect_same_outcome(&resumed, &wanted);
    expect_same_reports(stopped, whole);
    free(whole);
    free(stopped);
}

static void training_stopped_while_it_is_tested_is_tested_when_it_resumes(void **state)
{
    (void)state;
    expect_tested_when_it_resumes(4);
    expect_tested_when_it_resumes(0);
}

static void training_stopped_again_and_again_ends_as_one_that_was_not(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < ph_model_count(); kind += test_is_brief() ? 8 : 1) {
        struct setup *whole = set_up_all(ph_model_name((int)kind), "whole");
        struct setup *stopped = set_up_all(ph_model_name((int)kind), "stopped");
        stopped->train.checkpoints_kept = 1;
        struct ph_train_summary wanted = train(whole);
        remove_folder(stopped);
        for (uint64_t step = 3; step < wanted.steps; step += 14)
            train_until(stopped, step, step > 3);
        struct ph_train_summary resumed = resume(stopped);
        expect_same_outcome(&resumed, &wanted);
        expect_same_reports(stopped, whole);
        free(whole);
        free(stopped);
    }
}

static void steps_that_were_skipped_stay_skipped(void **state)
{
    (void)state;
    struct setup *whole = set_up_all("dnn", "whole"), *stopped = set_up_all("dnn", "stopped");
    struct setup *both[] = {whole, stopped};
    for (size_t i = 0; i < 2; i++) {
        both[i]->optimizer.rule.kind = PH_MOMENTUM;
        both[i]->optimizer.rule.momentum = 0.9;
        both[i]->optimizer.learning_rate = 3e9;
        both[i]->optimizer.embedding_l2 = 0;
        both[i]->train.non_finite = PH_NON_FINITE_SKIP;
        both[i]->train.max_gradient_norm = 0;
        both[i]->job.paths.valid = NULL; /* which would have no model to choose */
    }
    struct ph_train_summary wanted = train(whole);
    assert_true(wanted.skipped_steps > 0 && wanted.skipped_steps < wanted.steps);
    remove_folder(stopped);
    train_until(stopped, 9, false);
    train_until(stopped, 21, true);
    struct ph_train_summary resumed = resume(stopped);
    expect_same_outcome(&resumed, &wanted);
    free(whole);
    free(stopped);
}

static void longer_training_goes_on_as_if_it_had_been_so_from_the_start(void **state)
{
    (void)state;
    struct setup *whole = set_up_all("deepfm", "whole"), *longer = set_up_all("deepfm", "longer");
    struct ph_train_summary wanted = train(whole);
    struct {
        int64_t epochs, max_steps, patience;
    } stages[] = {{1, 0, 1}, {3, 15, 1}, {3, 24, 1}, {3, 0, 2}, {3, 0, 0}};
    for (size_t i = 0; i < COUNT(stages); i++) {
        longer->train.epochs = stages[i].epochs;
        longer->train.max_steps = stages[i].max_steps;
        longer->train.patience = stages[i].patience;
        if (i == 0)
            train(longer);
        else
            resume(longer);
    }
    struct ph_train_summary resumed = resume(longer);
    expect_same_outcome(&resumed, &wanted);
    expect_same_reports(longer, whole);
    free(whole);
    free(longer);
}

static void finished_training_is_left_as_it_is(void **state)
{
    (void)state;
    static const char *const names[] = {"summary.json", "metrics.jsonl"};
    struct setup *setup = set_up_all("lr", "finished");
    struct ph_train_summary trained = train(setup);
    const char *before[] = {text_of(path_in(setup, names[0])), text_of(path_in(setup, names[1]))};
    watch.num_starts = 0;
    struct ph_train_summary again = resume(setup);
    assert_true(again.was_finished);
    assert_int_equal(watch.num_starts, 0);
    expect_same_outcome(&again, &trained);
    assert_true(again.train_seconds == trained.train_seconds);
    for (size_t i = 0; i < COUNT(names); i++)
        assert_string_equal(text_of(path_in(setup, names[i])), before[i]);
    /* Without its summary it only has to measure once more. */
    assert_int_equal(remove(path_in(setup, "summary.json")), 0);
    again = resume(setup);
    assert_false(again.was_finished);
    assert_true(trained.reader_wait_share > 0 && again.reader_wait_share == 0);
    expect_same_outcome(&again, &trained);
    /* Without its model, which is beside the checkpoint, too, that is put back. */
    assert_int_equal(remove(path_in(setup, "model.safetensors")), 0);
    again = resume(setup);
    assert_true(ph__file_exists(path_in(setup, "model.safetensors")));
    expect_same_outcome(&again, &trained);
    /* What is there but damaged is as good as gone. */
    test_write_text(path_in(setup, "summary.json"), "");
    again = resume(setup);
    assert_false(again.was_finished);
    expect_same_outcome(&again, &trained);
    assert_int_equal(remove(path_in(setup, "model.safetensors")), 0);
    test_write_text(path_in(setup, "model.safetensors"), "");
    again = resume(setup);
    assert_true(again.was_finished);
    assert_ok(
        ph__checkpoint_check_seals(path_in(setup, "model.safetensors"), 0, 1, &(struct ph__meanwhile){0}));
    expect_same_outcome(&again, &trained);
    free(setup);
}

static void flip_byte(const char *path, long offset)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, offset, offset < 0 ? SEEK_END : SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, -1, SEEK_CUR), 0);
    fputc(byte ^ 1, file);
    fclose(file);
}

static const char *checkpoint(const struct setup *setup, uint64_t step)
{
    static char path[PH_CHECKPOINT_PATH_BYTES];
    return ph__checkpoint_path(setup->folder, step, path);
}

static void damaged_checkpoint_gives_way_to_the_one_before_with_a_note(void **state)
{
    (void)state;
    struct setup *whole = set_up_all("fm", "whole"), *setup = set_up_all("fm", "damaged");
    struct ph_train_summary wanted = train(whole);
    for (int damage = 0; damage < 3; damage++) {
        remove_folder(setup);
        train_until(setup, 18, false); /* leaves the checkpoints of steps 16 and 19 */
        if (damage == 0)
            flip_byte(checkpoint(setup, 19), 200);
        if (damage == 1)
            flip_byte(checkpoint(setup, 19), -1);
        if (damage == 2)
            assert_int_equal(truncate(checkpoint(setup, 19), 3000), 0);
        watch.num_notes = 0;
        struct ph_train_summary resumed = resume(setup);
        assert_int_equal(resumed.resumed_step, 16);
        assert_int_equal(watch.num_notes, 1);
        assert_non_null(strstr(watch.note, "step-000000000019.safetensors"));
        assert_non_null(strstr(watch.note, "resuming from step 16"));
        expect_same_outcome(&resumed, &wanted);
    }
    free(whole);
    free(setup);
}

static size_t list_checkpoints(const struct setup *setup, uint64_t steps[8])
{
    struct ph__checkpoint_list list;
    assert_ok(ph__checkpoints_list(setup->folder, &list));
    size_t count = list.count;
    assert_true(count <= 8);
    for (size_t i = 0; i < count; i++)
        steps[i] = list.steps[i];
    ph__checkpoint_list_fini(&list);
    return count;
}

/* The one that was resumed from stays beside the next one, not the damaged one that is newer than it. */
static void damaged_checkpoint_is_not_counted_as_kept(void **state)
{
    (void)state;
    uint64_t steps[8];
    struct setup *setup = set_up_all("fm", "counted");
    remove_folder(setup);
    train_until(setup, 18, false); /* leaves the checkpoints of steps 16 and 19 */
    flip_byte(checkpoint(setup, 19), 200);
    setup->train.max_steps = 20;
    assert_int_equal(resume(setup).resumed_step, 16);
    assert_int_equal(list_checkpoints(setup, steps), 2);
    assert_int_equal(steps[0], 20);
    assert_int_equal(steps[1], 16);
    free(setup);
}

static void without_a_valid_checkpoint_nothing_is_touched(void **state)
{
    (void)state;
    struct setup *setup = set_up_all("fm", "none_valid");
    struct ph_train_summary summary;
    remove_folder(setup);
    train_until(setup, 18, false);
    flip_byte(checkpoint(setup, 16), -9);
    flip_byte(checkpoint(setup, 19), -9);
    const char *before = text_of(path_in(setup, "metrics.jsonl"));
    setup->job.options.is_resumed = true;
    watch.num_starts = watch.num_notes = 0;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_CHECKPOINT, "step-000000000019.safetensors");
    assert_int_equal(watch.num_starts + watch.num_notes, 0);
    assert_string_equal(text_of(path_in(setup, "metrics.jsonl")), before);
    flip_byte(checkpoint(setup, 19), -9);
    assert_int_equal(resume(setup).resumed_step, 19);
    free(setup);
}

/* Killed behind an evaluation that came after the latest checkpoint, the folder holds a newer best model. */
static void best_model_is_put_back_to_that_of_the_checkpoint(void **state)
{
    (void)state;
    struct setup *whole = set_up_all("dnn", "whole"), *setup = set_up_all("dnn", "put_back");
    struct ph_train_summary wanted = train(whole);
    remove_folder(setup);
    train_until(setup, 12, false);
    assert_int_equal(
        unlink(path_in(setup, "model.safetensors")), 0); /* a name of the best model, which stays */
    test_write_text(path_in(setup, "model.safetensors"), "a newer one");
    test_write_text(path_in(setup, "model.safetensors.tmp"), "half a");
    test_write_text(path_in(setup, "checkpoints/step-000000000020.safetensors.tmp"), "half a");
    train_until(setup, 13, true);
    struct ph_store *store;
    assert_true(strstr(text_of(path_in(setup, "model.safetensors")), "a newer one") == NULL);
    assert_false(ph__file_exists(path_in(setup, "model.safetensors.tmp")));
    assert_false(ph__file_exists(path_in(setup, "checkpoints/step-000000000020.safetensors.tmp")));
    assert_ok(ph_store_create(1, &store));
    assert_fails(ph_checkpoint_load(path_in(setup, "model.safetensors"), store, NULL), PH_ERROR_CHECKPOINT,
        "the model has no tensor"); /* whole, though of more tensors than an empty store */
    ph_store_destroy(store);
    struct ph_train_summary resumed = resume(setup);
    expect_same_outcome(&resumed, &wanted);
    free(whole);
    free(setup);
}

static void settings_that_the_checkpoint_rules_out_are_refused(void **state)
{
    (void)state;
    struct setup *setup = set_up_all("lr", "settings");
    struct ph_train_summary summary;
    setup->train.schedule = PH_SCHEDULE_COSINE;
    setup->train.max_steps = 30;
    setup->job.reading.max_bad_rows = 5;
    remove_folder(setup);
    train_until(setup, 20, false);
    setup->job.options.is_resumed = true;
    struct setup changed = *setup;
    changed.job.train = &changed.train;
    changed.train.max_steps = 40;
    assert_fails(
        ph__train(&changed.job, &summary), PH_ERROR_CONFIG, "train.max_steps was '30' and is now '40'");
    changed.train.max_steps = 10;
    assert_fails(ph__train(&changed.job, &summary), PH_ERROR_CONFIG, "train.max_steps is 10");
    changed.train.max_steps = 30;
    changed.train.epochs = 1;
    assert_fails(ph__train(&changed.job, &summary), PH_ERROR_CONFIG, "train.epochs is 1");
    changed.train.epochs = 3;
    changed.job.paths.valid = NULL;
    assert_fails(ph__train(&changed.job, &summary), PH_ERROR_CONFIG, "data.valid");
    changed.job.paths.valid = setup->job.paths.valid;
    changed.train.patience = 50;
    assert_fails(
        ph__train(&changed.job, &summary), PH_ERROR_CONFIG, "train.patience was '0' and is now '50'");
    changed.train.patience = 0;
    changed.job.reading.max_bad_rows = 4;
    assert_fails(
        ph__train(&changed.job, &summary), PH_ERROR_CONFIG, "data.max_bad_rows was '5' and is now '4'");
    changed.job.reading.max_bad_rows = 5;
    changed.job.run.seed++;
    assert_fails(ph__train(&changed.job, &summary), PH_ERROR_CHECKPOINT, "of a training with seed '");
    changed.job.run.seed = setup->job.run.seed;
    changed.train.batch_size = 255;
    assert_fails(ph__train(&changed.job, &summary), PH_ERROR_CHECKPOINT, "train.batch_size '256', not '255'");
    assert_int_equal(resume(setup).steps, 30);
    free(setup);
}

static void folder_has_one_training_at_a_time(void **state)
{
    (void)state;
    struct setup *setup = set_up_all("lr", "locked");
    struct ph_train_summary summary;
    int lock;
    assert_ok(ph__directory_create(setup->folder));
    assert_ok(ph__directory_lock(setup->folder, &lock));
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_USAGE, "locked: another process uses");
    ph__directory_unlock(lock);
    train(setup);
    assert_ok(ph__directory_lock(setup->folder, &lock)); /* it has been given back */
    ph__directory_unlock(lock);
    free(setup);
}

static void folder_that_is_in_use_is_refused_unless_resumed(void **state)
{
    (void)state;
    struct setup *setup = set_up_all("lr", "in_use");
    struct ph_train_summary summary;
    train(setup);
    setup->job.options.is_resumed = false;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_USAGE, "--resume");
    /* Something else: no training. */
    remove_folder(setup);
    assert_ok(ph__directory_create(setup->folder));
    test_write_text(path_in(setup, "novel.txt"), "It was a dark and stormy night");
    setup->job.options.is_resumed = true;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_CHECKPOINT, "holds no training");
    /* A training that was killed before its first checkpoint, or while its folder was made, begins anew. */
    test_write_text(path_in(setup, "encoder.json"), "{");
    assert_int_equal(resume(setup).resumed_step, 0);
    remove_folder(setup);
    assert_ok(ph__directory_create(setup->folder));
    test_write_text(path_in(setup, "config.yaml.tmp"), "see");
    setup->job.options.is_resumed = false;
    assert_ok(ph__train(&setup->job, &summary));
    free(setup);
}

static size_t num_checkpoints(const struct setup *setup)
{
    uint64_t steps[8];
    return list_checkpoints(setup, steps);
}

static void as_many_checkpoints_are_kept_as_asked_for(void **state)
{
    (void)state;
    struct setup *setup = set_up_all("lr", "kept");
    for (int64_t kept = 1; kept <= 4; kept++) {
        setup->train.checkpoints_kept = kept;
        setup->job.options.is_resumed = false;
        train(setup);
        assert_int_equal(num_checkpoints(setup), kept);
    }
    setup->train.checkpoint_steps = 0;
    train(setup);
    assert_int_equal(num_checkpoints(setup), 1); /* of the end */
    remove_folder(setup);
    train_until(setup, 5, false);
    assert_int_equal(num_checkpoints(setup), 1);
    resume(setup);
    assert_true(resume(setup).was_finished);
    free(setup);
}

static void loss_that_is_not_finite_leaves_the_last_checkpoint_good(void **state)
{
    (void)state;
    struct setup *setup = set_up_all("lr", "diverges");
    struct ph_train_summary summary;
    setup->optimizer.rule.kind = PH_SGD;
    setup->optimizer.learning_rate = 1e37;
    setup->optimizer.embedding_kind = PH_EMBEDDING_SAME;
    setup->train.max_gradient_norm = 0;
    setup->train.warmup_steps = 1000; /* a first step that does little */
    setup->train.checkpoint_steps = 1;
    setup->train.checkpoints_kept = 1;
    remove_folder(setup);
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_DIVERGED, "not finite");
    assert_int_equal(num_checkpoints(setup), 1);
    /* It loads, and leads to the same end. */
    setup->job.options.is_resumed = true;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_DIVERGED, "not finite");
    free(setup);
}

static void batch_larger_than_the_data_is_what_there_is(void **state)
{
    (void)state;
    struct setup *setup = set_up_all("dnn", "large_batch");
    setup->train.batch_size = 10000;
    struct ph_train_summary summary = train(setup);
    assert_int_equal(summary.steps, 3);
    assert_int_equal(summary.samples, 3 * 3000);
    free(setup);
}

static void training_of_no_epochs_is_refused(void **state)
{
    (void)state;
    struct setup *setup = set_up_all("lr", "no_epochs");
    struct ph_train_summary summary;
    setup->train.epochs = 0;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_CONFIG, "train.epochs is 0");
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_stopped_at_a_step_ends_as_one_that_was_not),
        cmocka_unit_test(training_stopped_again_and_again_ends_as_one_that_was_not),
        cmocka_unit_test(training_stopped_while_it_is_tested_is_tested_when_it_resumes),
        cmocka_unit_test(steps_that_were_skipped_stay_skipped),
        cmocka_unit_test(longer_training_goes_on_as_if_it_had_been_so_from_the_start),
        cmocka_unit_test(finished_training_is_left_as_it_is),
        cmocka_unit_test(damaged_checkpoint_gives_way_to_the_one_before_with_a_note),
        cmocka_unit_test(damaged_checkpoint_is_not_counted_as_kept),
        cmocka_unit_test(without_a_valid_checkpoint_nothing_is_touched),
        cmocka_unit_test(best_model_is_put_back_to_that_of_the_checkpoint),
        cmocka_unit_test(settings_that_the_checkpoint_rules_out_are_refused),
        cmocka_unit_test(folder_has_one_training_at_a_time),
        cmocka_unit_test(folder_that_is_in_use_is_refused_unless_resumed),
        cmocka_unit_test(as_many_checkpoints_are_kept_as_asked_for),
        cmocka_unit_test(loss_that_is_not_finite_leaves_the_last_checkpoint_good),
        cmocka_unit_test(batch_larger_than_the_data_is_what_there_is),
        cmocka_unit_test(training_of_no_epochs_is_refused),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
