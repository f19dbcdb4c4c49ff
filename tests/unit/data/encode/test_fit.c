/* Learning in parts and merging them is learning in one pass, bit for bit; sums against sums that are known
 * exactly: in whole numbers of 128 bits, in scaled units, and by cancelling. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "data/encode/fit.h"
#include "data/encode/row_encoder.h"
#include "data/learn/learn.h"
#include "support/test_support.h"
#include "unit/data/data_fixture.h"

/* ---- exact sums ---- */

__extension__ typedef __int128 wide;

/* A float that is a multiple of 2^-13 below 2^10, so that its square is one of 2^-26 below 2^20. */
static float draw(struct ph__rng_sequence *random)
{
    int64_t units = (int64_t)(ph__rng_next(random) & 0xffffff) - 0x800000;
    return ldexpf((float)units, -13);
}

static void sums_are_exact(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key.seed = test_seed()};
    struct ph__exact_sum sum = {.num_additions = 0}, squares = {.num_additions = 0};
    wide units = 0, square_units = 0;
    for (int i = 0; i < 200000; i++) {
        float number = draw(&random);
        int64_t unit = (int64_t)ldexpf(number, 13);
        units += unit;
        square_units += (wide)unit * unit;
        ph__exact_sum_add(&sum, number);
        ph__exact_sum_add_square(&squares, number);
    }
    assert_true(ph__exact_sum_value(&sum) == ldexpl((long double)(int64_t)units, -13));
    assert_true(square_units < (wide)INT64_MAX); /* so that the cast below is exact */
    assert_true(ph__exact_sum_value(&squares) == ldexpl((long double)(int64_t)square_units, -26));
}

static void what_would_be_rounded_away_is_kept(void **state)
{
    (void)state;
    struct ph__exact_sum sum = {.num_additions = 0};
    ph__exact_sum_add(&sum, FLT_MAX);
    ph__exact_sum_add(&sum, ldexpf(1, -149));
    ph__exact_sum_add(&sum, 1);
    ph__exact_sum_add(&sum, -FLT_MAX);
    ph__exact_sum_add(&sum, -1);
    assert_true(ph__exact_sum_value(&sum) == ldexpl(1, -149));
    ph__exact_sum_add(&sum, -ldexpf(1, -149));
    assert_true(ph__exact_sum_value(&sum) == 0);
}

static void the_least_and_the_largest_square_fit(void **state)
{
    (void)state;
    struct ph__exact_sum sum = {.num_additions = 0};
    ph__exact_sum_add_square(&sum, ldexpf(1, -149));
    assert_true(ph__exact_sum_value(&sum) == ldexpl(1, -298));
    for (int i = 0; i < 3; i++)
        ph__exact_sum_add_square(&sum, -FLT_MAX);
    long double largest = (long double)FLT_MAX;
    assert_true(fabsl(ph__exact_sum_value(&sum) / (3 * largest * largest) - 1) < 4 * LDBL_EPSILON);
}

static void only_what_can_be_a_sum_is_sound(void **state)
{
    (void)state;
    struct ph__exact_sum sum = {.num_additions = 0}, squares = sum;
    for (int i = 0; i < 1000; i++) {
        assert_true(ph__exact_sum_is_sound(&sum) && ph__exact_sum_is_sound(&squares));
        ph__exact_sum_add(&sum, -FLT_MAX);
        ph__exact_sum_add_square(&squares, -FLT_MAX);
    }
    ph__exact_sum_merge(&sum, &squares);
    assert_true(ph__exact_sum_is_sound(&sum));
    const struct ph__exact_sum sound = sum;
    for (size_t i = 0; i < PH_EXACT_SUM_DIGITS; i++) {
        sum.digits[i] = INT64_MAX;
        assert_false(ph__exact_sum_is_sound(&sum));
        sum.digits[i] = INT64_MIN;
        assert_false(ph__exact_sum_is_sound(&sum));
        sum = sound;
    }
    sum.num_additions = UINT32_MAX;
    assert_false(ph__exact_sum_is_sound(&sum));
}

