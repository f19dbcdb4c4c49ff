/* Batches that a program hands over: who releases what, and that they are encoded as text is. */
#include "unit/data/arrow_rows_fixture.h"

/* ---- ownership ---- */

static struct arrow_pair small_batch(void)
{
    static const int32_t labels[] = {0, 1, 1}, ids[] = {7, 8, 7};
    struct arrow_pair batch = arrow_batch(3, 0);
    arrow_add_child(&batch, ARROW_COLUMN("label", "i", 3, 0, NULL, labels));
    arrow_add_child(&batch, ARROW_COLUMN("item", "i", 3, 0, NULL, ids));
    return batch;
}

static void a_batch_is_taken_over_and_released_once(void **state)
{
    (void)state;
    struct ph_dataset *dataset = NULL;
    assert_ok(ph_dataset_create(&dataset));
    for (int i = 0; i < 3; i++) {
        struct arrow_pair batch = small_batch();
        assert_ok(ph_dataset_append_arrow(dataset, &batch.array, &batch.schema));
        assert_null(batch.array.release);
        assert_null(batch.schema.release);
    }
    assert_int_equal(ph_dataset_num_rows(dataset), 9);
    assert_int_equal(arrow_counts()->num_arrays, 9); /* each a batch with two columns */
    assert_int_equal(arrow_counts()->num_schemas, 0);
    ph_dataset_destroy(dataset);
    assert_arrow_is_released();
    ph_dataset_destroy(NULL);
}

static void a_refused_batch_stays_the_callers(void **state)
{
    (void)state;
    struct ph_dataset *dataset = NULL;
    assert_ok(ph_dataset_create(&dataset));
    struct arrow_pair batch = small_batch();
    batch.array.n_children = 1;
    assert_fails(ph_dataset_append_arrow(dataset, &batch.array, &batch.schema), PH_ERROR_DATA,
        "1 columns, but its schema has 2");
    batch.array.n_children = 2;
    batch.array.length = 4;
    assert_fails(ph_dataset_append_arrow(dataset, &batch.array, &batch.schema), PH_ERROR_DATA,
        "dataset: batch 0: arrow: column 'label' (format 'i') has fewer rows");
    assert_non_null(batch.array.release);
    assert_non_null(batch.schema.release);
    assert_int_equal(ph_dataset_num_rows(dataset), 0);
    arrow_release(&batch);
    assert_fails(
        ph_dataset_append_arrow(dataset, &batch.array, &batch.schema), PH_ERROR_USAGE, "has been released");
    ph_dataset_destroy(dataset);
    assert_arrow_is_released();
}

static void only_a_struct_is_a_batch(void **state)
{
    (void)state;
    struct ph_dataset *dataset = NULL;
    assert_ok(ph_dataset_create(&dataset));
    struct arrow_pair column = ARROW_COLUMN("label", "i", 0, 0, NULL, NULL);
    assert_fails(ph_dataset_append_arrow(dataset, &column.array, &column.schema), PH_ERROR_DATA,
        "format 'i' is not a record batch");
    arrow_release(&column);
    ph_dataset_destroy(dataset);
}

/* ---- the same as text ---- */

/* An encoder made of CSV reads the dataset, whatever order its columns have. */
static void a_dataset_and_text_give_the_same_batches(void **state)
{
    (void)state;
    static struct rows rows;
    struct fixture fixture;
    init_fields(&fixture, write_rows(&rows));
    fixture.fields[5] = fixture.fields[6]; /* the file has no day */
    fixture.settings.fields.count--;
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    struct ph_dataset *dataset = rows_dataset(&rows);
    for (int variant = 0; variant < 4; variant++) {
        struct ph_batches *batches = NULL;
        const struct ph_batches_options options = {.size = sizeof options,
            .batch_size = 70,
            .reading.is_shuffled = (variant & 1) != 0,
            .seed = 3,
            .reading.shuffle_bytes = 8192,
            .reading.num_prefetched = (variant & 2) != 0 ? 2 : 0};
        assert_ok(ph_dataset_batches_open(dataset, encoder, &options, &batches));
        assert_int_equal(
            assert_same_pass(batches, fixture_open(encoder, fixture.settings.paths.train, &options)),
            NUM_ROWS);
    }
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(dataset);
    assert_arrow_is_released();
}

static void a_dataset_and_text_teach_the_same(void **state)
{
    (void)state;
    static struct rows rows;
    struct fixture fixture;
    init_fields(&fixture, write_rows(&rows));
    struct ph_dataset *dataset = rows_dataset(&rows);
    struct ph_encoder *learnt = NULL;
    fixture.settings.paths.train = NULL;
    fixture.settings.format = PH_DATA_ARROW;
    fixture.fields[3].is_list = false; /* Arrow's type says it */
    assert_ok(ph_encoder_create_from_dataset(&fixture.settings, dataset, &learnt));
    init_fields(&fixture, write_rows(&rows));
    fixture.fields[5] = fixture.fields[6];
    fixture.settings.fields.count--;
    struct ph_encoder *wanted = fixture_encoder(&fixture);
    assert_int_equal(learnt->num_training_rows, NUM_ROWS);
    assert_int_equal(ph_encoder_num_sparse(learnt), ph_encoder_num_sparse(wanted));
    for (size_t i = 0; i < wanted->num_columns; i++)
        assert_same_column(learnt, &wanted->columns[i]);
    ph_encoder_destroy(wanted);
    ph_encoder_destroy(learnt);
    ph_dataset_destroy(dataset);
}

