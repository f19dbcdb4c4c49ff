/* Rows met and ids counted, against lists of the ids themselves. */
#include "train/measure/id_coverage.h"

#include <math.h>

#include "support/test_support.h"

enum { NUM_FEATURES = 3, NUM_SAMPLES = 40, MAX_IDS = 3 * NUM_FEATURES * NUM_SAMPLES };

static const struct ph_table_slice slices[NUM_FEATURES] = {{"a", 64}, {"b", 65}, {"c", 1000}};
static const struct ph_model_features features = {.num_sparse = NUM_FEATURES, .sparse = slices};

struct memory {
    uint32_t offsets[NUM_FEATURES * NUM_SAMPLES + 1];
    int64_t ids[MAX_IDS];
};

/* Bags of none to two ids; the last row of each table is among the first batch's. */
static struct ph_batch make_batch(struct memory *memory, uint64_t seed)
{
    size_t num_ids = 0;
    for (size_t bag = 0; bag < NUM_FEATURES * NUM_SAMPLES; bag++) {
        size_t feature = bag / NUM_SAMPLES, length = (bag + seed) % 3;
        for (size_t i = 0; i < length; i++)
            memory->ids[num_ids++] = (int64_t)((bag * 7919 + i * 31 + seed * 101) % slices[feature].num_rows);
        memory->offsets[bag + 1] = (uint32_t)num_ids;
    }
    for (size_t f = 0; f < NUM_FEATURES && seed == 1; f++)
        memory->ids[memory->offsets[f * NUM_SAMPLES + 5]] = (int64_t)slices[f].num_rows - 1;
    return (struct ph_batch){.num_samples = NUM_SAMPLES,
        .num_sparse = NUM_FEATURES,
        .num_ids = num_ids,
        .offsets = memory->offsets,
        .ids = memory->ids};
}

static bool holds(const struct ph_batch *batch, size_t feature, int64_t row)
{
    for (uint32_t i = batch->offsets[feature * NUM_SAMPLES]; i < batch->offsets[(feature + 1) * NUM_SAMPLES];
         i++)
        if (batch->ids[i] == row)
            return true;
    return false;
}

static void rows_met_and_unmet_are_those_of_the_batches(void **state)
{
    (void)state;
    static struct memory memories[3];
    struct ph_batch first = make_batch(&memories[0], 1), second = make_batch(&memories[1], 2),
                    other = make_batch(&memories[2], 77);
    struct ph__id_coverage coverage = {0};
    struct ph__id_counts counts[NUM_FEATURES] = {{0}};
    assert_ok(ph__id_coverage_init(&features, PH_COVERAGE_BYTES, PH_COVERAGE_IDS, &coverage));
    ph__id_coverage_learn(&coverage, &first);
    ph__id_coverage_learn(&coverage, &second);
    ph__id_coverage_count(&coverage, &other, counts);
    for (size_t f = 0; f < NUM_FEATURES; f++) {
        uint64_t rows = 0, unknown = 0, unseen = 0;
        for (int64_t row = 0; row < (int64_t)slices[f].num_rows; row++)
            rows += holds(&first, f, row) || holds(&second, f, row);
        uint32_t begin = other.offsets[f * NUM_SAMPLES], end = other.offsets[(f + 1) * NUM_SAMPLES];
        for (uint32_t i = begin; i < end; i++) {
            unknown += other.ids[i] == 0;
            unseen += !holds(&first, f, other.ids[i]) && !holds(&second, f, other.ids[i]);
        }
        assert_true(coverage.is_known[f] && counts[f].knows_unseen);
        assert_int_equal(coverage.num_seen[f], rows);
        assert_int_equal(counts[f].ids, end - begin);
        assert_int_equal(counts[f].unknown, unknown);
        assert_int_equal(counts[f].unseen, unseen);
        assert_true(rows > 0 && rows <= slices[f].num_rows);
    }
    ph__id_coverage_fini(&coverage);
}

/* One row a batch: the rows met are counted to the last, whichever that is. */
static void the_last_row_is_met_whichever_it_is(void **state)
{
    (void)state;
    static const uint32_t offsets[] = {0, 1, 2, 3};
    for (int64_t last = 0; last < 64; last += 21) {
        struct ph__id_coverage coverage = {0};
        assert_ok(ph__id_coverage_init(&features, PH_COVERAGE_BYTES, PH_COVERAGE_IDS, &coverage));
        for (int64_t row = 0; row < 65; row++) {
            int64_t met = row < 64 ? (row + last + 1) % 64 : 5; /* all, then one again */
            const int64_t ids[] = {met, 7, 7};
            const struct ph_batch batch = {
                .num_samples = 1, .num_sparse = NUM_FEATURES, .num_ids = 3, .offsets = offsets, .ids = ids};
            ph__id_coverage_learn(&coverage, &batch);
            assert_int_equal(coverage.num_seen[0], row < 64 ? row + 1 : 64);
        }
        ph__id_coverage_fini(&coverage);
    }
}

