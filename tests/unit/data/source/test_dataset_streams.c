/* Batches that come from streams: the bits of the same batches in memory, and nothing that stays alive. */
#include <math.h>

#include "unit/data/arrow_rows_fixture.h"

/* Batches of uneven sizes, of which some are empty, whose dictionaries differ. */
static const int64_t cuts[] = {0, 0, 7, 300, 300, 611, 612, NUM_ROWS};
#define NUM_CUTS ((int)(sizeof cuts / sizeof cuts[0]) - 1)

static struct arrow_pair uneven_batch(const struct arrow_streams *streams, int number)
{
    static const int32_t ends[] = {0, 2, 7, 11};
    static int8_t turned[NUM_ROWS];
    const struct rows *rows = streams->context;
    struct arrow_pair batch = slice(rows, cuts[number], cuts[number + 1] - cuts[number]);
    struct ArrowArray *kind = batch.array.children[0];
    if (number % 2 == 0)
        return batch;
    for (int i = 0; i < NUM_ROWS; i++)
        turned[i] = (int8_t)(2 - rows->kind[i]);
    kind->buffers[1] = turned;
    kind->dictionary->buffers[1] = ends;
    kind->dictionary->buffers[2] = "advideonews";
    return batch;
}

static struct arrow_pair even_batch(const struct arrow_streams *streams, int number)
{
    return slice(streams->context, number * BATCH_ROWS, BATCH_ROWS);
}

/* Fields of the rows without the column of an unread type. */
static void init_read_fields(struct fixture *fixture)
{
    init_fields(fixture, NULL);
    fixture->settings.format = PH_DATA_ARROW;
}

static struct ph_encoder *learn(const struct ph_dataset *dataset)
{
    struct fixture fixture;
    struct ph_encoder *encoder = NULL;
    init_read_fields(&fixture);
    assert_ok(ph_encoder_create_from_dataset(&fixture.settings, dataset, &encoder));
    return encoder;
}

static struct ph_batches *open_pass(const struct ph_dataset *dataset, const struct ph_encoder *encoder,
    const struct ph_batches_options *options)
{
    struct ph_batches *batches = NULL;
    assert_ok(ph_dataset_batches_open(dataset, encoder, options, &batches));
    return batches;
}

static void streams_teach_what_the_same_rows_in_memory_teach(void **state)
{
    (void)state;
    static struct rows rows;
    write_rows(&rows);
    struct arrow_streams streams = {.make = uneven_batch, .context = &rows, .num_batches = NUM_CUTS};
    struct ph_dataset *memory = rows_dataset(&rows), *streamed = arrow_streams_dataset(&streams, NULL);
    struct ph_encoder *wanted = learn(memory), *learnt = learn(streamed);
    assert_int_equal(learnt->num_training_rows, NUM_ROWS);
    assert_int_equal(ph_dataset_num_rows(streamed), 0);
    assert_int_equal(streams.num_opened, 2); /* for the columns, and to learn */
    for (size_t i = 0; i < wanted->num_columns; i++)
        assert_same_column(learnt, &wanted->columns[i]);
    ph_encoder_destroy(wanted);
    ph_encoder_destroy(learnt);
    ph_dataset_destroy(memory);
    ph_dataset_destroy(streamed);
    assert_arrow_is_released();
}

/* In order and shuffled within small windows, with and without a thread, by one rank and as one of three. */
static void streams_give_the_batches_of_the_same_rows_in_memory(void **state)
{
    (void)state;
    static struct rows rows;
    write_rows(&rows);
    struct arrow_streams streams = {.make = uneven_batch, .context = &rows, .num_batches = NUM_CUTS};
    struct ph_dataset *memory = rows_dataset(&rows), *streamed = arrow_streams_dataset(&streams, NULL);
    struct ph_encoder *encoder = learn(memory);
    for (int variant = 0; variant < 16; variant++) {
        const struct ph_batches_options options = {.size = sizeof options,
            .batch_size = 70,
            .reading.is_shuffled = (variant & 1) != 0,
            .reading.shuffle_bytes = 8192,
            .reading.num_prefetched = (variant & 2) != 0 ? 2 : 0,
            .reading.negative_rate = (variant & 8) != 0 ? 0.5 : 0,
            .seed = 3,
            .epoch = 1,
            .rank = (variant & 4) != 0 ? 1 : 0,
            .world_size = (variant & 4) != 0 ? 3 : 0};
        assert_same_pass(open_pass(streamed, encoder, &options), open_pass(memory, encoder, &options));
    }
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(memory);
    ph_dataset_destroy(streamed);
    assert_arrow_is_released();
}