static void a_pass_goes_on_where_it_was_left(void **state)
{
    (void)state;
    static struct rows rows;
    struct fixture fixture;
    init_fields(&fixture, write_rows(&rows));
    fixture.fields[5] = fixture.fields[6];
    fixture.settings.fields.count--;
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    struct ph_dataset *dataset = rows_dataset(&rows);
    for (int is_shuffled = 0; is_shuffled <= 1; is_shuffled++) {
        struct ph_batches *whole = NULL, *rest = NULL;
        struct ph_position position;
        struct ph_batches_options options = {.size = sizeof options,
            .batch_size = 64,
            .reading.is_shuffled = is_shuffled != 0,
            .reading.shuffle_bytes = 8192};
        assert_ok(ph_dataset_batches_open(dataset, encoder, &options, &whole));
        for (int i = 0; i < 9; i++)
            fixture_next(whole);
        ph_batches_position(whole, &position);
        options.start = &position;
        assert_ok(ph_dataset_batches_open(dataset, encoder, &options, &rest));
        assert_int_equal(assert_same_pass(rest, whole), NUM_ROWS - 9 * 64);
    }
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(dataset);
}

/* ---- what does not fit ---- */

static void a_wanted_column_of_an_unread_type_is_named(void **state)
{
    (void)state;
    static struct rows rows;
    struct fixture fixture;
    struct ph_encoder *encoder = NULL;
    write_rows(&rows);
    struct ph_dataset *dataset = rows_dataset(&rows);
    fixture_init(&fixture, NULL);
    fixture.settings.format = PH_DATA_ARROW;
    fixture_field(&fixture, "click", PH_FIELD_LABEL);
    fixture_field(&fixture, "*", PH_FIELD_ID);
    assert_fails(ph_encoder_create_from_dataset(&fixture.settings, dataset, &encoder), PH_ERROR_DATA,
        "dataset: batch 0: arrow: column 'span' (format 'tDs') has a type that is not supported");
    ph_dataset_destroy(dataset);
}

static void a_wanted_column_must_be_there_once(void **state)
{
    (void)state;
    static const int32_t ids[] = {7, 8, 7};
    struct fixture fixture;
    struct ph_dataset *dataset = NULL;
    struct ph_encoder *encoder = NULL;
    struct ph_batches *batches = NULL;
    const struct ph_batch *batch;
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 4};
    assert_ok(ph_dataset_create(&dataset));
    for (int i = 0; i < 3;
         i++) { /* the second has a column twice that nobody wants, the third one that is wanted */
        struct arrow_pair pair = small_batch();
        for (int k = 0; i > 0 && k < 2; k++)
            arrow_add_child(&pair, ARROW_COLUMN(i == 1 ? "more" : "item", "i", 3, 0, NULL, ids));
        assert_ok(ph_dataset_append_arrow(dataset, &pair.array, &pair.schema));
    }
    fixture_init(&fixture, NULL);
    fixture.settings.format = PH_DATA_ARROW;
    fixture.settings.encoding = PH_ENCODING_RAW;
    fixture.settings.rows = 9;
    fixture_label_and_ids(&fixture);
    assert_ok(ph_encoder_create_from_dataset(&fixture.settings, dataset, &encoder));
    assert_ok(ph_dataset_batches_open(dataset, encoder, &options, &batches));
    assert_int_equal(fixture_next(batches)->num_samples, 4);
    assert_fails(
        ph_batches_next(batches, &batch), PH_ERROR_DATA, "dataset: batch 2: two columns are called 'item'");
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(dataset);
}

static void ids_that_no_vocabulary_keeps_are_refused(void **state)
{
    (void)state;
    static const int32_t labels[] = {0, 1}, ends[] = {0, 1, 4};
    static const char *const texts[] = {"ab\nc", "ab\0c"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct fixture fixture;
        struct ph_encoder *encoder = NULL;
        struct ph_dataset *dataset = NULL;
        struct arrow_pair batch = arrow_batch(2, 0);
        arrow_add_child(&batch, ARROW_COLUMN("label", "i", 2, 0, NULL, labels));
        arrow_add_child(&batch, ARROW_COLUMN("item", "u", 2, 0, NULL, ends, texts[i]));
        assert_ok(ph_dataset_create(&dataset));
        assert_ok(ph_dataset_append_arrow(dataset, &batch.array, &batch.schema));
        fixture_init(&fixture, NULL);
        fixture.settings.format = PH_DATA_ARROW;
        fixture_label_and_ids(&fixture);
        assert_fails(ph_encoder_create_from_dataset(&fixture.settings, dataset, &encoder), PH_ERROR_DATA,
            "batch 0, row 1: field 'item': the id holds a line feed or a NUL");
        ph_dataset_destroy(dataset);
    }
}

