/* Rows encoded in runs, column by column, have the words of the same rows one by one, whatever their columns
 * hold; and runs teach what single rows teach. */
#include <math.h>

#include "data/source/source.h"
#include "unit/data/arrow_rows_fixture.h"

static const int64_t cuts[] = {0, 1, 300, 300, 831, NUM_ROWS};
#define NUM_CUTS ((int)(sizeof cuts / sizeof cuts[0]) - 1)

/* Batches with nulls in all columns; the dictionary turns from batch to batch. */
static struct arrow_pair batch_with_nulls(const struct arrow_streams *streams, int number)
{
    static const int32_t ends[] = {0, 2, 7, 11};
    const struct rows *rows = streams->context;
    struct arrow_pair batch = slice(rows, cuts[number], cuts[number + 1] - cuts[number]);
    batch.array.children[0]->buffers[0] = rows->price_validity;
    batch.array.children[4]->buffers[0] = batch.array.children[5]->buffers[0] = rows->tag_validity;
    if (number % 2 != 0) {
        batch.array.children[0]->dictionary->buffers[1] = ends;
        batch.array.children[0]->dictionary->buffers[2] = "advideonews";
    }
    return batch;
}

static void add_field(struct fixture *fixture, const char *name, const char *from, enum ph__field_kind kind,
    enum ph__field_encoding encoding)
{
    struct ph__field_settings *field = fixture_field(fixture, name, kind);
    field->from = from;
    field->encoding = encoding;
    field->rows = encoding == PH_ENCODING_HASH ? 1000 : 0;
}

static struct ph_encoder *learn(const struct ph_dataset *dataset)
{
    struct fixture fixture;
    struct ph_encoder *encoder = NULL;
    fixture_init(&fixture, NULL);
    fixture.settings.format = PH_DATA_ARROW;
    fixture.settings.min_count = 2; /* so that some ids are unknown */
    fixture_field(&fixture, "click", PH_FIELD_LABEL);
    fixture_field(&fixture, "price", PH_FIELD_DENSE);
    add_field(&fixture, "standard", "price", PH_FIELD_DENSE, PH_ENCODING_INHERIT);
    struct ph__field_settings *indicated = fixture_field(&fixture, "indicated", PH_FIELD_DENSE);
    indicated->from = "price";
    indicated->has_indicator = true;
    add_field(&fixture, "age", "user", PH_FIELD_DENSE, PH_ENCODING_INHERIT);
    fixture_field(&fixture, "user", PH_FIELD_ID)->is_group = true;
    add_field(&fixture, "person", "user", PH_FIELD_ID, PH_ENCODING_VOCABULARY);
    add_field(&fixture, "hashed", "user", PH_FIELD_ID, PH_ENCODING_HASH);
    add_field(&fixture, "bucket", "price", PH_FIELD_ID, PH_ENCODING_LOG_BUCKET);
    add_field(&fixture, "town", "city", PH_FIELD_ID, PH_ENCODING_HASH);
    fixture_field(&fixture, "tags", PH_FIELD_IGNORE);
    fixture_field(&fixture, "span", PH_FIELD_IGNORE);
    fixture_field(&fixture, "*", PH_FIELD_ID);
    fixture.fields[2].transform = PH_TRANSFORM_LOG1P_STANDARDISE;
    assert_ok(ph_encoder_create_from_dataset(&fixture.settings, dataset, &encoder));
    return encoder;
}

/* Reads all rows, one by one where most is 0, else in runs of 1 to `most`. */
static void read_all(struct ph__source *source, const struct ph_encoder *encoder,
    const struct ph_dataset *dataset, size_t most, struct ph__rows *rows)
{
    const struct ph__source_options options = {.dataset = dataset, .max_bad_rows = 100};
    assert_ok(ph__source_open(source, encoder, "rows", &options));
    size_t num_calls = 0;
    for (bool is_end = false; !is_end; num_calls++) {
        const size_t before = rows->num_rows, wanted = most == 0 ? 0 : 1 + num_calls * 37 % most;
        assert_ok(most == 0 ? ph__source_next(source, rows, &is_end)
                            : ph__source_next_run(source, rows, wanted, &is_end));
        assert_true(rows->num_rows - before <= (most == 0 ? 1 : wanted));
        assert_true(is_end || rows->num_rows > before);
    }
    assert_true(most < 100 || source->num_bad_rows > 0 || num_calls < NUM_ROWS / 2);
}

static void assert_same_rows(
    const struct ph_encoder *encoder, const struct ph_dataset *dataset, uint64_t num_bad_rows)
{
    for (size_t most = 1; most <= 1000; most *= 10) {
        struct ph__source single, runs;
        struct ph__rows wanted = {0}, rows = {0};
        read_all(&single, encoder, dataset, 0, &wanted);
        read_all(&runs, encoder, dataset, most, &rows);
        assert_int_equal(single.num_bad_rows, num_bad_rows);
        assert_int_equal(wanted.num_rows, NUM_ROWS - num_bad_rows);
        assert_int_equal(rows.num_rows, wanted.num_rows);
        assert_memory_equal(rows.starts, wanted.starts, (wanted.num_rows + 1) * sizeof *wanted.starts);
        assert_memory_equal(rows.words, wanted.words, ph__rows_num_words(&wanted) * sizeof *wanted.words);
        assert_int_equal(runs.num_rows, single.num_rows);
        assert_int_equal(runs.num_bad_rows, single.num_bad_rows);
        assert_int_equal(runs.num_encoded, single.num_encoded);
        assert_string_equal(runs.first_bad_row, single.first_bad_row);
        ph__source_close(&single);
        ph__source_close(&runs);
        ph__rows_fini(&wanted);
        ph__rows_fini(&rows);
    }
}

