/* Trainings by ranks against the same alone: what is measured, and batches that leave ranks without samples.
 */
#include "train/trainer.h"

#include <math.h>
#include <sys/stat.h>

#include "train/folder/metrics_file.h"

#include "unit/train/rank_training.h"

#define MOST_ROWS 400
#define NEAR 1e-5     /* relative: sums of parts are rounded otherwise */
#define NEAR_AUC 4e-5 /* two samples of 500 that change places make 2e-5 */

/* ---- nearness ---- */

static double greatest_share; /* of the tolerance that a comparison has used up */

static void expect_within(double tolerance, double is, double should_be)
{
    const double share = fabs(is - should_be) / (tolerance * (1 + fabs(should_be)));
    greatest_share = isnan(share) ? INFINITY : fmax(greatest_share, share);
    assert_near(is, should_be, tolerance, tolerance);
}

/* ---- rows with all that rows may have ---- */

static struct {
    struct ph_data_settings data;
    struct ph_encoder *encoder;
    char train[512], valid[512];
} visits;

/* Two labels, of which the second is blank now and then, a weight, a group, two ids and a number. */
static void write_visits(const char *name, size_t count, char path_out[512])
{
    static char text[MOST_ROWS * 40 + 64];
    int length = snprintf(text, sizeof text, "click,buy,w,user,item,price\n");
    for (size_t i = 0; i < count; i++) {
        const size_t user = i * 7 % 11, item = i * i % 13;
        length += snprintf(text + length, sizeof text - (size_t)length, "%zu,%s,%g,u%zu,i%zu,%g\n",
            (user + item) % 3 == 0 ? (size_t)1 : (size_t)0,
            i % 4 == 1 ? ""
            : item > 6 ? "1"
                       : "0",
            .5 + (double)(i % 3), user, item, (double)(i % 17) / 10);
    }
    snprintf(path_out, 512, "%s", test_write_file(name, text));
}

static int make_all_data(void **state)
{
    static char text[1024];
    const struct ph__section section = {&ph__data_options, &visits.data};
    make_data(state);
    write_visits("visits.csv", MOST_ROWS, visits.train);
    write_visits("visits_valid.csv", 200, visits.valid);
    snprintf(text, sizeof text,
        "data:\n  train: %s\n  format: csv\n  fields:\n"
        "    - {name: click, kind: label}\n    - {name: buy, kind: label}\n    - {name: w, kind: weight}\n"
        "    - {name: user, kind: id, group: true}\n    - {name: item, kind: id}\n"
        "    - {name: price, kind: dense}\n",
        visits.train);
    assert_ok(ph__config_read(test_write_file("visits.yaml", text), NULL, 0, &section, 1, &fixture.arena));
    assert_ok(ph_encoder_create(&visits.data, &visits.encoder));
    return 0;
}

static int drop_all_data(void **state)
{
    test_learned_at_most("ranks_alike.share_of_tolerance", greatest_share, 1);
    assert_true(greatest_share > 0); /* something has been compared */
    ph_encoder_destroy(visits.encoder);
    return drop_data(state);
}

/* Sums that are rounded otherwise do not grow apart as fast as under Adam and with statistics of batches. */
static void calm(struct setup *setup)
{
    setup->model.batch_norm = false;
    setup->optimizer.rule.kind = PH_SGD;
    setup->optimizer.embedding_l2 = 0;
    setup->train.report_seconds = 0;
}

static struct setup *set_up_visits(const char *folder)
{
    struct setup *setup = set_up("dlrm", folder);
    calm(setup);
    setup->job.encoder = visits.encoder;
    setup->job.paths.train = visits.train;
    setup->job.paths.valid = visits.valid;
    setup->job.paths.test = visits.valid;
    setup->train.batch_size = 32;
    return setup;
}

static const char row_wise[] = "default: {kind: row_wise}\n", table_wise[] = "default: {kind: table_wise}\n";

/* ---- what a training has said ---- */

static struct ph__metrics_file read_metrics(const struct setup *setup)
{
    struct ph__metrics_file metrics;
    const char *path = ph__path_join(&fixture.arena, setup->folder, "metrics.jsonl");
    assert_ok(ph__metrics_file_read(path, &metrics));
    return metrics;
}

