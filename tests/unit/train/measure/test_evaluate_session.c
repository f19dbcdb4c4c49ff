/* Sessions that measure: the figures of a scorer over the same rows, beside other calls. */
#include <pthread.h>
#include <string.h>

#include "phloem/train.h"
#include "unit/serve/run_batches.h"

static struct {
    char folder[512], path[600];
    struct run_columns columns;
    struct ph_metrics wanted;
} fixture;

/* What a scorer with other batches and threads says of the file. */
static void measure_file(void)
{
    struct ph__model_config config = {0};
    struct ph__model_folder model = {0};
    struct ph_backend *backend = NULL;
    struct ph_scorer *scorer = NULL;
    assert_ok(ph__model_config_read(&config, fixture.folder));
    assert_ok(ph__model_folder_open(&model, fixture.folder, &config.model.settings, 0, PH_ROWS_FP32, NULL));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 2}, &backend));
    struct ph_scorer_options options = {.size = sizeof options,
        .model = &config.model.settings,
        .encoder = model.encoder,
        .store = model.store,
        .state = model.state,
        .backend = backend,
        .batch_size = 64};
    assert_ok(ph_scorer_create(&options, &scorer));
    assert_ok(ph_scorer_evaluate(scorer, fixture.path, &fixture.wanted));
    ph_scorer_destroy(scorer);
    ph_backend_destroy(backend);
    ph__model_folder_close(&model);
    ph__model_config_fini(&config);
}

static int make_fixture(void **state)
{
    (void)state;
    snprintf(fixture.folder, sizeof fixture.folder, "%s", make_run_folder("dlrm"));
    snprintf(fixture.path, sizeof fixture.path, "%s/rows.csv", test_folder());
    run_columns_fill(&fixture.columns);
    measure_file();
    assert_int_equal(fixture.wanted.num_samples, NUM_ROWS);
    return 0;
}

static struct ph_session *open_session(size_t num_threads)
{
    const struct ph_session_options options = {.size = sizeof options, .num_threads = num_threads};
    struct ph_session *session = NULL;
    assert_ok(ph_session_open(fixture.folder, &options, &session));
    return session;
}

static void expect_wanted(const struct ph_metrics *metrics)
{
    const struct ph_metrics *wanted = &fixture.wanted;
    assert_int_equal(metrics->num_samples, wanted->num_samples);
    assert_memory_equal(&metrics->auc, &wanted->auc, sizeof wanted->auc);
    assert_memory_equal(&metrics->logloss, &wanted->logloss, sizeof wanted->logloss);
    assert_memory_equal(&metrics->ne, &wanted->ne, sizeof wanted->ne);
    assert_memory_equal(&metrics->calibration, &wanted->calibration, sizeof wanted->calibration);
}

static struct arrow_pair stream_batch(const struct arrow_streams *streams, int number)
{
    (void)streams;
    return run_batch(&fixture.columns, number * 50, 50);
}

static void sessions_measure_files_and_datasets_alike(void **state)
{
    (void)state;
    struct arrow_streams streams = {.make = stream_batch, .num_batches = NUM_ROWS / 50};
    struct ph_dataset *dataset = arrow_streams_dataset(&streams, NULL);
    for (size_t num_threads = 1; num_threads <= 2; num_threads++) {
        struct ph_session *session = open_session(num_threads);
        struct ph_metrics metrics;
        assert_ok(ph_session_evaluate(session, fixture.path, &metrics));
        expect_wanted(&metrics);
        memset(&metrics, 0, sizeof metrics);
        assert_ok(ph_session_evaluate_dataset(session, dataset, &metrics));
        expect_wanted(&metrics);
        ph_session_close(session);
    }
    ph_dataset_destroy(dataset);
    assert_arrow_is_released();
}

static void *evaluate(void *argument)
{
    for (int i = 0; i < 3; i++) {
        struct ph_metrics metrics;
        assert_ok(ph_session_evaluate(argument, fixture.path, &metrics));
        expect_wanted(&metrics);
    }
    return NULL;
}

static void evaluations_and_calls_may_overlap(void **state)
{
    (void)state;
    struct ph_session *session = open_session(2);
    pthread_t threads[2];
    struct arrow_pair batch = run_batch(&fixture.columns, 0, NUM_ROWS);
    float first[NUM_ROWS], later[NUM_ROWS];
    assert_ok(ph_session_score_arrow(session, &batch.array, &batch.schema, first));
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, evaluate, session), 0);
    for (int i = 0; i < 20; i++) {
        assert_ok(ph_session_score_arrow(session, &batch.array, &batch.schema, later));
        assert_memory_equal(later, first, sizeof first);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    arrow_release(&batch);
    ph_session_close(session);
}

static void errors_are_those_of_the_rows(void **state)
{
    (void)state;
    struct ph_session *session = open_session(1);
    struct ph_metrics metrics;
    assert_fails(ph_session_evaluate(session, "/nowhere.csv", &metrics), PH_ERROR_DATA, "/nowhere.csv");
    fixture.columns.label[120] = 2;
    struct arrow_streams streams = {.make = stream_batch, .num_batches = NUM_ROWS / 50};
    struct ph_dataset *dataset = arrow_streams_dataset(&streams, "rows");
    assert_fails(ph_session_evaluate_dataset(session, dataset, &metrics), PH_ERROR_DATA,
        "rows: batch 2, row 20: field 'label': 2 is not a label");
    fixture.columns.label[120] = 1;
    ph_dataset_destroy(dataset);
    ph_session_close(session);
    assert_arrow_is_released();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_measure_files_and_datasets_alike),
        cmocka_unit_test(evaluations_and_calls_may_overlap),
        cmocka_unit_test(errors_are_those_of_the_rows),
    };
    return cmocka_run_group_tests(tests, make_fixture, NULL);
}
