/* Trainings and evaluations on rows that a program hands over. */
#include "train/job_rows.h"

#include "../data/arrow_fixture.h"
#include "base/file/stream.h"
#include "unit/train/train_fixture.h"

#define NUM_ROWS 700
#define NUM_BATCHES 3 /* of the dataset */

static struct {
    int64_t labels[NUM_ROWS], users[NUM_ROWS], items[NUM_ROWS];
    double prices[NUM_ROWS];
} columns;

static void fill_columns(void)
{
    for (int i = 0; i < NUM_ROWS; i++) {
        columns.users[i] = i * i % 37;
        columns.items[i] = i % 11;
        columns.prices[i] = i % 8 / 4.0;
        columns.labels[i] = (columns.users[i] + columns.items[i]) % 3 == 0;
    }
}

/* Rows first .. first + count, borrowed from `columns`. */
static struct arrow_pair rows_batch(int64_t first, int64_t count)
{
    struct arrow_pair batch = arrow_batch(count, 0);
    arrow_add_child(&batch, ARROW_COLUMN("label", "l", count, first, NULL, columns.labels));
    arrow_add_child(&batch, ARROW_COLUMN("user", "l", count, first, NULL, columns.users));
    arrow_add_child(&batch, ARROW_COLUMN("item", "l", count, first, NULL, columns.items));
    arrow_add_child(&batch, ARROW_COLUMN("price", "g", count, first, NULL, columns.prices));
    return batch;
}

/* Batches of a stream, smaller than those in memory. */
static struct arrow_pair stream_batch(const struct arrow_streams *streams, int number)
{
    const int64_t first = NUM_ROWS * number / streams->num_batches;
    return rows_batch(first, NUM_ROWS * (number + 1) / streams->num_batches - first);
}

static struct ph_dataset *make_dataset(void)
{
    struct ph_dataset *dataset;
    assert_ok(ph_dataset_create(&dataset));
    for (int64_t i = 0; i < NUM_BATCHES; i++) {
        int64_t first = NUM_ROWS * i / NUM_BATCHES;
        struct arrow_pair batch = rows_batch(first, NUM_ROWS * (i + 1) / NUM_BATCHES - first);
        assert_ok(ph_dataset_append_arrow(dataset, &batch.array, &batch.schema));
    }
    assert_int_equal(ph_dataset_num_rows(dataset), NUM_ROWS);
    return dataset;
}

static const char *write_rows(void)
{
    const char *path = ph__path_join(&fixture.arena, test_folder(), "rows.csv");
    struct ph__writer *writer;
    assert_ok(ph__writer_open(path, &writer));
    assert_ok(ph__writer_printf(writer, "label,user,item,price\n"));
    for (int i = 0; i < NUM_ROWS; i++)
        assert_ok(ph__writer_printf(writer, "%d,%d,%d,%.2f\n", (int)columns.labels[i], (int)columns.users[i],
            (int)columns.items[i], columns.prices[i]));
    assert_ok(ph__writer_finish(writer));
    ph__writer_close(writer);
    return path;
}

static struct ph_encoder *make_encoder(const char *path)
{
    struct ph_data_settings settings;
    struct ph_encoder *encoder;
    struct ph__section section = {&ph__data_options, &settings};
    const char *config = test_write_file("rows.yaml", "data:\n  format: csv\n  fields:\n"
                                                      "    - {name: label, kind: label}\n"
                                                      "    - {name: price, kind: dense}\n"
                                                      "    - {name: \"*\", kind: id}\n");
    assert_ok(ph__config_read(config, NULL, 0, &section, 1, &fixture.arena));
    settings.paths.train = path;
    assert_ok(ph_encoder_create(&settings, &encoder));
    return encoder;
}