/* The later pass may cut the same rows otherwise. */
static void a_pass_over_streams_goes_on_where_it_was_left(void **state)
{
    (void)state;
    static struct rows rows;
    write_rows(&rows);
    struct arrow_streams even = {.make = even_batch, .context = &rows, .num_batches = 3};
    struct arrow_streams uneven = {.make = uneven_batch, .context = &rows, .num_batches = NUM_CUTS};
    struct ph_dataset *begun = arrow_streams_dataset(&even, NULL);
    struct ph_dataset *resumed = arrow_streams_dataset(&uneven, NULL);
    struct ph_encoder *encoder = learn(begun);
    for (int variant = 0; variant < 8; variant++) {
        const int num_before = variant / 2 * 5;
        struct ph_position position;
        struct ph_batches_options options = {.size = sizeof options,
            .batch_size = 60,
            .reading.is_shuffled = variant % 2 != 0,
            .reading.shuffle_bytes = 8192};
        struct ph_batches *whole = open_pass(begun, encoder, &options);
        for (int i = 0; i < num_before; i++)
            fixture_next(whole);
        ph_batches_position(whole, &position);
        options.start = &position;
        assert_int_equal(
            assert_same_pass(open_pass(resumed, encoder, &options), whole), NUM_ROWS - 60 * num_before);
    }
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(begun);
    ph_dataset_destroy(resumed);
    assert_arrow_is_released();
}

static void one_batch_is_alive_at_a_time(void **state)
{
    (void)state;
    static struct rows rows;
    write_rows(&rows);
    struct arrow_streams streams = {.make = even_batch, .context = &rows, .num_batches = 3};
    struct ph_dataset *streamed = arrow_streams_dataset(&streams, NULL);
    struct ph_encoder *encoder = learn(streamed);
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 100};
    struct ph_batches *batches = open_pass(streamed, encoder, &options);
    const int num_arrays = arrow_counts()->num_arrays; /* a batch and its columns */
    assert_true(num_arrays > 0);
    for (int i = 0; i < 9; i++) {
        fixture_next(batches);
        assert_int_equal(arrow_counts()->num_arrays, num_arrays);
    }
    assert_null(fixture_next(batches));
    assert_int_equal(arrow_counts()->num_streams, 0); /* released as soon as it ends */
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(streamed);
    assert_arrow_is_released();
}

/* ---- what goes wrong ---- */

/* Opens a pass whose end or error is met somewhere, and expects the error. */
static void expect_failure(const struct ph_dataset *dataset, const struct ph_encoder *encoder,
    const struct ph_position *start, const char *text)
{
    for (size_t num_prefetched = 0; num_prefetched <= 2; num_prefetched += 2) {
        const struct ph_batches_options options = {.size = sizeof options,
            .batch_size = 50,
            .reading.num_prefetched = num_prefetched,
            .start = start};
        struct ph_batches *batches = NULL;
        const struct ph_batch *batch = NULL;
        ph_status status = ph_dataset_batches_open(dataset, encoder, &options, &batches);
        while (status == PH_OK) {
            status = ph_batches_next(batches, &batch);
            if (status == PH_OK && batch == NULL)
                break;
        }
        assert_fails(status, PH_ERROR_DATA, text);
        ph_batches_close(batches);
        assert_arrow_is_released();
    }
}

