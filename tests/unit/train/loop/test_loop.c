/* Whole trainings on a small synthetic data set: every model, every way to end. */
#include <math.h>
#include <signal.h>

#include "unit/train/train_fixture.h"

static void every_model_learns_and_ends_in_the_same_bits_for_any_threads(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < ph_model_count(); kind += test_is_brief() ? 2 : 1) {
        const char *model = ph_model_name((int)kind);
        struct setup *setup = set_up(model, model);
        setup->train.epochs = test_is_brief() ? 1 : 6;
        const struct ph_train_summary one = train(setup);
        if (!test_is_brief())
            test_learned_at_most(ph__arena_printf(&fixture.arena, "loop.%s.ne", model), one.valid.ne, 0.85);
        setup->job.run.num_threads = 3; /* tests/system/test_determinism.sh tries others */
        const struct ph_train_summary many = train(setup);
        assert_int_equal(many.num_threads, 3);
        assert_string_equal(many.checkpoint_sha256, one.checkpoint_sha256);
        assert_true(many.test.auc == one.test.auc);
        free(setup);
    }
}

static void another_seed_gives_another_model(void **state)
{
    (void)state;
    struct setup *setup = set_up("dlrm", "seed");
    setup->train.epochs = 1;
    const struct ph_train_summary first = train(setup);
    setup->job.run.seed++;
    assert_string_not_equal(train(setup).checkpoint_sha256, first.checkpoint_sha256);
    free(setup);
}

/* Two trainings that round differently stay near each other: no batch statistics, short steps, and the last
 * model instead of the best epoch's. */
static struct setup *set_up_calm(const char *model, const char *folder, double learning_rate)
{
    struct setup *setup = set_up(model, folder);
    setup->model.batch_norm = false;
    setup->optimizer.learning_rate = learning_rate;
    setup->train.epochs = 8;
    setup->train.schedule = PH_SCHEDULE_CONSTANT;
    setup->job.paths.valid = NULL;
    return setup;
}

static void bf16_learns_and_ends_in_the_same_bits_for_any_threads(void **state)
{
    (void)state;
    static const char *const models[] = {"dlrm", "deepfm"};
    for (size_t i = 0; i < COUNT(models); i++) {
        struct setup *setup = set_up_calm(models[i], "bf16", 0.003);
        const struct ph_train_summary real = train(setup);
        test_learned_at_most(
            ph__arena_printf(&fixture.arena, "loop.%s.calm_ne", models[i]), real.test.ne, 0.85);
        setup->train.precision = PH_PRECISION_BF16;
        const struct ph_train_summary one = train(setup);
        assert_string_not_equal(one.checkpoint_sha256, real.checkpoint_sha256);
        test_learned_at_most(ph__arena_printf(&fixture.arena, "loop.%s.bf16_layers_distance", models[i]),
            fabs(one.test.logloss - real.test.logloss), 0.01); /* of .2 that the model has learnt */
        setup->job.run.num_threads = 2;
        assert_string_equal(train(setup).checkpoint_sha256, one.checkpoint_sha256);
        free(setup);
    }
}

/* With two threads, and with a stop in an epoch. */
static void expect_same_bits_otherwise(struct setup *setup, const char *checkpoint_sha256)
{
    struct ph_train_summary resumed;
    setup->job.run.num_threads = 2;
    assert_string_equal(train(setup).checkpoint_sha256, checkpoint_sha256);
    setup->train.max_steps = 17;
    train(setup);
    setup->train.max_steps = 0;
    setup->job.options.is_resumed = true;
    assert_ok(ph__train(&setup->job, &resumed));
    setup->job.options.is_resumed = false;
    assert_int_equal(resumed.resumed_step, 17);
    assert_string_equal(resumed.checkpoint_sha256, checkpoint_sha256);
}

static void expect_learnt_as_fp32(
    struct setup *setup, enum ph_row_format format, const struct ph_train_summary *wanted)
{
    setup->train.row_format = format;
    setup->job.run.num_threads = 1;
    struct ph_train_summary one = train(setup);
    test_learned_at_most(ph__arena_printf(&fixture.arena, "loop.%s.%s_distance",
                             ph_model_name(setup->model.kind), ph_row_format_name(format)),
        fabs(one.test.logloss - wanted->test.logloss), 0.01); /* of .1 and more that the model has learnt */
    assert_string_not_equal(one.checkpoint_sha256, wanted->checkpoint_sha256);
    expect_same_bits_otherwise(setup, one.checkpoint_sha256);
    const uint64_t bytes = one.memory.parameter_bytes, of_fp32 = wanted->memory.parameter_bytes;
    assert_true(format == PH_ROWS_BF16_SPLIT ? bytes == of_fp32 : bytes < of_fp32);
    assert_int_equal(one.memory.slot_bytes, wanted->memory.slot_bytes);
}