static void use(
    struct setup *setup, const struct ph_encoder *encoder, const char *path, const struct ph_dataset *dataset)
{
    setup->train.batch_size = 50;
    setup->train.max_gradient_norm = 0;
    setup->job.encoder = encoder;
    setup->job.paths.train = setup->job.paths.valid = setup->job.paths.test = path;
    setup->job.options.train_dataset = setup->job.options.valid_dataset = setup->job.options.test_dataset =
        dataset;
}

static void expect_same(const struct ph_train_summary *a, const struct ph_train_summary *b)
{
    assert_string_equal(a->checkpoint_sha256, b->checkpoint_sha256);
    assert_true(a->valid.auc == b->valid.auc && a->valid.logloss == b->valid.logloss);
    assert_true(a->test.auc == b->test.auc && a->test.logloss == b->test.logloss);
    assert_int_equal(a->test.num_samples, b->test.num_samples);
}

/* Trains whole, then stops amid a pass and resumes. */
static void expect_training(const char *folder, const struct ph_encoder *encoder,
    const struct ph_dataset *dataset, const struct ph_train_summary *wanted)
{
    struct setup *setup = set_up("deepfm", folder);
    use(setup, encoder, NULL, dataset);
    struct ph_train_summary whole = train(setup);
    expect_same(&whole, wanted);
    setup->train.max_steps = 20;
    train(setup);
    setup->train.max_steps = 0;
    setup->job.options.is_resumed = true;
    assert_ok(ph__train(&setup->job, &whole));
    assert_int_equal(whole.resumed_step, 20);
    expect_same(&whole, wanted);
    free(setup);
}

/* Shuffled, in three epochs; in memory and in streams. */
static void dataset_teaches_what_its_rows_in_a_file_teach(void **state)
{
    (void)state;
    fill_columns();
    struct arrow_streams streams = {.make = stream_batch, .num_batches = 9};
    struct ph_dataset *memory = make_dataset(), *streamed = arrow_streams_dataset(&streams, NULL);
    const char *path = write_rows();
    struct ph_encoder *encoder = make_encoder(path);
    struct setup *file = set_up("deepfm", "file");
    use(file, encoder, path, NULL);
    struct ph_train_summary wanted = train(file);
    assert_int_equal(wanted.steps, 3 * NUM_ROWS / 50);
    expect_training("memory", encoder, memory, &wanted);
    expect_training("streamed", encoder, streamed, &wanted);
    free(file);
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(memory);
    ph_dataset_destroy(streamed);
    assert_arrow_is_released();
}

static void stream_that_fails_ends_the_training(void **state)
{
    (void)state;
    fill_columns();
    struct ph_encoder *encoder = make_encoder(write_rows());
    struct arrow_streams streams = {.make = stream_batch, .num_batches = 9};
    struct ph_dataset *dataset = arrow_streams_dataset(&streams, "clicks");
    struct setup *setup = set_up("lr", "failing");
    struct ph_train_summary summary;
    use(setup, encoder, NULL, dataset);
    streams.failing_batch = 7;
    streams.error = "no such row group";
    assert_fails(
        ph__train(&setup->job, &summary), PH_ERROR_DATA, "clicks: batch 6: the stream failed: no such row");
    streams.failing_batch = 0;
    streams.fails_to_open = setup->job.options.is_resumed = true;
    assert_fails(
        ph__train(&setup->job, &summary), PH_ERROR_DATA, "clicks: the stream cannot be opened: no such row");
    free(setup);
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(dataset);
    assert_arrow_is_released();
}

/* A model as it is before its training. */
struct fresh_model {
    struct ph_store *store;
    struct ph_state *state;
    struct ph_backend *backend;
    struct ph_scorer *scorer;
};

