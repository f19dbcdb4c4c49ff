/* Which rows take part in a pass when negatives are sampled. */
#include "data/batch/window.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit/data/data_fixture.h"

#define NUM_ROWS 4000

/* A third of the rows is positive. */
static bool is_positive(int row)
{
    return row % 3 == 0;
}

static const char *numbered_rows(void)
{
    char *text = malloc(NUM_ROWS * 12 + 20);
    char *at = text + sprintf(text, "label,d\n");
    for (int i = 0; i < NUM_ROWS; i++)
        at += sprintf(at, "%d,%d\n", is_positive(i), i);
    const char *path = fixture_file("numbered.csv", text);
    free(text);
    return path;
}

static struct ph_encoder *numbered_encoder(void)
{
    struct fixture fixture;
    fixture_init(&fixture, NULL);
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "d", PH_FIELD_DENSE);
    return fixture_encoder(&fixture);
}

/* Rows taken so far in the order of the samples. */
struct taken {
    size_t count;
    int rows[NUM_ROWS];
};

static void take_batch(struct taken *taken, const struct ph_batch *batch)
{
    for (size_t i = 0; i < batch->num_samples; i++) {
        assert_true(taken->count < NUM_ROWS);
        taken->rows[taken->count++] = (int)batch->dense[i];
    }
}

static struct taken *take_all(
    const struct ph_encoder *encoder, const char *path, const struct ph_batches_options *options)
{
    struct taken *taken = calloc(1, sizeof *taken);
    struct ph_batches *batches = fixture_open(encoder, path, options);
    for (const struct ph_batch *batch; (batch = fixture_next(batches)) != NULL;)
        take_batch(taken, batch);
    ph_batches_close(batches);
    return taken;
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void all_positives_and_the_share_of_negatives_are_kept(void **state)
{
    (void)state;
    const char *path = numbered_rows();
    struct ph_encoder *encoder = numbered_encoder();
    static const double rates[] = {0, 0.05, 0.1, 0.5, 0.9, 1};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        const struct ph_batches_options options = {.size = sizeof options,
            .batch_size = 100,
            .seed = test_seed(),
            .epoch = r,
            .reading.negative_rate = rates[r]};
        struct taken *taken = take_all(encoder, path, &options);
        double positives = 0, negatives = 0;
        for (size_t i = 0; i < taken->count; i++)
            *(is_positive(taken->rows[i]) ? &positives : &negatives) += 1;
        double rate = rates[r] == 0 ? 1 : rates[r], all = NUM_ROWS - (NUM_ROWS + 2) / 3;
        assert_true(positives == (NUM_ROWS + 2) / 3);
        assert_near(negatives, rate * all, 5 * sqrt(rate * (1 - rate) * all), 0);
        free(taken);
    }
    ph_encoder_destroy(encoder);
}

static void the_same_rows_are_kept_in_any_order_and_batch_size(void **state)
{
    (void)state;
    const char *path = numbered_rows();
    struct ph_encoder *encoder = numbered_encoder();
    const struct ph_batches_options plain = {
        .size = sizeof plain, .batch_size = 1, .seed = 5, .epoch = 2, .reading.negative_rate = 0.2};
    struct taken *expected = take_all(encoder, path, &plain);
    for (size_t i = 1; i < expected->count; i++)
        assert_true(expected->rows[i - 1] < expected->rows[i]);
    for (size_t trial = 0; trial < 8; trial++) {
        struct ph_batches_options options = plain;
        options.reading.is_shuffled = trial % 2 == 1;
        options.reading.shuffle_bytes = trial < 4 ? 0 : 3000;
        options.batch_size = 1 + 77 * trial;
        options.reading.num_prefetched = trial % 3;
        struct taken *taken = take_all(encoder, path, &options);
        assert_int_equal(taken->count, expected->count);
        qsort(taken->rows, taken->count, sizeof *taken->rows, ascending);
        assert_memory_equal(taken->rows, expected->rows, taken->count * sizeof *taken->rows);
        free(taken);
    }
    free(expected);
    ph_encoder_destroy(encoder);
}

/* Of two independent draws, as many negatives are in both as the product of the rates says. */
static void every_epoch_keeps_others(void **state)
{
    (void)state;
    const char *path = numbered_rows();
    struct ph_encoder *encoder = numbered_encoder();
    struct ph_batches_options options = {.size = sizeof options,
        .batch_size = 100,
        .seed = test_seed(),
        .epoch = 1,
        .reading.negative_rate = 0.3};
    struct taken *first = take_all(encoder, path, &options);
    options.epoch = 2;
    struct taken *second = take_all(encoder, path, &options);
    double in_both = 0, negatives = NUM_ROWS - (NUM_ROWS + 2) / 3;
    for (size_t i = 0; i < first->count; i++)
        if (!is_positive(first->rows[i]))
            in_both += bsearch(&first->rows[i], second->rows, second->count, sizeof(int), ascending) != NULL;
    assert_near(in_both, 0.09 * negatives, 5 * sqrt(0.09 * 0.91 * negatives), 0);
    free(first);
    free(second);
    ph_encoder_destroy(encoder);
}

static void a_sampled_pass_goes_on_where_it_was_left(void **state)
{
    (void)state;
    const char *path = numbered_rows();
    struct ph_encoder *encoder = numbered_encoder();
    for (int is_shuffled = 0; is_shuffled < 2; is_shuffled++) {
        struct ph_batches_options options = {.size = sizeof options,
            .batch_size = 50,
            .reading.is_shuffled = is_shuffled,
            .reading.shuffle_bytes = 5000,
            .seed = 3,
            .reading.negative_rate = 0.2};
        struct taken *whole = take_all(encoder, path, &options), *parts = calloc(1, sizeof *parts);
        struct ph_position position = {0};
        for (const struct ph_batch *batch = NULL;;) {
            options.start = &position;
            struct ph_batches *batches = fixture_open(encoder, path, &options);
            if ((batch = fixture_next(batches)) != NULL) {
                take_batch(parts, batch);
                ph_batches_position(batches, &position);
            }
            ph_batches_close(batches);
            if (batch == NULL)
                break;
        }
        assert_int_equal(parts->count, whole->count);
        assert_memory_equal(parts->rows, whole->rows, whole->count * sizeof *whole->rows);
        free(whole);
        free(parts);
    }
    ph_encoder_destroy(encoder);
}

static void a_share_that_is_none_is_refused(void **state)
{
    (void)state;
    const char *path = numbered_rows();
    struct ph_encoder *encoder = numbered_encoder();
    static const double rates[] = {-0.1, 1.1, (double)NAN, (double)INFINITY};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        const struct ph_batches_options options = {
            .size = sizeof options, .batch_size = 1, .reading.negative_rate = rates[r]};
        struct ph_batches *batches = NULL;
        assert_fails(
            ph_batches_open(encoder, path, &options, &batches), PH_ERROR_USAGE, "must be between 0 and 1");
        assert_null(batches);
    }
    ph_encoder_destroy(encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_positives_and_the_share_of_negatives_are_kept),
        cmocka_unit_test(the_same_rows_are_kept_in_any_order_and_batch_size),
        cmocka_unit_test(a_share_that_is_none_is_refused),
        cmocka_unit_test(every_epoch_keeps_others),
        cmocka_unit_test(a_sampled_pass_goes_on_where_it_was_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