static void tables_are_learnt_in_every_format_nearly_as_in_fp32(void **state)
{
    (void)state;
    static const enum ph_row_format formats[] = {PH_ROWS_FP16, PH_ROWS_BF16, PH_ROWS_BF16_SPLIT};
    static const char *const models[] = {"lr", "fm", "wide_deep", "dlrm"};
    static const double learning_rates[] = {0.1, 0.01, 0.005, 0.005};
    for (size_t kind = 0; kind < (test_is_brief() ? 2 : COUNT(models)); kind++) {
        struct setup *setup = set_up_calm(models[kind], "formats", learning_rates[kind]);
        if (kind % 2 == 0) { /* Adagrad on touched rows; Adam on whole tables, clipped, elsewhere */
            setup->optimizer.embedding_kind = PH_EMBEDDING_ADAGRAD;
            setup->optimizer.embedding_scope = PH_SCOPE_TOUCHED;
            setup->train.max_gradient_norm = 0;
        }
        struct ph_train_summary wanted = train(setup);
        test_learned_at_most(
            ph__arena_printf(&fixture.arena, "loop.%s.fp32_ne", models[kind]), wanted.test.ne, 0.9);
        for (size_t i = 0; i < COUNT(formats); i++)
            expect_learnt_as_fp32(setup, formats[i], &wanted);
        free(setup);
    }
}

static void format_that_is_not_learnt_is_refused_by_its_key(void **state)
{
    (void)state;
    struct ph_train_summary summary;
    struct setup *setup = set_up("fm", "levels");
    setup->train.row_format = PH_ROWS_INT8;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_CONFIG,
        "train.row_format is int8; it must be fp32, fp16, bf16 or bf16_split");
    free(setup);
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
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 2}, &backend));
    struct ph_scorer_options options = {.size = sizeof options,
        .model = &setup->model,
        .encoder = fixture.encoder,
        .store = store,
        .state = carried,
        .backend = backend,
        .batch_size = 64};
    assert_ok(ph_scorer_create(&options, &scorer));
    assert_ok(ph_checkpoint_load(model_of(setup), store, carried));
    struct ph_metrics metrics;
    assert_ok(ph_scorer_evaluate(scorer, fixture.data.paths.test, &metrics));
    test_learned_at_most("loop.saved.auc_distance", fabs(metrics.auc - summary.test.auc), 1e-4);
    test_learned_at_most("loop.saved.logloss_distance", fabs(metrics.logloss - summary.test.logloss), 1e-5);
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
    setup->job.paths.valid = setup->job.paths.test = NULL;
    struct ph_train_summary summary = train(setup);
    assert_false(summary.has_valid || summary.has_test);
    assert_int_equal(summary.best_epoch, 3);
    assert_true(ph__file_exists(model_of(setup)));
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
    setup->job.options.observer = &observer;
    setup->train.patience = 0;
    setup->train.epochs = 2;
    setup->train.evaluate_steps = 8; /* of 24 steps: 8, 12, 16, 24 */
    train(setup);
    assert_int_equal(seen.evaluations, 4);
    assert_int_equal(seen.reports, 4);
    free(setup);
}

struct told {
    struct ph_train_progress report, evaluation; /* the latest ones */
    struct ph_metrics valid;
};

static ph_status tell(void *context, const struct ph_train_progress *progress)
{
    struct told *told = context;
    if (progress->valid == NULL) {
        told->report = *progress;
    } else {
        told->evaluation = *progress;
        told->valid = progress->valid[0];
    }
    return PH_OK;
}

/* The last ones, at the training's end. */
static void evaluation_tells_what_is_known_and_nothing_else(void **state)
{
    (void)state;
    struct setup *setup = set_up("dnn", "told");
    struct told told = {0};
    const struct ph_train_observer observer = {.context = &told, .on_progress = tell};
    setup->job.options.observer = &observer;
    setup->train.max_steps = 30;
    struct ph_train_summary summary = train(setup);
    const struct ph_train_progress *evaluation = &told.evaluation, *report = &told.report;
    assert_int_equal(report->step, 30);
    assert_true(isfinite(report->loss) && report->samples_per_s > 0 && report->seconds_left == 0);
    assert_int_equal(evaluation->step, 30);
    assert_int_equal(evaluation->total_steps, 30);
    assert_int_equal(evaluation->epochs, 3);
    assert_true(isnan(evaluation->loss) && isnan(evaluation->samples_per_s));
    assert_true(isnan(evaluation->seconds_left));
    assert_true(evaluation->auc == report->auc);
    test_learned_at_least("loop.dnn.auc_at_step_30", evaluation->auc, 0.7);
    assert_true(evaluation->learning_rate == report->learning_rate);
    assert_int_equal(told.valid.num_samples, summary.valid.num_samples);
    free(setup);
}

