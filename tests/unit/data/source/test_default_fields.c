/* Fields that a dataset's types suggest: what they are, and that a config takes them. */
#include "unit/data/arrow_rows_fixture.h"

/* A record batch of one row of zeros. */
static struct arrow_pair typed_batch(void)
{
    static const unsigned char zeros[64];
    static const char *const plain[][2] = {{"click", "b"}, {"price", "g"}, {"user", "L"}, {"cost", "d:9,2"},
        {"day", "tdD"}, {"when", "tsu:UTC"}, {"span", "tDs"}, {"none", "n"}, {"a \"b\": #", "s"}};
    static const char *const text[][2] = {{"city", "u"}, {"code", "Z"}};
    struct arrow_pair batch = arrow_batch(1, 0);
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        arrow_add_child(&batch, ARROW_COLUMN(plain[i][0], plain[i][1], 1, 0, NULL, zeros));
    for (size_t i = 0; i < 2; i++)
        arrow_add_child(&batch, ARROW_COLUMN(text[i][0], text[i][1], 1, 0, NULL, zeros, zeros));
    arrow_add_child(&batch, ARROW_COLUMN("view", "vu", 1, 0, NULL, zeros, NULL));
    arrow_add_child(&batch, arrow_with_dictionary(ARROW_COLUMN("kind", "c", 1, 0, NULL, zeros),
                                ARROW_COLUMN("", "u", 1, 0, NULL, zeros, zeros)));
    arrow_add_child(&batch, arrow_with_dictionary(ARROW_COLUMN("level", "c", 1, 0, NULL, zeros),
                                ARROW_COLUMN("", "f", 1, 0, NULL, zeros)));
    arrow_add_child(&batch, arrow_with_child(ARROW_COLUMN("tags", "+l", 1, 0, NULL, zeros),
                                ARROW_COLUMN("item", "i", 1, 0, NULL, zeros)));
    arrow_add_child(&batch, arrow_with_child(ARROW_COLUMN("vector", "+w:1", 1, 0, NULL),
                                ARROW_COLUMN("item", "f", 1, 0, NULL, zeros)));
    return batch;
}

static struct ph_dataset *take(struct arrow_pair batch)
{
    struct ph_dataset *dataset = NULL;
    assert_ok(ph_dataset_create(&dataset));
    assert_ok(ph_dataset_append_arrow(dataset, &batch.array, &batch.schema));
    return dataset;
}

static void each_type_has_its_field(void **state)
{
    (void)state;
    const char *label = "click";
    char *yaml = NULL;
    struct ph_dataset *dataset = take(typed_batch());
    assert_ok(ph_dataset_default_fields(dataset, &label, 1, &yaml));
    assert_string_equal(yaml, "[\n"
                              "  {name: \"click\", kind: label},\n"
                              "  {name: \"price\", kind: dense},\n"
                              "  {name: \"user\", kind: id},\n"
                              "  {name: \"cost\", kind: dense},\n"
                              "  {name: \"day.weekday\", from: \"day\", kind: id, part: weekday},\n"
                              "  {name: \"when.hour\", from: \"when\", kind: id, part: hour},\n"
                              "  {name: \"when.weekday\", from: \"when\", kind: id, part: weekday},\n"
                              "  {name: \"span\", kind: ignore}, # Arrow format \"tDs\"\n"
                              "  {name: \"none\", kind: ignore}, # Arrow format \"n\"\n"
                              "  {name: \"a \\\"b\\\": #\", kind: id},\n"
                              "  {name: \"city\", kind: id},\n"
                              "  {name: \"code\", kind: id},\n"
                              "  {name: \"view\", kind: id},\n"
                              "  {name: \"kind\", kind: id},\n"
                              "  {name: \"level\", kind: dense},\n"
                              "  {name: \"tags\", kind: id, list: true},\n"
                              "  {name: \"vector\", kind: ignore}, # Arrow format \"+w:1<f>\"\n"
                              "]\n");
    ph_text_free(yaml);
    ph_dataset_destroy(dataset);
    assert_arrow_is_released();
}

static struct arrow_pair stream_batch(const struct arrow_streams *streams, int number)
{
    return slice(streams->context, number * BATCH_ROWS, BATCH_ROWS);
}

/* Of a stream: the fields encode all of its rows. */
static void a_config_takes_the_fields(void **state)
{
    (void)state;
    static struct rows rows;
    const char *label = "click";
    char *yaml = NULL, *config = NULL;
    struct ph__arena arena = {0};
    struct ph_data_settings settings;
    struct ph__section section = {&ph__data_options, &settings};
    struct ph_encoder *encoder = NULL;
    write_rows(&rows);
    struct arrow_streams streams = {.make = stream_batch, .context = &rows, .num_batches = 3};
    struct ph_dataset *dataset = arrow_streams_dataset(&streams, NULL);
    assert_ok(ph_dataset_default_fields(dataset, &label, 1, &yaml));
    assert_true(asprintf(&config, "data:\n  format: arrow\n  fields: %s", yaml) > 0);
    assert_ok(ph__config_read(test_write_file("fields.yaml", config), NULL, 0, &section, 1, &arena));
    assert_ok(ph_encoder_create_from_dataset(&settings, dataset, &encoder));
    assert_int_equal(ph_encoder_num_tasks(encoder), 1);
    assert_int_equal(ph_encoder_num_dense(encoder), 1);
    assert_int_equal(ph_encoder_num_sparse(encoder), 4); /* kind, user, city, tags */
    ph_encoder_destroy(encoder);
    ph_dataset_destroy(dataset);
    ph_text_free(yaml);
    free(config);
    ph__arena_fini(&arena);
    assert_arrow_is_released();
}

static void expect_refusal(struct arrow_pair batch, const char *label, const char *text)
{
    char *yaml = NULL;
    struct ph_dataset *dataset = take(batch);
    assert_fails(ph_dataset_default_fields(dataset, &label, 1, &yaml), PH_ERROR_DATA, text);
    assert_null(yaml);
    ph_dataset_destroy(dataset);
    assert_arrow_is_released();
}

static void labels_must_be_columns_of_numbers(void **state)
{
    (void)state;
    expect_refusal(typed_batch(), "clicks", "dataset: label 'clicks' is not a column");
    expect_refusal(
        typed_batch(), "city", "dataset: label 'city' (format 'u') is neither a number nor a bool");
    expect_refusal(typed_batch(), "kind", "label 'kind' (format 'c') is neither");
}

static void columns_must_have_names_of_their_own(void **state)
{
    (void)state;
    static const unsigned char zeros[64];
    struct arrow_pair batch = typed_batch();
    arrow_add_child(&batch, ARROW_COLUMN("city", "i", 1, 0, NULL, zeros));
    expect_refusal(batch, "click", "dataset: two columns are called 'city'");
    batch = typed_batch();
    arrow_add_child(&batch, ARROW_COLUMN("", "i", 1, 0, NULL, zeros));
    expect_refusal(batch, "click", "dataset: column 16 (from 0) has no name");
    struct ph_dataset *dataset = NULL;
    char *yaml = NULL;
    assert_ok(ph_dataset_create(&dataset));
    assert_fails(ph_dataset_default_fields(dataset, NULL, 0, &yaml), PH_ERROR_DATA, "has no batches");
    ph_dataset_destroy(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type_has_its_field),
        cmocka_unit_test(a_config_takes_the_fields),
        cmocka_unit_test(labels_must_be_columns_of_numbers),
        cmocka_unit_test(columns_must_have_names_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