static void a_stream_that_fails_is_told_with_its_text_and_batch(void **state)
{
    (void)state;
    static struct rows rows;
    write_rows(&rows);
    struct arrow_streams streams = {.make = even_batch, .context = &rows, .num_batches = 3};
    struct ph_dataset *streamed = arrow_streams_dataset(&streams, "clicks.parquet");
    struct ph_encoder *encoder = learn(streamed), *none = NULL;
    struct fixture fixture;
    streams.failing_batch = 3;
    streams.error = "row group 2\nis damaged";
    expect_failure(
        streamed, encoder, NULL, "clicks.parquet: batch 2: the stream failed: row group 2\\nis damaged");
    init_read_fields(&fixture);
    assert_fails(ph_encoder_create_from_dataset(&fixture.settings, streamed, &none), PH_ERROR_DATA,
        "clicks.parquet: batch 2: the stream failed: row group 2");
    streams.error = NULL;
    expect_failure(streamed, encoder, NULL, "clicks.parquet: batch 2: the stream failed: Input/output error");
    streams.failing_batch = 1;
    expect_failure(streamed, encoder, NULL, "clicks.parquet: batch 0: the stream failed");
    streams.failing_batch = 0;
    streams.fails_to_open = true;
    expect_failure(streamed, encoder, NULL, "clicks.parquet: the stream cannot be opened");
    assert_null(strchr(strstr(ph_error_text(), "opened"), ':'));
    streams.error = "the folder has gone";
    expect_failure(
        streamed, encoder, NULL, "clicks.parquet: the stream cannot be opened: the folder has gone");
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(streamed);
    assert_arrow_is_released();
}

static void passes_must_have_the_same_rows(void **state)
{
    (void)state;
    static struct rows rows;
    write_rows(&rows);
    struct arrow_streams streams = {.make = even_batch, .context = &rows, .num_batches = 3};
    struct ph_dataset *streamed = arrow_streams_dataset(&streams, NULL);
    struct ph_encoder *encoder = learn(streamed);
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 400};
    struct ph_position position;
    struct ph_batches *batches = open_pass(streamed, encoder, &options);
    fixture_next(batches);
    fixture_next(batches);
    ph_batches_position(batches, &position);
    ph_batches_close(batches); /* early: says nothing of the number of rows */
    streams.num_batches = 2;
    expect_failure(
        streamed, encoder, NULL, "dataset: a pass had 600 rows, but an earlier one 900: the opener must");
    streams.num_batches = 0;
    expect_failure(streamed, encoder, NULL, "dataset: a pass had 0 rows, but an earlier one 900");
    struct ph_dataset *other = arrow_streams_dataset(&streams, NULL);
    streams.num_batches = 2;
    expect_failure(other, encoder, &position, "dataset: has fewer rows than when reading stopped");
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(other);
    ph_dataset_destroy(streamed);
    assert_arrow_is_released();
}

static struct arrow_pair other_batch(const struct arrow_streams *streams, int number)
{
    struct arrow_pair batch = even_batch(streams, number);
    batch.schema.children[4]->name = "person"; /* user */
    return batch;
}

/* Has columns that its schema lacks. */
static struct arrow_pair uneven_columns(const struct arrow_streams *streams, int number)
{
    struct arrow_pair batch = even_batch(streams, number);
    static const int8_t zeros[BATCH_ROWS];
    if (number == 1)
        arrow_add_child(&batch, ARROW_COLUMN("more", "c", BATCH_ROWS, 0, NULL, zeros));
    return batch;
}

static void columns_that_do_not_fit_are_named(void **state)
{
    (void)state;
    static struct rows rows;
    write_rows(&rows);
    struct arrow_streams streams = {.make = even_batch, .context = &rows, .num_batches = 3};
    struct ph_dataset *streamed = arrow_streams_dataset(&streams, NULL);
    struct ph_encoder *encoder = learn(streamed);
    streams.make = other_batch;
    expect_failure(streamed, encoder, NULL, "dataset: batch 0: the batch has no column 'user'");
    streams.make = uneven_columns;
    expect_failure(
        streamed, encoder, NULL, "dataset: batch 1: the batch has 8 columns, but its schema has 7");
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(streamed);
    assert_arrow_is_released();
}

static void a_bad_row_is_named_by_batch_and_row(void **state)
{
    (void)state;
    static struct rows rows;
    write_rows(&rows);
    struct arrow_streams streams = {.make = uneven_batch, .context = &rows, .num_batches = NUM_CUTS};
    struct ph_dataset *streamed = arrow_streams_dataset(&streams, NULL);
    struct ph_encoder *encoder = learn(streamed);
    rows.price[650] = (double)INFINITY;
    rows.price_validity[650 / 8] |= 1 << 650 % 8;
    expect_failure(streamed, encoder, NULL, "dataset: batch 6, row 38: field 'price'");
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(streamed);
    assert_arrow_is_released();
}

