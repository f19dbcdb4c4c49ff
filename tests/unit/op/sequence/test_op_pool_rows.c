#include <string.h>

#include "base/rng.h"
#include "support/op_trial.h"

enum { NUM_SAMPLES = 300, MOST_LENGTH = 40, NUM_ROWS = 50, MOST_WIDTH = 70, MOST_RUNS = 8 };

/* Items are rows of a table (NUM_ROWS, width); their weights, rows of another one, (NUM_ROWS,1). */
static struct {
    size_t width;
    bool has_weights;
    uint32_t offsets[NUM_SAMPLES + 1];
    int32_t lengths[NUM_SAMPLES];
    int64_t ids[NUM_SAMPLES * MOST_LENGTH];
    ph_real tables[NUM_ROWS * (MOST_WIDTH + 1)];
    double expected[NUM_SAMPLES * MOST_WIDTH];
    ph_real bits[MOST_RUNS][NUM_SAMPLES * MOST_WIDTH]; /* of each run of a trial */
    size_t num_runs, sample;
} trial;

static ph_value pool(struct ph_builder *builder, ph_value x)
{
    const struct ph_init zeros = {PH_INIT_CONSTANT, 0};
    const struct ph_table_slice rows = {"rows.f", NUM_ROWS}, weights = {"weights.f", NUM_ROWS};
    const ph_value bags = ph_feature_bags(builder, ph_input_ids(builder, 1), 0);
    const ph_value items =
        ph_embedding_rows(builder, bags, ph_table(builder, "rows", 1, &rows, trial.width, zeros), 0, 0);
    const ph_value factors =
        ph_embedding_rows(builder, bags, ph_table(builder, "weights", 1, &weights, 1, zeros), 0, 0);
    (void)x;
    return ph_pool_rows(builder, items, bags, trial.has_weights ? factors : 0);
}

static double expected_at(size_t sample, size_t k)
{
    double sum = 0;
    for (size_t p = trial.offsets[sample]; p < trial.offsets[sample + 1]; p++) {
        const size_t row = (size_t)trial.ids[p];
        const double weight = trial.has_weights ? (double)trial.tables[NUM_ROWS * trial.width + row] : 1;
        sum += weight * (double)trial.tables[row * trial.width + k];
    }
    return sum;
}

/* Bags of 0 to max_length items, every ninth of none. */
static void draw(size_t num_samples, size_t width, size_t max_length, bool has_weights)
{
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    trial.width = width;
    trial.has_weights = has_weights;
    for (size_t i = 0; i < NUM_ROWS * (width + 1); i++)
        trial.tables[i] = (ph_real)ph__rng_next_normal(&random);
    for (size_t sample = 0; sample < num_samples; sample++) {
        trial.lengths[sample] = sample % 9 == 4 ? 0 : (int32_t)ph__rng_below(&random, max_length + 1);
        trial.offsets[sample + 1] = trial.offsets[sample] + (uint32_t)trial.lengths[sample];
    }
    for (size_t p = 0; p < trial.offsets[num_samples]; p++)
        trial.ids[p] = (int64_t)ph__rng_below(&random, NUM_ROWS);
    for (size_t i = 0; i < num_samples * width; i++)
        trial.expected[i] = expected_at(i / width, i % width);
}

static struct op_trial trial_of(size_t num_samples)
{
    return (struct op_trial){.batch = {.num_samples = num_samples,
                                 .num_sparse = 1,
                                 .num_ids = trial.offsets[num_samples],
                                 .lengths = trial.lengths,
                                 .offsets = trial.offsets,
                                 .ids = trial.ids},
        .parameters = trial.tables,
        .build = pool,
        .num_expected = num_samples * trial.width,
        .expected = trial.expected,
        .tolerance = 2e-5};
}

static void a_bag_is_the_weighted_sum_of_its_rows(void **state)
{
    (void)state;
    static const size_t widths[] = {1, 3, 16, 33, MOST_WIDTH}, lengths[] = {0, 1, 2, MOST_LENGTH};
    for (size_t i = 0; i < 40; i++) {
        draw(NUM_SAMPLES, widths[i % 5], lengths[i / 5 % 4], i >= 20);
        const struct op_trial full = trial_of(NUM_SAMPLES), none = trial_of(0);
        check_trial(&full);
        check_trial(&none);
    }
}

/* ---- the batch around it ---- */

static const ph_real *output(struct ph_workspace *workspace)
{
    const ph_real *y;
    struct ph_shape shape;
    assert_ok(ph_workspace_output(workspace, "y", &y, &shape));
    return y;
}

static void keep_bits(struct ph_workspace *workspace, const struct ph_state *state)
{
    (void)state;
    assert_true(trial.num_runs < MOST_RUNS);
    memcpy(trial.bits[trial.num_runs++], output(workspace), sizeof trial.bits[0]);
}

static void compare_bits(struct ph_workspace *workspace, const struct ph_state *state)
{
    (void)state;
    const ph_real *bits = trial.bits[trial.num_runs++];
    assert_memory_equal(output(workspace), bits + trial.sample * trial.width, trial.width * sizeof *bits);
}

/* The batch's trial runs once for each ISA and number of threads, and so does each sample's. */
static void a_sample_has_the_same_bits_whatever_batch_it_is_in(void **state)
{
    (void)state;
    for (int has_weights = 0; has_weights < 2; has_weights++) {
        draw(NUM_SAMPLES, MOST_WIDTH, MOST_LENGTH, has_weights);
        struct op_trial all = trial_of(NUM_SAMPLES);
        all.check = keep_bits;
        trial.num_runs = 0;
        check_trial(&all);
        for (trial.sample = 0; trial.sample < NUM_SAMPLES; trial.sample += 37) {
            const uint32_t offsets[] = {0, (uint32_t)trial.lengths[trial.sample]};
            struct op_trial one = trial_of(1);
            one.batch.num_ids = offsets[1];
            one.batch.lengths += trial.sample;
            one.batch.offsets = offsets;
            one.batch.ids += trial.offsets[trial.sample];
            one.expected += trial.sample * trial.width;
            one.check = compare_bits;
            trial.num_runs = 0;
            check_trial(&one);
        }
    }
}

static ph_value rows_of_samples(struct ph_builder *builder, ph_value x)
{
    return ph_pool_rows(builder, x, ph_feature_bags(builder, ph_input_ids(builder, 2), 0), 0);
}

static ph_value wide_weights(struct ph_builder *builder, ph_value x)
{
    const ph_value bags = ph_feature_bags(builder, ph_input_ids(builder, 2), 0);
    const ph_value rows = ph_repeat_rows(builder, x, bags);
    return ph_pool_rows(builder, rows, bags, rows);
}

static ph_value items_of_another_feature(struct ph_builder *builder, ph_value x)
{
    const ph_value ids = ph_input_ids(builder, 2);
    const ph_value rows = ph_repeat_rows(builder, x, ph_feature_bags(builder, ids, 0));
    return ph_pool_rows(builder, rows, ph_feature_bags(builder, ids, 1), 0);
}

static void only_rows_of_these_items_are_pooled(void **state)
{
    (void)state;
    static const char *const line = "needs x (I,K), bags of I items, weights (I,1) or none";
    assert_refused(rows_of_samples, line);
    assert_refused(wide_weights, line);
    assert_refused(items_of_another_feature, line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bag_is_the_weighted_sum_of_its_rows),
        cmocka_unit_test(a_sample_has_the_same_bits_whatever_batch_it_is_in),
        cmocka_unit_test(only_rows_of_these_items_are_pooled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