static void expect_equal_curves(
    const struct ph__curve *is, const struct ph__curve *should_be, size_t num_columns)
{
    assert_int_equal(is->count, should_be->count);
    for (size_t c = 0; c < num_columns; c++)
        for (size_t i = 0; i < is->count; i++)
            if (!isnan(should_be->columns[c][i]) || !isnan(is->columns[c][i]))
                expect_within(
                    c == PH_CURVE_AUC ? NEAR_AUC : NEAR, is->columns[c][i], should_be->columns[c][i]);
}

static void expect_equal_metrics(const struct ph_metrics *is, const struct ph_metrics *should_be)
{
    const double pairs[][3] = {{is->auc, should_be->auc, NEAR_AUC}, {is->logloss, should_be->logloss, NEAR},
        {is->ne, should_be->ne, NEAR}, {is->calibration, should_be->calibration, NEAR},
        {is->grouped_auc, should_be->grouped_auc, NEAR_AUC}, {is->base_rate, should_be->base_rate, NEAR}};
    assert_int_equal(is->num_samples, should_be->num_samples);
    for (size_t i = 0; i < COUNT(pairs); i++)
        if (!isnan(pairs[i][0]) || !isnan(pairs[i][1]))
            expect_within(pairs[i][2], pairs[i][0], pairs[i][1]);
}

static void expect_equal_summaries(
    const struct ph_train_summary *is, const struct ph_train_summary *should_be)
{
    assert_int_equal(is->steps, should_be->steps);
    assert_int_equal(is->epochs, should_be->epochs);
    assert_int_equal(is->samples, should_be->samples);
    assert_int_equal(is->parameters, should_be->parameters);
    assert_int_equal(is->train_bad_rows, should_be->train_bad_rows);
    assert_int_equal(is->valid_bad_rows, should_be->valid_bad_rows);
    if (should_be->has_valid)
        expect_equal_metrics(&is->valid, &should_be->valid);
    if (should_be->has_test)
        expect_equal_metrics(&is->test, &should_be->test);
    assert_int_equal(is->has_progressive, should_be->has_progressive);
    if (should_be->has_progressive)
        expect_equal_metrics(&is->progressive, &should_be->progressive);
}

/* The same training alone and by so many ranks: losses step by step, and all that is measured. */
static void expect_equal_training(const struct setup *setup, size_t world_size, const char *plan)
{
    const struct ph_train_summary alone = train(setup);
    const struct setup before = *setup;
    struct ph__metrics_file should_be = read_metrics(setup);
    const struct ph_train_summary shared = train_anew_on_ranks(setup, world_size, plan);
    struct ph__metrics_file is = read_metrics(setup);
    expect_equal_curves(&is.train, &should_be.train, PH_CURVE_LOSS + 1);
    expect_equal_curves(&is.valid, &should_be.valid, PH_CURVE_LEARNING_RATE);
    expect_equal_curves(&is.progressive, &should_be.progressive, PH_CURVE_LEARNING_RATE);
    expect_equal_summaries(&shared, &alone);
    assert_string_equal(setup->first_bad_rows[0], before.first_bad_rows[0]);
    ph__metrics_file_fini(&should_be);
    ph__metrics_file_fini(&is);
}

/* ---- measures ---- */

struct seen {
    size_t count;
    struct ph_metrics metrics[16][2]; /* of each evaluation, by task */
};

static ph_status see(void *context, const struct ph_train_progress *progress)
{
    struct seen *seen = context;
    if (progress->valid != NULL)
        memcpy(seen->metrics[seen->count++], progress->valid, sizeof *seen->metrics);
    return PH_OK;
}