static void zeros_of_both_signs_add_nothing(void **state)
{
    (void)state;
    struct ph__exact_sum sum = {.num_additions = 0};
    ph__exact_sum_add(&sum, 0.0f);
    ph__exact_sum_add(&sum, -0.0f);
    ph__exact_sum_add_square(&sum, 0.0f);
    assert_true(ph__exact_sum_value(&sum) == 0);
}

/* Random floats of all magnitudes, in one sum, in another order, and in parts that are merged. */
static void neither_order_nor_grouping_matters(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key.seed = test_seed(), .key.step = 1};
    static float numbers[5000];
    struct ph__exact_sum forward = {.num_additions = 0}, backward = forward, merged = forward;
    for (size_t i = 0; i < 5000; i++) {
        int exponent = (int)(ph__rng_next(&random) % 250) - 125;
        numbers[i] = ldexpf(draw(&random), exponent - 11);
        ph__exact_sum_add(&forward, numbers[i]);
        ph__exact_sum_add_square(&forward, numbers[i]);
    }
    for (size_t i = 5000; i-- > 0;) {
        ph__exact_sum_add(&backward, numbers[i]);
        ph__exact_sum_add_square(&backward, numbers[i]);
    }
    for (size_t part = 0; part < 5000; part += 1000) {
        struct ph__exact_sum sum = {.num_additions = 0};
        for (size_t i = part; i < part + 1000; i++) {
            ph__exact_sum_add(&sum, numbers[i]);
            ph__exact_sum_add_square(&sum, numbers[i]);
        }
        ph__exact_sum_merge(&merged, &sum);
    }
    assert_true(ph__exact_sum_value(&forward) == ph__exact_sum_value(&backward));
    assert_true(ph__exact_sum_value(&forward) == ph__exact_sum_value(&merged));
}

/* ---- fits ---- */

#define NUM_ROWS 3000

/* A schema that wants everything a fit can give. */
static struct ph_encoder *unlearnt(void)
{
    struct fixture fixture;
    struct ph_encoder *encoder = NULL;
    fixture_init(&fixture, fixture_file("columns.csv", "label,item,tags,price\n"));
    fixture.settings.min_count = 2;
    fixture_field(&fixture, "label", PH_FIELD_LABEL);
    fixture_field(&fixture, "item", PH_FIELD_ID);
    fixture_field(&fixture, "tags", PH_FIELD_ID)->is_list = true;
    fixture_field(&fixture, "price", PH_FIELD_DENSE)->transform = PH_TRANSFORM_STANDARDISE;
    struct ph__field_settings *bucket = fixture_field(&fixture, "bucket", PH_FIELD_ID);
    bucket->from = "price";
    bucket->encoding = PH_ENCODING_BUCKET;
    bucket->num_buckets = 8;
    assert_ok(ph__encoder_outline(&fixture.settings, &encoder));
    return encoder;
}

static ph_status encode_text(
    struct ph__row_encoder *row, const struct ph_encoder *encoder, const char *name, const char *text)
{
    return ph__row_text(row, fixture_column(encoder, name), text, strlen(text));
}

static double price_of(int i)
{
    return ldexp((double)((i * 7919) % 1009 - 300), i % 40 - 20);
}

/* Rows [first, end), given to the fit. */
static void gather(struct ph__fit *fit, const struct ph_encoder *encoder, int first, int end)
{
    struct ph__row_encoder row;
    struct ph__rows rows = {.num_rows = 0};
    ph__row_encoder_init(&row, encoder, fit);
    for (int i = first; i < end; i++) {
        char item[32], tags[64], price[40];
        snprintf(item, sizeof item, "item%d", i * i % 700);
        snprintf(tags, sizeof tags, "t%d|t%d", i % 50, i % 33);
        snprintf(price, sizeof price, "%.17g", price_of(i));
        fit->row_key = (uint64_t)i;
        assert_ok(ph__row_begin(&row, &rows));
        assert_ok(encode_text(&row, encoder, "item", item));
        assert_ok(encode_text(&row, encoder, "tags", tags));
        assert_ok(encode_text(&row, encoder, "price", i % 11 == 0 ? "" : price));
        assert_ok(encode_text(&row, encoder, "bucket", i % 11 == 0 ? "" : price));
        assert_ok(ph__row_commit(&row));
    }
    ph__row_encoder_fini(&row);
    ph__rows_fini(&rows);
}

