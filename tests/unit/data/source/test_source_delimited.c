/* Cells by their position: what is a cell, and which rows have labels. */
#include "data/source/source_delimited.h"

#include "unit/data/data_fixture.h"

static void files_without_a_header_go_by_position(void **state)
{
    (void)state;
    struct fixture fixture;
    const char *path = fixture_file("bare.tsv", "1\tx\t3\n0\ty\t4\n");
    fixture_init(&fixture, path);
    fixture.settings.format = PH_DATA_TSV;
    fixture.settings.has_header = false;
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "a", PH_FIELD_ID);
    fixture_field(&fixture, "d", PH_FIELD_DENSE);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    struct ph_batches *batches = fixture_open(encoder, path,
        &(struct ph_batches_options){.size = sizeof(struct ph_batches_options), .batch_size = 4});
    const struct ph_batch *batch = fixture_next(batches);
    assert_true(batch->labels[0] == 1 && batch->ids[1] == 2 && batch->dense[1] == 4);
    ph_batches_close(batches);
    const struct ph_batches_options options = {
        .size = sizeof options, .batch_size = 4, .needs_no_labels = true};
    batches = fixture_open(encoder, fixture_file("unlabelled.tsv", "y\t5\n"), &options);
    batch = fixture_next(batches);
    assert_true(batch->labels[0] == 0 && batch->ids[0] == 2 && batch->dense[0] == 5);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

/* A separator in quotes ends no cell: the first row has labels or none by its cells. */
static void quoted_separators_do_not_count_as_cells(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "\"x,1\",b\n", "\"x,1\",\"b\"\n", "\"x,1\",\"\"\n", "\"\"\"x\"\",\",b\n"};
    struct fixture fixture;
    fixture_init(&fixture, fixture_file("quoted.csv", "1,\"x,1\",b\n"));
    fixture.settings.has_header = false;
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "a", PH_FIELD_ID);
    fixture_field(&fixture, "b", PH_FIELD_ID);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    const struct ph_batches_options options = {
        .size = sizeof options, .batch_size = 4, .needs_no_labels = true};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ph_batches *batches = fixture_open(encoder, fixture_file("bare.csv", rows[i]), &options);
        const struct ph_batch *batch = fixture_next(batches);
        assert_int_equal(batch->ids[0], i < 3);
        assert_int_equal(batch->ids[1], i != 2);
        ph_batches_close(batches);
    }
    struct ph_batches *batches = fixture_open(encoder, fixture_file("bare.csv", "0,\"x,1\",b\n"), &options);
    assert_int_equal(fixture_next(batches)->ids[0], 1);
    ph_batches_close(batches);
    ph_encoder_destroy(encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_without_a_header_go_by_position),
        cmocka_unit_test(quoted_separators_do_not_count_as_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