static void every_task_and_its_groups_are_measured_over_all_ranks(void **state)
{
    (void)state;
    static struct seen alone, shared;
    struct setup *setup = set_up_visits("tasks");
    struct ph_train_observer observer = {.context = &alone, .on_progress = see};
    setup->job.options.observer = &observer;
    train(setup);
    observer.context = &shared;
    train_anew_on_ranks(setup, 3, row_wise);
    assert_int_equal(alone.count, 3);
    assert_int_equal(shared.count, alone.count);
    for (size_t i = 0; i < alone.count; i++)
        for (size_t task = 0; task < 2; task++) {
            assert_int_equal(alone.metrics[i][task].num_samples, task == 0 ? 200 : 150);
            assert_true(isfinite(alone.metrics[i][task].grouped_auc));
            expect_equal_metrics(&shared.metrics[i][task], &alone.metrics[i][task]);
        }
    free(setup);
}

static void calibration_is_of_all_ranks_samples(void **state)
{
    (void)state;
    struct setup *setup = set_up_visits("calibrated");
    setup->train.report = true;
    train_anew_on_ranks(setup, 3, table_wise);
    struct ph__metrics_file metrics = read_metrics(setup);
    assert_true(metrics.has_calibration);
    assert_int_equal(ph__calibration_count(&metrics.calibration), 200);
    ph__metrics_file_fini(&metrics);
    free(setup);
}

static void bad_rows_are_counted_once(void **state)
{
    (void)state;
    char command[2000];
    const char *copy = test_path("bad_visits.csv");
    struct setup *setup = set_up_visits("bad");
    snprintf(command, sizeof command, "sed '30a nonsense' '%s' >'%s'", visits.train, copy);
    assert_int_equal(system(command), 0);
    setup->job.paths.train = copy;
    setup->job.reading.max_bad_rows = 1;
    setup->train.epochs = 1;
    expect_equal_training(setup, 3, table_wise);
    free(setup);
}

/* Rows that are left out are the same on all ranks, and the model that is kept is of the same step. */
static void evaluations_within_epochs_select_the_same_model(void **state)
{
    (void)state;
    struct setup *setup = set_up("deepfm", "within");
    calm(setup);
    setup->train.evaluate_steps = 5;
    setup->train.patience = 3;
    setup->job.reading.negative_rate = .5;
    expect_equal_training(setup, 3, row_wise);
    free(setup);
}

/* ---- memory ---- */

/* The tables take 4 x 40 rows x 6 numbers of 4 bytes, and SGD keeps nothing beside them. */
static void tables_too_large_for_one_rank_train_on_four(void **state)
{
    (void)state;
    const struct ph_parallel_settings few = {.memory_bytes = 4 * 40 * 6 * 4 / 3},
                                      enough = {.memory_bytes = 4 * 40 * 6 * 4};
    struct thread_rank_end ends[2];
    struct ph_train_summary summary;
    struct setup *setup = set_up("dlrm", "large");
    calm(setup);
    setup->train.epochs = 1;
    setup->job.parallel = &few;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_MEMORY,
        "rank 0 of 1 would hold 3.8 KiB of tables with their optimizer's slots, but at most 1.2 KiB are "
        "allowed: "
        "2.5 KiB too much; its largest table is 'embedding.C1'");
    train_on_ranks(setup, 2, NULL, ends);
    assert_int_equal(ends[0].status, PH_ERROR_MEMORY);
    assert_non_null(strstr(ends[0].text, "does not fit"));
    train_on_ranks(setup, 2, "default: {kind: table_wise}\n", ends);
    assert_int_equal(ends[0].status, PH_ERROR_MEMORY);
    assert_non_null(strstr(ends[0].text, "of 2 would hold 1.9 KiB of tables"));
    setup->job.parallel = &enough;
    const struct ph_train_summary alone = train(setup);
    setup->job.parallel = &few;
    const struct ph_train_summary shared = train_anew_on_ranks(setup, 4, NULL);
    expect_equal_summaries(&shared, &alone);
    assert_near(shared.flops_per_sample, alone.flops_per_sample, 0, .2); /* each updates its dense layers */
    free(setup);
}

/* Whether it learns from its samples or scores them. */
static void a_rank_plans_memory_for_its_part(void **state)
{
    (void)state;
    struct setup *setup = set_up_visits("planned");
    setup->train.batch_size = 128;
    setup->train.epochs = 1;
    const struct ph_train_summary alone = train(setup);
    const struct ph_train_summary shared = train_anew_on_ranks(setup, 4, table_wise);
    assert_true(shared.memory.plan_bytes < alone.memory.plan_bytes);
    free(setup);
}