static void streams_without_rows_are_refused(void **state)
{
    (void)state;
    static struct rows rows;
    struct fixture fixture;
    struct ph_encoder *encoder = NULL;
    write_rows(&rows);
    struct arrow_streams streams = {.make = uneven_batch, .context = &rows};
    struct ph_dataset *streamed = arrow_streams_dataset(&streams, NULL);
    init_read_fields(&fixture);
    assert_fails(ph_encoder_create_from_dataset(&fixture.settings, streamed, &encoder), PH_ERROR_DATA,
        "dataset: has no batches");
    streams.num_batches = 1; /* an empty one */
    assert_fails(ph_encoder_create_from_dataset(&fixture.settings, streamed, &encoder), PH_ERROR_DATA,
        "dataset: has no rows");
    streams.num_batches = NUM_CUTS;
    encoder = learn(streamed);
    struct ph_dataset *empty = arrow_streams_dataset(&streams, NULL);
    for (streams.num_batches = 0; streams.num_batches <= 1; streams.num_batches++)
        expect_failure(empty, encoder, NULL, "dataset: has no rows");
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(streamed);
    ph_dataset_destroy(empty);
    assert_arrow_is_released();
}

static struct arrow_pair no_batch(const struct arrow_streams *streams, int number)
{
    (void)streams;
    (void)number;
    static const int32_t values[2];
    return ARROW_COLUMN("", "i", 2, 0, NULL, values);
}

static ph_status open_nothing(void *context, struct ArrowArrayStream *stream_out)
{
    (void)context;
    stream_out->release = NULL;
    return PH_OK;
}

static void wrong_uses_are_refused(void **state)
{
    (void)state;
    struct ph_stream_opener opener = {.size = sizeof opener};
    struct ph_dataset *dataset = NULL;
    struct fixture fixture;
    struct ph_encoder *encoder = NULL;
    assert_fails(ph_dataset_create_from_streams(&opener, &dataset), PH_ERROR_USAGE, "open is missing");
    opener.size = 0;
    assert_fails(ph_dataset_create_from_streams(&opener, &dataset), PH_ERROR_USAGE, "ph_stream_opener");
    opener = (struct ph_stream_opener){.size = sizeof opener, .open = open_nothing};
    assert_ok(ph_dataset_create_from_streams(&opener, &dataset));
    init_read_fields(&fixture);
    assert_fails(ph_encoder_create_from_dataset(&fixture.settings, dataset, &encoder), PH_ERROR_USAGE,
        "dataset: the opener gave a released stream");
    struct arrow_pair batch = arrow_batch(0, 0);
    assert_fails(ph_dataset_append_arrow(dataset, &batch.array, &batch.schema), PH_ERROR_USAGE,
        "takes its batches from streams");
    arrow_release(&batch);
    ph_dataset_destroy(dataset);
    struct arrow_streams streams = {.make = no_batch, .num_batches = 1};
    dataset = arrow_streams_dataset(&streams, NULL);
    assert_fails(ph_encoder_create_from_dataset(&fixture.settings, dataset, &encoder), PH_ERROR_DATA,
        "dataset: batch 0: an array of format 'i' is not a record batch");
    ph_dataset_destroy(dataset);
    assert_arrow_is_released();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_teach_what_the_same_rows_in_memory_teach),
        cmocka_unit_test(streams_give_the_batches_of_the_same_rows_in_memory),
        cmocka_unit_test(a_pass_over_streams_goes_on_where_it_was_left),
        cmocka_unit_test(one_batch_is_alive_at_a_time),
        cmocka_unit_test(a_stream_that_fails_is_told_with_its_text_and_batch),
        cmocka_unit_test(passes_must_have_the_same_rows),
        cmocka_unit_test(columns_that_do_not_fit_are_named),
        cmocka_unit_test(a_bad_row_is_named_by_batch_and_row),
        cmocka_unit_test(streams_without_rows_are_refused),
        cmocka_unit_test(wrong_uses_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