static void nothing_is_learnt_behind_a_whole_pass(void **state)
{
    (void)state;
    static struct memory memory;
    struct ph_batch batch = make_batch(&memory, 1);
    struct ph__id_coverage coverage = {0};
    assert_ok(ph__id_coverage_init(&features, PH_COVERAGE_BYTES, PH_COVERAGE_IDS, &coverage));
    ph__id_coverage_end_pass(&coverage);
    ph__id_coverage_learn(&coverage, &batch);
    assert_int_equal(coverage.num_seen[0], 0);
    ph__id_coverage_fini(&coverage);
}

/* 8 bytes for 64 rows, 16 for 65; what does not fit is not followed, and smaller tables behind it are. */
static void tables_beyond_the_memory_are_not_followed(void **state)
{
    (void)state;
    static struct memory memory;
    struct ph_batch batch = make_batch(&memory, 1);
    struct ph__id_counts counts[NUM_FEATURES] = {{0}};
    struct ph__id_coverage coverage = {0};
    assert_ok(ph__id_coverage_init(&features, 24, PH_COVERAGE_IDS, &coverage));
    ph__id_coverage_learn(&coverage, &batch);
    ph__id_coverage_count(&coverage, &batch, counts);
    assert_true(coverage.is_known[0] && coverage.is_known[1]);
    assert_false(coverage.is_known[2]);
    assert_true(counts[2].ids > 0 && !counts[2].knows_unseen);
    ph__id_coverage_miss(&coverage);
    ph__id_coverage_end_pass(&coverage);
    assert_true(coverage.is_known[0] && !coverage.is_known[2]);
    ph__id_coverage_fini(&coverage);
}

/* Two batches are looked at, a third would be more ids than are: what is marked is no longer all. */
static void rows_are_not_known_once_ids_were_left_out(void **state)
{
    (void)state;
    static struct memory memory;
    struct ph_batch batch = make_batch(&memory, 1);
    struct ph__id_coverage coverage = {0};
    assert_ok(ph__id_coverage_init(&features, PH_COVERAGE_BYTES, 2 * batch.num_ids, &coverage));
    for (int step = 0; step < 2; step++)
        ph__id_coverage_learn(&coverage, &batch);
    assert_true(coverage.is_known[0]);
    ph__id_coverage_learn(&coverage, &batch);
    assert_false(coverage.is_known[0]);
    ph__id_coverage_end_pass(&coverage); /* that was not seen as a whole */
    assert_false(coverage.is_known[0]);
    ph__id_coverage_fini(&coverage);
}

/* "a" and "c" have one slice: what either brings, both have met. */
static void features_that_share_rows_have_met_the_same(void **state)
{
    (void)state;
    static const struct ph_table_slice sparse[] = {{"a", 64}, {"b", 65}, {"c", 64}};
    static const struct ph_table_slice shared[] = {{"a", 64}, {"b", 65}, {"a", 64}};
    const struct ph_model_features some = {.num_sparse = NUM_FEATURES, .sparse = sparse, .slices = shared};
    static const uint32_t offsets[] = {0, 1, 2, 3};
    static const int64_t ids[] = {7, 8, 9}, others[] = {9, 9, 7};
    struct ph_batch batch = {
        .num_samples = 1, .num_sparse = NUM_FEATURES, .num_ids = 3, .offsets = offsets, .ids = ids};
    struct ph__id_coverage coverage = {0};
    struct ph__id_counts counts[NUM_FEATURES] = {{0}};
    assert_ok(ph__id_coverage_init(&some, PH_COVERAGE_BYTES, PH_COVERAGE_IDS, &coverage));
    ph__id_coverage_learn(&coverage, &batch);
    assert_near(ph__id_coverage_share(&coverage, 0), 2.0 / 64, 1e-12, 0);
    assert_near(ph__id_coverage_share(&coverage, 1), 1.0 / 65, 1e-12, 0);
    assert_near(ph__id_coverage_share(&coverage, 2), 2.0 / 64, 1e-12, 0);
    batch.ids = others;
    ph__id_coverage_count(&coverage, &batch, counts);
    assert_int_equal(counts[0].unseen, 0);
    assert_int_equal(counts[1].unseen, 1);
    assert_int_equal(counts[2].unseen, 0);
    ph__id_coverage_miss(&coverage);
    assert_true(isnan(ph__id_coverage_share(&coverage, 2)));
    ph__id_coverage_fini(&coverage);
}

static void a_zeroed_one_counts_nothing(void **state)
{
    (void)state;
    static struct memory memory;
    struct ph_batch batch = make_batch(&memory, 1);
    struct ph__id_coverage coverage = {0};
    ph__id_coverage_learn(&coverage, &batch);
    ph__id_coverage_count(&coverage, &batch, NULL);
    ph__id_coverage_end_pass(&coverage);
    ph__id_coverage_fini(&coverage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_met_and_unmet_are_those_of_the_batches),
        cmocka_unit_test(the_last_row_is_met_whichever_it_is),
        cmocka_unit_test(nothing_is_learnt_behind_a_whole_pass),
        cmocka_unit_test(tables_beyond_the_memory_are_not_followed),
        cmocka_unit_test(rows_are_not_known_once_ids_were_left_out),
        cmocka_unit_test(features_that_share_rows_have_met_the_same),
        cmocka_unit_test(a_zeroed_one_counts_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