static const char *plan_of(const struct setup *setup)
{
    static char *text;
    size_t size = 0;
    const char *path = ph__path_join(&fixture.arena, setup->folder, "plan.yaml");
    assert_ok(ph__file_read(&fixture.arena, path, 1 << 16, &text, &size));
    return text;
}

static void count_note(void *context, const char *text)
{
    int *count = context;
    if (strstr(text, "the kept plan is replaced by a new one: rank 1 of 3 would hold ") != NULL)
        ++*count;
}

/* The plan that a training has kept, unless it takes more than is allowed now. */
static void a_plan_is_resumed_as_far_as_memory_allows(void **state)
{
    (void)state;
    int num_notes = 0;
    const struct ph_train_observer observer = {.context = &num_notes, .on_note = count_note};
    struct ph_parallel_settings parallel = {.memory_bytes = 4 * 40 * 6 * 4};
    struct setup *setup = set_up("dlrm", "kept");
    setup->job.options.observer = &observer;
    calm(setup);
    setup->train.epochs = 1;
    setup->train.max_steps = 2;
    setup->job.parallel = &parallel;
    train_anew_on_ranks(setup, 3, "default: {kind: table_wise, rank: 1}\n");
    const char *kept = plan_of(setup);
    setup->job.options.is_resumed = true;
    setup->train.max_steps = 4;
    train_on_ranks(setup, 3, NULL, NULL);
    assert_string_equal(plan_of(setup), kept);
    assert_int_equal(num_notes, 0);
    parallel.memory_bytes = 4 * 40 * 6 * 4 / 2;
    setup->train.max_steps = 6;
    train_on_ranks(setup, 3, NULL, NULL);
    assert_string_not_equal(plan_of(setup), kept);
    assert_int_equal(num_notes, 1);
    free(setup);
}

/* ---- streams ---- */

/* Windows end within batches, and within ranks' parts of them. */
static struct setup *set_up_stream(const char *folder)
{
    struct setup *setup = set_up("dlrm", folder);
    calm(setup);
    setup->job.reading.is_shuffled = false;
    setup->train.epochs = 1;
    setup->train.progressive = true;
    setup->train.progressive_rows = 700;
    return setup;
}

static void a_stream_is_measured_over_all_ranks(void **state)
{
    (void)state;
    struct setup *setup = set_up_stream("stream");
    expect_equal_training(setup, 3, row_wise);
    free(setup);
}

/* Windows are of rows in their order, in however many parts ranks score and learn from them. */
static void a_stream_of_micro_batches_is_measured_over_all_ranks(void **state)
{
    (void)state;
    struct setup *setup = set_up_stream("parts");
    setup->train.accumulation_steps = 4;
    expect_equal_training(setup, 3, row_wise);
    free(setup);
}

/* A window that has begun is resumed by another number of ranks. */
static void a_stream_goes_on_by_other_ranks(void **state)
{
    (void)state;
    struct setup *setup = set_up_stream("stream");
    const struct ph_train_summary alone = train(setup);
    struct ph__metrics_file should_be = read_metrics(setup);
    setup->train.max_steps = 5;
    train_anew_on_ranks(setup, 3, row_wise);
    setup->train.max_steps = 0;
    setup->job.options.is_resumed = true;
    const struct ph_train_summary resumed = train_on_ranks(setup, 2, table_wise, NULL);
    assert_int_equal(resumed.resumed_step, 5);
    struct ph__metrics_file is = read_metrics(setup);
    expect_equal_curves(&is.progressive, &should_be.progressive, PH_CURVE_LEARNING_RATE);
    expect_equal_metrics(&resumed.progressive, &alone.progressive);
    ph__metrics_file_fini(&should_be);
    ph__metrics_file_fini(&is);
    free(setup);
}