static void open_fresh(
    struct fresh_model *fresh, const struct ph_model_settings *model, const struct ph_encoder *encoder)
{
    *fresh = (struct fresh_model){0};
    assert_ok(ph_store_create(7, &fresh->store));
    assert_ok(ph_state_create(&fresh->state));
    assert_ok(ph_backend_create(
        &(struct ph_backend_options){.size = sizeof(struct ph_backend_options), .num_threads = 1},
        &fresh->backend));
    const struct ph_scorer_options options = {.size = sizeof options,
        .model = model,
        .encoder = encoder,
        .store = fresh->store,
        .state = fresh->state,
        .backend = fresh->backend,
        .batch_size = 64,
        .max_bad_rows = 2};
    assert_ok(ph_scorer_create(&options, &fresh->scorer));
}

static void close_fresh(struct fresh_model *fresh)
{
    ph_scorer_destroy(fresh->scorer);
    ph_backend_destroy(fresh->backend);
    ph_state_destroy(fresh->state);
    ph_store_destroy(fresh->store);
}

static void dataset_is_measured_as_its_rows_in_a_file_are(void **state)
{
    (void)state;
    fill_columns();
    const char *path = write_rows();
    struct ph_encoder *encoder = make_encoder(path);
    struct setup *setup = set_up("deepfm", "unused");
    struct arrow_streams streams = {.make = stream_batch, .num_batches = 4};
    struct ph_dataset *datasets[] = {make_dataset(), arrow_streams_dataset(&streams, NULL)};
    struct fresh_model fresh;
    open_fresh(&fresh, &setup->model, encoder);
    struct ph_metrics file, measured;
    assert_ok(ph_scorer_evaluate(fresh.scorer, path, &file));
    assert_int_equal(file.num_samples, NUM_ROWS);
    for (int i = 0; i < 2; i++) {
        assert_ok(ph_scorer_evaluate_dataset(fresh.scorer, datasets[i], &measured));
        assert_int_equal(measured.num_samples, NUM_ROWS);
        assert_true(measured.auc == file.auc && measured.logloss == file.logloss && measured.ne == file.ne);
        assert_true(measured.calibration == file.calibration && measured.base_rate == file.base_rate);
        ph_dataset_destroy(datasets[i]);
    }
    close_fresh(&fresh);
    ph_encoder_destroy(encoder);
    free(setup);
    assert_arrow_is_released();
}

/* Labels beyond [0, 1], one of them more than max_bad_rows. */
static void bad_rows_of_a_dataset_are_left_out_up_to_the_scorers_limit(void **state)
{
    (void)state;
    fill_columns();
    struct ph_encoder *encoder = make_encoder(write_rows());
    struct setup *setup = set_up("lr", "unused");
    struct ph_dataset *dataset = make_dataset();
    struct fresh_model fresh;
    open_fresh(&fresh, &setup->model, encoder);
    struct ph_metrics metrics;
    columns.labels[5] = columns.labels[300] = 7;
    assert_ok(ph_scorer_evaluate_dataset(fresh.scorer, dataset, &metrics));
    assert_int_equal(metrics.num_samples, NUM_ROWS - 2);
    columns.labels[NUM_ROWS / NUM_BATCHES + 300] = 7;
    assert_fails(ph_scorer_evaluate_dataset(fresh.scorer, dataset, &metrics), PH_ERROR_DATA,
        "batch 2, row 67: field 'label'");
    close_fresh(&fresh);
    ph_dataset_destroy(dataset);
    ph_encoder_destroy(encoder);
    free(setup);
    assert_arrow_is_released();
}

static void job_without_rows_is_refused(void **state)
{
    (void)state;
    struct setup *setup = set_up("lr", "none");
    struct ph_train_summary summary;
    setup->job.paths.train = NULL;
    assert_fails(ph__train(&setup->job, &summary), PH_ERROR_CONFIG, "data.train is missing");
    free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dataset_teaches_what_its_rows_in_a_file_teach),
        cmocka_unit_test(stream_that_fails_ends_the_training),
        cmocka_unit_test(dataset_is_measured_as_its_rows_in_a_file_are),
        cmocka_unit_test(bad_rows_of_a_dataset_are_left_out_up_to_the_scorers_limit),
        cmocka_unit_test(job_without_rows_is_refused),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