static void runs_have_the_words_of_single_rows(void **state)
{
    (void)state;
    static struct rows rows;
    write_rows(&rows);
    for (int i = 0; i < NUM_ROWS; i += 9)
        rows.price[i] = i % 2 != 0 ? (double)NAN : -0.0;
    for (int i = 0; i < NUM_ROWS; i += 7)
        rows.user[i] = i % 2 != 0 ? INT64_MIN + i % 3 : INT64_MAX - i % 5;
    struct arrow_streams streams = {.make = batch_with_nulls, .context = &rows, .num_batches = NUM_CUTS};
    struct ph_dataset *dataset = arrow_streams_dataset(&streams, NULL);
    struct ph_encoder *encoder = learn(dataset);
    assert_same_rows(encoder, dataset, 0);
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(dataset);
    assert_arrow_is_released();
}

/* In the first and the last row of a batch, too. */
static void bad_rows_are_left_out_of_runs(void **state)
{
    (void)state;
    static const int bad[] = {0, 1, 2, 299, 450, 451, 700, NUM_ROWS - 1};
    static struct rows rows;
    write_rows(&rows);
    struct arrow_streams streams = {.make = batch_with_nulls, .context = &rows, .num_batches = NUM_CUTS};
    struct ph_dataset *dataset = arrow_streams_dataset(&streams, NULL);
    struct ph_encoder *encoder = learn(dataset);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        rows.price[bad[i]] = i % 2 == 0 ? (double)INFINITY : 1e300;
        set_bit(rows.price_validity, bad[i], true);
    }
    assert_same_rows(encoder, dataset, sizeof bad / sizeof bad[0]);
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(dataset);
    assert_arrow_is_released();
}

/* Learns ids from rows of which some are bad: a column of statistics makes them come one by one. */
static struct ph_encoder *learn_ids(const struct ph_dataset *dataset, bool is_single)
{
    struct fixture fixture;
    struct ph_encoder *encoder = NULL;
    fixture_init(&fixture, NULL);
    fixture.settings.format = PH_DATA_ARROW;
    fixture.settings.min_count = 2;
    fixture.settings.reading.max_bad_rows = 100;
    fixture_field(&fixture, "click", PH_FIELD_LABEL);
    fixture_field(&fixture, "price", PH_FIELD_DENSE);
    add_field(&fixture, "hashed", "user", PH_FIELD_ID, PH_ENCODING_HASH);
    fixture_field(&fixture, "tags", PH_FIELD_IGNORE);
    fixture_field(&fixture, "span", PH_FIELD_IGNORE);
    fixture_field(&fixture, "*", PH_FIELD_ID);
    add_field(&fixture, "standard", "price", PH_FIELD_DENSE, PH_ENCODING_INHERIT);
    fixture.fields[6].transform = is_single ? PH_TRANSFORM_STANDARDISE : PH_TRANSFORM_LOG1P;
    assert_ok(ph_encoder_create_from_dataset(&fixture.settings, dataset, &encoder));
    return encoder;
}

static void runs_teach_what_single_rows_teach(void **state)
{
    (void)state;
    static struct rows rows;
    write_rows(&rows);
    for (int i = 0; i < NUM_ROWS; i += 7)
        rows.user[i] = i % 2 != 0 ? INT64_MIN + i % 3 : INT64_MAX - i % 5;
    for (int i = 0; i < NUM_ROWS; i += 3)
        rows.city[rows.city_offsets[i]] = 'd'; /* of some row's text, or of the one behind a blank */
    struct arrow_streams streams = {.make = batch_with_nulls, .context = &rows, .num_batches = NUM_CUTS};
    struct ph_dataset *dataset = arrow_streams_dataset(&streams, NULL);
    for (int num_bad = 0; num_bad <= 4; num_bad++) {
        struct ph_encoder *wanted = learn_ids(dataset, true), *learnt = learn_ids(dataset, false);
        assert_int_equal(wanted->num_training_rows, NUM_ROWS - num_bad);
        assert_int_equal(learnt->num_training_rows, NUM_ROWS - num_bad);
        for (size_t i = 0; i < learnt->num_columns; i++)
            if (learnt->columns[i].kind == PH_FIELD_ID)
                assert_same_column(learnt, &wanted->columns[i]);
        assert_true(fixture_column(learnt, "user")->vocabulary.num_words > 100);
        assert_true(fixture_column(learnt, "kind")->vocabulary.num_words > 1);
        ph_encoder_destroy(wanted);
        ph_encoder_destroy(learnt);
        int bad = num_bad * 222; /* the first row, and others amid runs */
        if (num_bad < 3) {
            rows.price[bad] = (double)INFINITY;
            set_bit(rows.price_validity, bad, true);
            continue;
        }
        while (rows.city_offsets[bad] == rows.city_offsets[bad + 1])
            bad++;
        rows.city[rows.city_offsets[bad]] = '\n'; /* an id that no vocabulary holds, behind other columns */
        set_bit(rows.tag_validity, bad, true);
    }
    ph_dataset_destroy(dataset);
    assert_arrow_is_released();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_have_the_words_of_single_rows),
        cmocka_unit_test(bad_rows_are_left_out_of_runs),
        cmocka_unit_test(runs_teach_what_single_rows_teach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
