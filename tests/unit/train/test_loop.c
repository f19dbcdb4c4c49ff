/* Whole trainings on a small synthetic data set: every model, every way to end. */
#include "support/test_support.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/data_options.h"
#include "data/synth_options.h"
#include "phloem/train.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct {
    struct ph_arena arena;
    struct ph_data_settings data;
    struct ph_encoder *encoder;
} fixture;

static int make_data(void **state)
{
    (void)state;
    static const char *const sets[] = {"synth.train_rows=3000", "synth.valid_rows=500", "synth.test_rows=500",
        "synth.dense=3", "synth.sparse=4", "synth.table_rows=40", "synth.bag_sizes=1,2,1,3",
        "synth.planted_dense=2", "synth.planted=3"};
    struct ph_synth_settings synth;
    struct ph_section synth_section = {&ph__synth_options, &synth};
    assert_ok(ph__config_read(NULL, sets, COUNT(sets), &synth_section, 1, &fixture.arena));
    assert_ok(ph_synth_write(&synth, test_folder(), NULL));
    struct ph_section data_section = {&ph__data_options, &fixture.data};
    const char *path = ph__path_join(&fixture.arena, test_folder(), "synth.yaml");
    assert_ok(ph__config_read(path, NULL, 0, &data_section, 1, &fixture.arena));
    assert_ok(ph_encoder_create(&fixture.data, &fixture.encoder));
    return 0;
}

static int drop_data(void **state)
{
    (void)state;
    ph_encoder_destroy(fixture.encoder);
    ph__arena_fini(&fixture.arena);
    return 0;
}

static const int64_t units[] = {16, 8};

struct setup {
    struct ph_model_settings model;
    struct ph_train_settings train;
    struct ph_optimizer_settings optimizer;
    struct ph_train_job job;
    char folder[512];
};

static struct setup *set_up(const char *model, const char *folder)
{
    struct setup *setup = calloc(1, sizeof *setup);
    assert_non_null(setup);
    snprintf(setup->folder, sizeof setup->folder, "%s/%s", test_folder(), folder);
    setup->model = (struct ph_model_settings){.kind = ph_model_find(model),
        .embedding_dim = 6,
        .embedding_init_std = 0.05,
        .hidden_units = units,
        .num_hidden_units = 2,
        .bottom_units = units,
        .num_bottom_units = 1,
        .batch_norm = true,
        .dropout = 0.1,
        .activation = PH_RELU};
    setup->train = (struct ph_train_settings){.epochs = 3,
        .batch_size = 256,
        .deterministic = true,
        .patience = 2,
        .schedule = PH_SCHEDULE_PLATEAU,
        .schedule_factor = 0.1,
        .max_gradient_norm = 10,
        .report_seconds = 1000};
    setup->optimizer = (struct ph_optimizer_settings){.kind = PH_ADAM,
        .learning_rate = 0.02,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .epsilon = 1e-8,
        .embedding_learning_rate_factor = 1,
        .embedding_l2 = 1e-4,
        .embedding_scope = PH_SCOPE_WHOLE};
    setup->job = (struct ph_train_job){.seed = 3,
        .model = &setup->model,
        .train = &setup->train,
        .optimizer = &setup->optimizer,
        .encoder = fixture.encoder,
        .train_path = fixture.data.train,
        .valid_path = fixture.data.valid,
        .test_path = fixture.data.test,
        .folder = setup->folder,
        .is_shuffled = true,
        .num_threads = 1};
    return setup;
}

/* Anew, whatever an earlier training has left. */
static struct ph_train_summary train(const struct setup *setup)
{
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", setup->folder);
    assert_int_equal(system(command), 0);
    struct ph_train_summary summary;
    assert_ok(ph_train(&setup->job, &summary));
    return summary;
}

static void every_model_learns_and_ends_in_the_same_bits_for_any_threads(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < ph_model_count(); kind++) {
        const char *model = ph_model_name((int)kind);
        struct setup *setup = set_up(model, model);
        struct ph_train_summary one = train(setup);
        if (one.valid.logloss > 0.99 * log(2))
            fail_msg("%s has learnt nothing: logloss %g", model, one.valid.logloss);
        for (size_t threads = 2; threads <= 3; threads++) {
            setup->job.num_threads = threads;
            struct ph_train_summary many = train(setup);
            assert_int_equal(many.num_threads, threads);
            assert_string_equal(many.checkpoint_sha256, one.checkpoint_sha256);
            assert_true(many.test.auc == one.test.auc);
        }
        setup->job.seed = 4;
        assert_string_not_equal(train(setup).checkpoint_sha256, one.checkpoint_sha256);
        free(setup);
    }
}

static void folder_holds_what_the_contract_names(void **state)
{
    (void)state;
    static const char *const names[] = {"model.safetensors", "encoder.json", "metrics.jsonl", "summary.json"};
    struct setup *setup = set_up("fm", "contract");
    struct ph_train_summary summary = train(setup);
    for (size_t i = 0; i < COUNT(names); i++)
        assert_true(ph__file_exists(ph__path_join(&fixture.arena, setup->folder, names[i])));
    assert_int_equal(summary.epochs, 3);
    assert_int_equal(summary.steps, 3 * 12);
    assert_int_equal(summary.samples, 3 * 3000);
    assert_true(summary.flops_per_sample > 0 && summary.parameters > 0);
    assert_true(
        summary.memory.plan_bytes > 0 && summary.memory.slot_bytes >= 2 * summary.memory.parameter_bytes);
    free(setup);
}