static void waiting_for_data_is_a_share_of_the_time(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "waiting");
    static const size_t prefetched[] = {0, 2};
    for (size_t i = 0; i < COUNT(prefetched); i++) {
        setup->job.reading.num_prefetched = prefetched[i];
        const struct ph_train_summary summary = train(setup);
        assert_true(summary.reader_wait_share > 0 && summary.reader_wait_share < 1);
    }
    free(setup);
}

static void observer_can_end_the_training(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "observer");
    struct seen seen = {.answer = PH_ERROR_DISK};
    struct ph_train_observer observer = {.context = &seen, .on_progress = see};
    setup->job.options.observer = &observer;
    struct ph_train_summary summary;
    assert_int_equal(ph__train(&setup->job, &summary), PH_ERROR_DISK);
    free(setup);
}

static void signal_ends_the_training_with_its_status(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "signal");
    volatile int stop_signal = SIGTERM;
    setup->job.options.stop_signal = &stop_signal;
    struct ph_train_summary summary;
    assert_fails(
        ph__train(&setup->job, &summary), PH_ERROR_TERMINATED, "stopped by a signal before the first step");
    free(setup);
}

static void loss_that_is_not_finite_stops_the_training_by_name(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "stop");
    setup->optimizer.rule.kind = PH_SGD;
    setup->optimizer.learning_rate = 1e38;
    setup->train.max_gradient_norm = 0;
    struct ph_train_summary summary;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_DIVERGED, "is not finite");
    free(setup);
}

static void steps_that_are_not_finite_are_skipped_and_counted(void **state)
{
    (void)state;
    struct setup *setup = set_up("dnn", "skip");
    make_divergent(setup);
    setup->train.non_finite = PH_NON_FINITE_SKIP;
    setup->train.epochs = 1;
    setup->job.paths.valid = NULL; /* which would have no model to choose */
    struct ph_train_summary summary = train(setup);
    assert_true(summary.skipped_steps > 0);
    assert_int_equal(summary.steps, 12);
    free(setup);
}

/* Weights are finite, and the loss that they are learnt from was. */
static void model_whose_scores_are_no_numbers_is_never_the_best(void **state)
{
    (void)state;
    struct setup *setup = set_up("dnn", "no_numbers");
    struct ph_train_summary summary;
    make_divergent(setup);
    setup->train.max_steps = 1;
    remove_folder(setup);
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_DIVERGED, "scores of data.valid are not numbers");
    setup->train.non_finite = PH_NON_FINITE_SKIP;
    remove_folder(setup);
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_DIVERGED, "so no model is kept");
    assert_false(ph__file_exists(ph__path_join(&fixture.arena, setup->folder, "model.safetensors")));
    setup->train.non_finite = PH_NON_FINITE_STOP;
    setup->job.paths.valid = NULL;
    remove_folder(setup);
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_DIVERGED, "scores of data.test are not numbers");
    free(setup);
}

static struct {
    size_t count;
    char text[512];
} notes;

static void see_note(void *context, const char *text)
{
    (void)context;
    notes.count++;
    snprintf(notes.text, sizeof notes.text, "%s", text);
}

static void without_a_metric_to_compare_the_last_model_is_kept_with_a_note(void **state)
{
    (void)state;
    char command[2000];
    struct setup *setup = set_up("lr", "one_class");
    const struct ph_train_observer observer = {.on_note = see_note};
    const char *negatives = ph__path_join(&fixture.arena, test_folder(), "negatives.tsv");
    snprintf(command, sizeof command, "grep -v '^1' '%s' >'%s'", setup->job.paths.valid, negatives);
    assert_int_equal(system(command), 0);
    setup->job.options.observer = &observer;
    setup->job.paths.valid = negatives;
    setup->train.patience = 1;
    struct ph_train_summary summary = train(setup);
    assert_int_equal(notes.count, 1);
    assert_non_null(strstr(notes.text, "are all of one class"));
    assert_non_null(strstr(notes.text, "the last model is kept"));
    assert_int_equal(summary.epochs, 3);
    assert_int_equal(summary.best_epoch, 3);
    assert_int_equal(summary.ended_by, PH_ENDED_BY_EPOCHS);
    free(setup);
}

