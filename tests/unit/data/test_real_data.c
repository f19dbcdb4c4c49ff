/* The reader on real files, where they are: Frappe and the head of Criteo's training set. */
#include <stdlib.h>

#include "unit/data/data_fixture.h"

static void assert_rows(
    const struct ph_encoder *encoder, const char *path, size_t num_rows, size_t num_positives)
{
    const struct ph_batches_options options = {
        .size = sizeof options, .batch_size = 4096, .reading.num_prefetched = 2, .reading.is_shuffled = true};
    struct ph_batches *batches = fixture_open(encoder, path, &options);
    size_t rows = 0, positives = 0;
    for (const struct ph_batch *batch; (batch = fixture_next(batches)) != NULL;) {
        for (size_t b = 0; b < batch->num_samples; b++)
            positives += batch->labels[b] == 1;
        for (size_t f = 0; f < batch->num_sparse; f++)
            for (size_t b = 0; b < batch->num_samples; b++)
                assert_in_range(
                    batch->ids[f * batch->num_samples + b], 0, ph_encoder_sparse(encoder, f)->num_rows - 1);
        rows += batch->num_samples;
    }
    assert_int_equal(rows, num_rows);
    assert_int_equal(positives, num_positives);
    ph_batches_close(batches);
}

static void frappe_has_the_published_rows_and_ids(void **state)
{
    (void)state;
    const char *train = test_data("frappe/train.csv.zst");
    if (train == NULL)
        test_skip("no Frappe under $PHLOEM_DATA");
    struct fixture fixture;
    fixture_init(&fixture, train);
    fixture_label_and_ids(&fixture);
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_int_equal(ph_encoder_num_training_rows(encoder), 202027);
    assert_int_equal(ph_encoder_num_sparse(encoder), 10);
    assert_string_equal(ph_encoder_sparse(encoder, 0)->name, "user");
    assert_string_equal(ph_encoder_sparse(encoder, 9)->name, "city");
    size_t num_ids = 0;
    for (size_t f = 0; f < 10; f++)
        num_ids += ph_encoder_sparse(encoder, f)->num_rows - 1;
    assert_in_range(num_ids, 5300, 5382); /* of all three files 5,382 */
    const char *test = test_data("frappe/test.csv.zst");
    assert_non_null(test);
    assert_rows(encoder, test, 28860, 9536);
    free((void *)(uintptr_t)train);
    free((void *)(uintptr_t)test);
    ph_encoder_destroy(encoder);
}

static void criteo_lines_are_all_read(void **state)
{
    (void)state;
    const char *path = test_data("criteo/first10k.tsv.zst");
    if (path == NULL)
        test_skip("no Criteo lines under $PHLOEM_DATA");
    struct fixture fixture;
    fixture_init(&fixture, path);
    fixture.settings.format = PH_DATA_CRITEO;
    struct ph_encoder *encoder = fixture_encoder(&fixture);
    assert_int_equal(ph_encoder_num_dense(encoder), 13);
    assert_int_equal(ph_encoder_num_sparse(encoder), 26);
    assert_rows(encoder, path, 10000, 2182);
    ph_encoder_destroy(encoder);
    free((void *)(uintptr_t)path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frappe_has_the_published_rows_and_ids),
        cmocka_unit_test(criteo_lines_are_all_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