/* The best model is what the folder holds: a fresh scorer measures the same. */
static void saved_model_scores_as_the_trained_one_did(void **state)
{
    (void)state;
    struct setup *setup = set_up("deepfm", "saved");
    struct ph_train_summary summary = train(setup);
    struct ph_store *store = NULL;
    struct ph_state *carried = NULL;
    struct ph_backend *backend = NULL;
    struct ph_scorer *scorer = NULL;
    assert_ok(ph_store_create(99, &store));
    assert_ok(ph_state_create(&carried));
    assert_ok(ph_backend_create(&(struct ph_backend_options){.num_threads = 2}, &backend));
    struct ph_scorer_options options = {.model = &setup->model,
        .encoder = fixture.encoder,
        .store = store,
        .state = carried,
        .backend = backend,
        .batch_size = 64};
    assert_ok(ph_scorer_create(&options, &scorer));
    assert_ok(ph_checkpoint_load(summary.checkpoint_path, store, carried));
    struct ph_metrics metrics;
    assert_ok(ph_scorer_evaluate(scorer, fixture.data.test, &metrics));
    assert_near(metrics.auc, summary.test.auc, 1e-4, 0);
    assert_near(metrics.logloss, summary.test.logloss, 1e-5, 0);
    ph_scorer_destroy(scorer);
    ph_backend_destroy(backend);
    ph_state_destroy(carried);
    ph_store_destroy(store);
    free(setup);
}

static void training_ends_at_max_steps_and_still_evaluates(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "max_steps");
    setup->train.max_steps = 5;
    struct ph_train_summary summary = train(setup);
    assert_int_equal(summary.steps, 5);
    assert_int_equal(summary.best_epoch, 1);
    assert_int_equal(summary.test.num_samples, 500);
    free(setup);
}

static void without_validation_the_last_model_is_kept(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "no_valid");
    setup->job.valid_path = setup->job.test_path = NULL;
    struct ph_train_summary summary = train(setup);
    assert_false(summary.has_valid || summary.has_test);
    assert_int_equal(summary.best_epoch, 3);
    assert_true(ph__file_exists(summary.checkpoint_path));
    free(setup);
}

struct seen {
    size_t reports, evaluations;
    ph_status answer;
};

static ph_status see(void *context, const struct ph_train_progress *progress)
{
    struct seen *seen = context;
    if (progress->valid != NULL)
        seen->evaluations++;
    else
        seen->reports++;
    return seen->answer;
}

static void evaluations_come_every_so_many_steps_and_after_epochs(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "evaluations");
    struct seen seen = {0};
    struct ph_train_observer observer = {.context = &seen, .on_progress = see};
    setup->job.observer = &observer;
    setup->train.patience = 0;
    setup->train.epochs = 2;
    setup->train.evaluate_steps = 8; /* of 24 steps: 8, 12, 16, 24 */
    train(setup);
    assert_int_equal(seen.evaluations, 4);
    assert_int_equal(seen.reports, 4);
    free(setup);
}

static void observer_can_end_the_training(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "observer");
    struct seen seen = {.answer = PH_ERROR_DISK};
    struct ph_train_observer observer = {.context = &seen, .on_progress = see};
    setup->job.observer = &observer;
    struct ph_train_summary summary;
    assert_int_equal(ph_train(&setup->job, &summary), PH_ERROR_DISK);
    free(setup);
}

static void signal_ends_the_training_with_its_status(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "signal");
    volatile int stop_signal = SIGTERM;
    setup->job.stop_signal = &stop_signal;
    struct ph_train_summary summary;
    assert_fails(ph_train(&setup->job, &summary), PH_ERROR_TERMINATED, "stopped by a signal at step 1");
    free(setup);
}

static void loss_that_is_not_finite_stops_the_training_by_name(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "stop");
    setup->optimizer.kind = PH_SGD;
    setup->optimizer.learning_rate = 1e38;
    setup->train.max_gradient_norm = 0;
    struct ph_train_summary summary;
    assert_fails(ph_train(&setup->job, &summary), PH_ERROR_DATA, "is not finite");
    free(setup);
}

static void steps_that_are_not_finite_are_skipped_and_counted(void **state)
{
    (void)state;
    struct setup *setup = set_up("dnn", "skip");
    setup->optimizer.kind = PH_SGD;
    setup->optimizer.learning_rate = 1e30;
    setup->optimizer.embedding_l2 = 0;
    setup->train.non_finite = PH_NON_FINITE_SKIP;
    setup->train.max_gradient_norm = 0;
    setup->train.epochs = 1;
    struct ph_train_summary summary = train(setup);
    assert_true(summary.skipped_steps > 0);
    assert_int_equal(summary.steps, 12);
    free(setup);
}

static void job_that_cannot_fit_ends_before_the_first_step(void **state)
{
    (void)state;
    struct setup *setup = set_up("dnn", "too_large");
    setup->model.embedding_dim = 1ll << 36;
    struct ph_train_summary summary;
    assert_fails(ph_train(&setup->job, &summary), PH_ERROR_MEMORY, "this job needs");
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_learns_and_ends_in_the_same_bits_for_any_threads),
        cmocka_unit_test(folder_holds_what_the_contract_names),
        cmocka_unit_test(saved_model_scores_as_the_trained_one_did),
        cmocka_unit_test(training_ends_at_max_steps_and_still_evaluates),
        cmocka_unit_test(without_validation_the_last_model_is_kept),
        cmocka_unit_test(evaluations_come_every_so_many_steps_and_after_epochs),
        cmocka_unit_test(observer_can_end_the_training),
        cmocka_unit_test(signal_ends_the_training_with_its_status),
        cmocka_unit_test(loss_that_is_not_finite_stops_the_training_by_name),
        cmocka_unit_test(steps_that_are_not_finite_are_skipped_and_counted),
        cmocka_unit_test(job_that_cannot_fit_ends_before_the_first_step),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