/* Copies the training rows with blank labels in those that `rows` names, awk's condition on a row's number.
 */
static const char *blank_labels(const struct setup *setup, const char *rows)
{
    char command[2000];
    const char *path = ph__path_join(&fixture.arena, test_folder(), "blank.tsv");
    snprintf(command, sizeof command, "awk -F'\t' -v OFS='\t' 'NR > 1 && (%s) { $1 = \"\" } 1' '%s' >'%s'",
        rows, setup->job.paths.train, path);
    assert_int_equal(system(command), 0);
    return path;
}

static void label_that_is_blank_in_every_row_is_refused_before_the_first_step(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "blank_label");
    struct ph_train_summary summary;
    const char *path = setup->job.paths.train = blank_labels(setup, "1");
    remove_folder(setup);
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_DATA,
        "blank.tsv: label 'label' (column 'label') is blank in every row");
    assert_false(ph__file_exists(ph__path_join(&fixture.arena, setup->folder, "metrics.jsonl")));
    setup->job.paths.train = fixture.data.paths.train;
    assert_string_equal(blank_labels(setup, "NR < 3000"), path); /* the last rows have one */
    setup->job.paths.train = path;
    train(setup);
    free(setup);
}

static void summary_says_what_ended_the_training(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "ended");
    setup->train.patience = 0;
    setup->train.epochs = 1;
    assert_int_equal(train(setup).ended_by, PH_ENDED_BY_EPOCHS);
    setup->train.max_steps = 5;
    assert_int_equal(train(setup).ended_by, PH_ENDED_BY_MAX_STEPS);
    setup->train.max_steps = 0;
    setup->train.epochs = 9;
    setup->train.patience = 1;
    setup->optimizer.learning_rate = 0; /* no evaluation is better than the first */
    assert_int_equal(train(setup).ended_by, PH_ENDED_BY_PATIENCE);
    struct ph_train_summary again;
    setup->job.options.is_resumed = true;
    assert_ok(ph__train(&setup->job, &again));
    assert_true(again.was_finished);
    assert_int_equal(again.ended_by, PH_ENDED_BY_PATIENCE);
    free(setup);
}

static void empty_file_for_later_is_refused_before_the_first_step(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "empty_test");
    struct ph_train_summary summary;
    setup->job.paths.test = test_write_file("nothing.tsv", "");
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_DATA, "nothing.tsv");
    assert_false(ph__file_exists(ph__path_join(&fixture.arena, setup->folder, "metrics.jsonl")));
    free(setup);
}

static void job_that_cannot_fit_ends_before_the_first_step(void **state)
{
    (void)state;
    struct setup *setup = set_up("dnn", "too_large");
    setup->model.embedding_dim = 1ll << 36;
    struct ph_train_summary summary;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_MEMORY, "this job needs");
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_learns_and_ends_in_the_same_bits_for_any_threads),
        cmocka_unit_test(another_seed_gives_another_model),
        cmocka_unit_test(bf16_learns_and_ends_in_the_same_bits_for_any_threads),
        cmocka_unit_test(tables_are_learnt_in_every_format_nearly_as_in_fp32),
        cmocka_unit_test(format_that_is_not_learnt_is_refused_by_its_key),
        cmocka_unit_test(folder_holds_what_the_contract_names),
        cmocka_unit_test(saved_model_scores_as_the_trained_one_did),
        cmocka_unit_test(training_ends_at_max_steps_and_still_evaluates),
        cmocka_unit_test(without_validation_the_last_model_is_kept),
        cmocka_unit_test(evaluations_come_every_so_many_steps_and_after_epochs),
        cmocka_unit_test(evaluation_tells_what_is_known_and_nothing_else),
        cmocka_unit_test(waiting_for_data_is_a_share_of_the_time),
        cmocka_unit_test(observer_can_end_the_training),
        cmocka_unit_test(signal_ends_the_training_with_its_status),
        cmocka_unit_test(loss_that_is_not_finite_stops_the_training_by_name),
        cmocka_unit_test(steps_that_are_not_finite_are_skipped_and_counted),
        cmocka_unit_test(model_whose_scores_are_no_numbers_is_never_the_best),
        cmocka_unit_test(without_a_metric_to_compare_the_last_model_is_kept_with_a_note),
        cmocka_unit_test(label_that_is_blank_in_every_row_is_refused_before_the_first_step),
        cmocka_unit_test(summary_says_what_ended_the_training),
        cmocka_unit_test(empty_file_for_later_is_refused_before_the_first_step),
        cmocka_unit_test(job_that_cannot_fit_ends_before_the_first_step),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