/* Adds what a gatherer of the rows that follow has gathered. */
static void merge(struct ph__fit *fit, const struct ph__fit *later)
{
    for (size_t i = 0; i < fit->encoder->num_columns; i++) {
        const struct ph__vocabulary *words = &later->columns[i].vocabulary;
        assert_ok(ph__fit_column_merge(&fit->columns[i], &later->columns[i]));
        for (size_t w = 0; w < words->num_words; w++) {
            size_t length;
            const char *word = ph__vocabulary_word(words, w, &length);
            assert_ok(ph__vocabulary_count(&fit->columns[i].vocabulary, word, length, words->counts[w],
                ph__vocabulary_hash(word, length), NULL));
        }
    }
    fit->num_rows += later->num_rows;
}

/* The seal of what was learnt from the rows cut at these places. */
static void learn_in_parts(const int *cuts, size_t num_parts, char digest[65])
{
    struct ph_encoder *encoder = unlearnt();
    struct ph__fit whole;
    assert_ok(ph__fit_init(&whole, encoder));
    for (size_t i = 0; i < num_parts; i++) {
        struct ph__fit part;
        assert_ok(ph__fit_init(&part, encoder));
        gather(&part, encoder, cuts[i], cuts[i + 1]);
        merge(&whole, &part);
        ph__fit_fini(&part);
    }
    assert_int_equal(whole.num_rows, NUM_ROWS);
    assert_ok(ph__fit_finish(&whole, encoder));
    assert_ok(ph__encoder_seal(encoder, "test", PH_ERROR_BUG));
    assert_ok(ph__encoder_digest(encoder, digest));
    ph_encoder_destroy(encoder);
}

static void parts_that_are_merged_are_one_pass(void **state)
{
    (void)state;
    char whole[65], parts[65];
    learn_in_parts((const int[]){0, NUM_ROWS}, 1, whole);
    learn_in_parts((const int[]){0, 1, 1, 700, 2999, NUM_ROWS}, 5, parts);
    assert_string_equal(parts, whole);
    learn_in_parts((const int[]){0, 1000, 2000, NUM_ROWS}, 3, parts);
    assert_string_equal(parts, whole);
}

/* Against the sums in long double, and against counting. */
static void statistics_are_those_of_the_values(void **state)
{
    (void)state;
    struct ph_encoder *encoder = unlearnt();
    struct ph__fit fit;
    assert_ok(ph__fit_init(&fit, encoder));
    gather(&fit, encoder, 0, NUM_ROWS);
    assert_ok(ph__fit_finish(&fit, encoder));
    const struct ph__statistics *statistics = &fixture_column(encoder, "price")->statistics;
    long double sum = 0, squares = 0;
    size_t num_values = 0;
    for (int i = 0; i < NUM_ROWS; i++) {
        long double value = (long double)(float)price_of(i);
        if (i % 11 == 0)
            continue;
        num_values++;
        sum += value;
        squares += value * value;
    }
    long double mean = sum / (long double)num_values;
    assert_int_equal(statistics->num_values, num_values);
    assert_int_equal(statistics->num_blanks, NUM_ROWS - num_values);
    assert_near(statistics->mean, (double)mean, 0, 1e-12);
    assert_near(
        statistics->deviation, (double)sqrtl(squares / (long double)num_values - mean * mean), 0, 1e-10);
    ph_encoder_destroy(encoder);
}