/* What separates items in text is a byte like others where they come one by one. */
static void items_of_a_weighted_list_are_not_cut(void **state)
{
    (void)state;
    static const int32_t labels[] = {0, 1}, starts[] = {0, 2, 4}, ends[] = {0, 5, 6, 6, 9};
    struct fixture fixture;
    struct ph_dataset *dataset = NULL;
    struct ph_encoder *encoder = NULL;
    struct ph_batches *batches = NULL;
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 2};
    struct arrow_pair batch = arrow_batch(2, 0);
    arrow_add_child(&batch, ARROW_COLUMN("label", "i", 2, 0, NULL, labels));
    arrow_add_child(&batch, arrow_with_child(ARROW_COLUMN("item", "+l", 2, 0, NULL, starts),
                                ARROW_COLUMN("", "u", 4, 0, NULL, ends, "a|b:2cd:3")));
    assert_ok(ph_dataset_create(&dataset));
    assert_ok(ph_dataset_append_arrow(dataset, &batch.array, &batch.schema));
    fixture_init(&fixture, NULL);
    fixture.settings.format = PH_DATA_ARROW;
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    struct ph__field_settings *item = fixture_field(&fixture, "item", PH_FIELD_ID);
    item->is_list = item->is_weighted = true;
    assert_ok(ph_encoder_create_from_dataset(&fixture.settings, dataset, &encoder));
    assert_int_equal(encoder->columns[1].vocabulary.num_words, 3); /* a|b, c and d */
    assert_ok(ph_dataset_batches_open(dataset, encoder, &options, &batches));
    const struct ph_batch *read = fixture_next(batches);
    const float weights[] = {2, 1, 3};
    assert_int_equal(read->lengths[0], 2);
    assert_int_equal(read->lengths[1], 1);
    assert_memory_equal(read->id_weights, weights, sizeof weights);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(dataset);
}

static void rows_that_are_bad_are_named_by_their_place(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_dataset *dataset = NULL;
    struct ph_batches *batches = NULL;
    const struct ph_batch *batch;
    const struct ph_batches_options options = {.size = sizeof options, .batch_size = 4};
    assert_ok(ph_dataset_create(&dataset));
    for (int i = 0; i < 2; i++) {
        struct arrow_pair pair = small_batch();
        assert_ok(ph_dataset_append_arrow(dataset, &pair.array, &pair.schema));
    }
    fixture_init(&fixture, NULL);
    fixture.settings.format = PH_DATA_ARROW;
    fixture.settings.encoding = PH_ENCODING_RAW;
    fixture.settings.rows = 8;
    fixture_label_and_ids(&fixture);
    struct ph_encoder *encoder = NULL;
    assert_ok(ph_encoder_create_from_dataset(&fixture.settings, dataset, &encoder));
    assert_ok(ph_dataset_batches_open(dataset, encoder, &options, &batches));
    assert_fails(ph_batches_next(batches, &batch), PH_ERROR_DATA,
        "dataset: batch 0, row 1: field 'item': '8' is beyond the rows of the table");
    ph_batches_close(batches);
    assert_fails(ph_batches_open(encoder, "train.arrow", &options, &batches), PH_ERROR_USAGE,
        "cannot be read from a file");
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(dataset);
}

static void an_empty_dataset_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    struct ph_dataset *dataset = NULL;
    struct ph_encoder *encoder = NULL;
    fixture_init(&fixture, NULL);
    fixture_label_and_ids(&fixture);
    assert_ok(ph_dataset_create(&dataset));
    assert_fails(
        ph_encoder_create_from_dataset(&fixture.settings, dataset, &encoder), PH_ERROR_DATA, "has no batch");
    struct arrow_pair batch = arrow_batch(0, 0);
    arrow_add_child(&batch, ARROW_COLUMN("label", "i", 0, 0, NULL, NULL));
    arrow_add_child(&batch, ARROW_COLUMN("item", "i", 0, 0, NULL, NULL));
    assert_ok(ph_dataset_append_arrow(dataset, &batch.array, &batch.schema));
    assert_fails(
        ph_encoder_create_from_dataset(&fixture.settings, dataset, &encoder), PH_ERROR_DATA, "has no rows");
    ph_dataset_destroy(dataset);
    assert_arrow_is_released();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_is_taken_over_and_released_once),
        cmocka_unit_test(a_refused_batch_stays_the_callers),
        cmocka_unit_test(only_a_struct_is_a_batch),
        cmocka_unit_test(a_dataset_and_text_give_the_same_batches),
        cmocka_unit_test(a_dataset_and_text_teach_the_same),
        cmocka_unit_test(a_pass_goes_on_where_it_was_left),
        cmocka_unit_test(a_wanted_column_of_an_unread_type_is_named),
        cmocka_unit_test(a_wanted_column_must_be_there_once),
        cmocka_unit_test(ids_that_no_vocabulary_keeps_are_refused),
        cmocka_unit_test(items_of_a_weighted_list_are_not_cut),
        cmocka_unit_test(rows_that_are_bad_are_named_by_their_place),
        cmocka_unit_test(an_empty_dataset_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