static void what_flows_is_refused_by_all_ranks(void **state)
{
    (void)state;
    struct thread_rank_end ends[3];
    const char *path = test_path("pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    for (size_t split = 0; split < 3; split++) {
        struct setup *setup = set_up_visits("flows");
        const char **paths[] = {&setup->job.paths.train, &setup->job.paths.valid, &setup->job.paths.test};
        *paths[split] = path;
        setup->train.epochs = 1;
        train_on_ranks(setup, 3, NULL, ends);
        for (size_t rank = 0; rank < 3; rank++) {
            assert_int_equal(ends[rank].status, PH_ERROR_CONFIG);
            assert_non_null(strstr(ends[rank].text, "a pipe, which can be read only once"));
        }
        assert_false(ph__file_exists(setup->folder));
        free(setup);
    }
}

/* ---- batches that leave ranks without samples ---- */

static void fewer_samples_in_a_batch_than_ranks(void **state)
{
    (void)state;
    static char path[512];
    static const int64_t batch_sizes[] = {1, 3, 399}; /* 399: one sample is left for the last batch */
    write_visits("some.csv", 30, path);
    for (size_t i = 0; i < COUNT(batch_sizes); i++) {
        struct setup *setup = set_up_visits("uneven");
        setup->train.batch_size = batch_sizes[i];
        setup->train.max_steps = batch_sizes[i] < 4 ? 20 : 0;
        setup->job.paths.valid = path;
        setup->job.paths.test = NULL;
        expect_equal_training(setup, 4, i % 2 == 0 ? row_wise : table_wise);
        free(setup);
    }
}

/* Statistics of batches are those of all ranks, of which some have nothing to add. */
static void fewer_samples_than_ranks_under_batch_norm(void **state)
{
    (void)state;
    struct setup *setup = set_up_visits("normed");
    setup->model.batch_norm = true;
    setup->train.batch_size = 3;
    setup->train.max_steps = 5;
    expect_equal_training(setup, 4, table_wise);
    free(setup);
}

static void fewer_rows_than_ranks(void **state)
{
    (void)state;
    static char path[512];
    for (size_t rows = 1; rows <= 3; rows += 2) {
        struct setup *setup = set_up_visits("few");
        write_visits("few.csv", rows, path);
        setup->job.paths.train = setup->job.paths.valid = setup->job.paths.test = path;
        setup->train.report = true;
        expect_equal_training(setup, 4, rows == 1 ? row_wise : NULL);
        free(setup);
    }
}

static void no_rows_at_all_end_all_ranks(void **state)
{
    (void)state;
    static char path[512];
    struct thread_rank_end ends[3];
    struct setup *setup = set_up_visits("empty");
    write_visits("empty.csv", 0, path);
    setup->job.paths.train = path;
    train_on_ranks(setup, 3, table_wise, ends);
    for (size_t rank = 0; rank < 3; rank++) {
        assert_int_equal(ends[rank].status, PH_ERROR_DATA);
        assert_non_null(strstr(ends[rank].text, "has no rows"));
    }
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_and_its_groups_are_measured_over_all_ranks),
        cmocka_unit_test(calibration_is_of_all_ranks_samples),
        cmocka_unit_test(bad_rows_are_counted_once),
        cmocka_unit_test(evaluations_within_epochs_select_the_same_model),
        cmocka_unit_test(tables_too_large_for_one_rank_train_on_four),
        cmocka_unit_test(a_rank_plans_memory_for_its_part),
        cmocka_unit_test(a_plan_is_resumed_as_far_as_memory_allows),
        cmocka_unit_test(a_stream_is_measured_over_all_ranks),
        cmocka_unit_test(a_stream_of_micro_batches_is_measured_over_all_ranks),
        cmocka_unit_test(a_stream_goes_on_by_other_ranks),
        cmocka_unit_test(what_flows_is_refused_by_all_ranks),
        cmocka_unit_test(fewer_samples_in_a_batch_than_ranks),
        cmocka_unit_test(fewer_samples_than_ranks_under_batch_norm),
        cmocka_unit_test(fewer_rows_than_ranks),
        cmocka_unit_test(no_rows_at_all_end_all_ranks),
    };
    return cmocka_run_group_tests(tests, make_all_data, drop_all_data);
}