static void rare_ids_are_left_out_and_the_others_keep_their_order(void **state)
{
    (void)state;
    struct ph_encoder *encoder = unlearnt();
    struct ph__fit fit;
    assert_ok(ph__fit_init(&fit, encoder));
    gather(&fit, encoder, 0, NUM_ROWS);
    assert_ok(ph__fit_finish(&fit, encoder));
    const struct ph__vocabulary *vocabulary = &fixture_column(encoder, "item")->vocabulary;
    int counts[700] = {0};
    for (int i = 0; i < NUM_ROWS; i++)
        counts[i * i % 700]++;
    size_t next = 0;
    for (int i = 0; i < NUM_ROWS; i++) {
        int item = i * i % 700;
        char wanted[32];
        size_t length;
        if (counts[item] < 2)
            continue;
        counts[item] = 0; /* seen: the first appearance counts */
        snprintf(wanted, sizeof wanted, "item%d", item);
        const char *word = ph__vocabulary_word(vocabulary, next++, &length);
        assert_int_equal(length, strlen(wanted));
        assert_memory_equal(word, wanted, length);
    }
    assert_int_equal(vocabulary->num_words, next);
    ph_encoder_destroy(encoder);
}

/* Each bucket of quantiles has about its share of the values: the sample holds all of them here. */
static void quantiles_share_the_values_out(void **state)
{
    (void)state;
    struct ph_encoder *encoder = unlearnt();
    struct ph__fit fit;
    assert_ok(ph__fit_init(&fit, encoder));
    gather(&fit, encoder, 0, NUM_ROWS);
    assert_ok(ph__fit_finish(&fit, encoder));
    const struct ph__column *column = fixture_column(encoder, "bucket");
    size_t shares[8] = {0}, num_values = 0;
    assert_int_equal(column->num_boundaries, 7);
    for (int i = 0; i < NUM_ROWS; i++) {
        size_t bucket = 0;
        if (i % 11 == 0)
            continue;
        while (bucket < 7 && column->boundaries[bucket] <= price_of(i))
            bucket++;
        shares[bucket]++;
        num_values++;
    }
    for (size_t i = 0; i < 8; i++)
        assert_near((double)shares[i], (double)num_values / 8, 3, 0);
    ph_encoder_destroy(encoder);
}

/* A row that was begun and not committed has taught nothing. */
static void a_bad_row_teaches_nothing(void **state)
{
    (void)state;
    struct ph_encoder *encoder = unlearnt();
    struct ph__fit fit;
    struct ph__row_encoder row;
    struct ph__rows rows = {.num_rows = 0};
    assert_ok(ph__fit_init(&fit, encoder));
    ph__row_encoder_init(&row, encoder, &fit);
    for (int i = 0; i < 2; i++) {
        assert_ok(ph__row_begin(&row, &rows));
        assert_ok(encode_text(&row, encoder, "item", "bad"));
        assert_ok(encode_text(&row, encoder, "price", "1e9"));
        assert_fails(encode_text(&row, encoder, "label", "2"), PH_ERROR_DATA, "is not a label");
    }
    for (int i = 0; i < 2; i++) {
        assert_ok(ph__row_begin(&row, &rows));
        assert_ok(encode_text(&row, encoder, "item", "good"));
        assert_ok(encode_text(&row, encoder, "price", i == 0 ? "1" : "3"));
        assert_ok(ph__row_commit(&row));
    }
    ph__row_encoder_fini(&row);
    ph__rows_fini(&rows);
    assert_ok(ph__fit_finish(&fit, encoder));
    assert_int_equal(encoder->num_training_rows, 2);
    assert_int_equal(fixture_column(encoder, "item")->vocabulary.num_words, 1);
    assert_true(fixture_column(encoder, "price")->statistics.mean == 2);
    assert_true(fixture_column(encoder, "price")->statistics.deviation == 1);
    ph_encoder_destroy(encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact),
        cmocka_unit_test(what_would_be_rounded_away_is_kept),
        cmocka_unit_test(the_least_and_the_largest_square_fit),
        cmocka_unit_test(only_what_can_be_a_sum_is_sound),
        cmocka_unit_test(zeros_of_both_signs_add_nothing),
        cmocka_unit_test(neither_order_nor_grouping_matters),
        cmocka_unit_test(parts_that_are_merged_are_one_pass),
        cmocka_unit_test(statistics_are_those_of_the_values),
        cmocka_unit_test(rare_ids_are_left_out_and_the_others_keep_their_order),
        cmocka_unit_test(quantiles_share_the_values_out),
        cmocka_unit_test(a_bad_row_teaches_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
