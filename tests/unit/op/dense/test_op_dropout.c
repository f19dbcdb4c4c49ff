#include "support/op_trial.h"

#include <string.h>

enum { NUM_SAMPLES = 200, NUM_COLUMNS = 101, NUM_ELEMENTS = NUM_SAMPLES * NUM_COLUMNS };

static ph_real ones[NUM_ELEMENTS], kept_before[NUM_ELEMENTS];

static ph_value drop_a_quarter(struct ph_builder *builder, ph_value x)
{
    ph_output(builder, "dropped", ph_dropout(builder, x, 0.25));
    return ph_slice(builder, x, 1, 0, 1);
}

static const ph_real *dropped(struct ph_workspace *workspace)
{
    const ph_real *y = NULL;
    struct ph_shape shape;
    assert_ok(ph_workspace_output(workspace, "dropped", &y, &shape));
    assert_int_equal(ph_shape_elements(&shape), NUM_ELEMENTS);
    return y;
}

static void assert_a_quarter_is_gone(struct ph_workspace *workspace, const struct ph_state *state)
{
    (void)state;
    const ph_real *y = dropped(workspace);
    size_t num_kept = 0;
    for (size_t i = 0; i < NUM_ELEMENTS; i++) {
        assert_true(y[i] == 0 || (y[i] > (ph_real)1.333 && y[i] < (ph_real)1.334));
        num_kept += y[i] != 0;
    }
    assert_near((double)num_kept / NUM_ELEMENTS, 0.75, 0.01, 0);
}

static void remember(struct ph_workspace *workspace, const struct ph_state *state)
{
    (void)state;
    memcpy(kept_before, dropped(workspace), sizeof kept_before);
}

/* Samples 50 .. 249 of the epoch: what they share with 0 .. 199 is dropped alike. */
static void assert_kept_by_place_in_the_epoch(struct ph_workspace *workspace, const struct ph_state *state)
{
    (void)state;
    const size_t shared = (NUM_SAMPLES - 50) * NUM_COLUMNS;
    assert_memory_equal(dropped(workspace), kept_before + 50 * NUM_COLUMNS, shared * sizeof(ph_real));
    assert_memory_not_equal(dropped(workspace), kept_before, shared * sizeof(ph_real));
}

static struct op_trial trial_of_ones(void)
{
    static double first[NUM_SAMPLES];
    for (size_t i = 0; i < NUM_ELEMENTS; i++)
        ones[i] = 1;
    for (size_t i = 0; i < NUM_SAMPLES; i++)
        first[i] = 1;
    return (struct op_trial){.batch = {.num_samples = NUM_SAMPLES, .num_dense = NUM_COLUMNS, .dense = ones},
        .build = drop_a_quarter,
        .num_expected = NUM_SAMPLES,
        .expected = first};
}

static void dropout_drops_a_share_and_scales_the_rest(void **state)
{
    (void)state;
    struct op_trial trial = trial_of_ones();
    trial.check = assert_a_quarter_is_gone;
    check_trial(&trial);
}

static void what_is_dropped_depends_on_the_place_in_the_epoch(void **state)
{
    (void)state;
    struct op_trial trial = trial_of_ones();
    trial.check = remember;
    check_trial(&trial);
    trial.batch.first_sample = 50;
    trial.check = assert_kept_by_place_in_the_epoch;
    check_trial(&trial);
}

/* ---- items ---- */

enum { MOST_LENGTH = 4 };

static struct history {
    uint32_t offsets[NUM_SAMPLES + 1];
    int32_t lengths[NUM_SAMPLES];
    int64_t ids[NUM_SAMPLES * MOST_LENGTH];
} history;
static ph_real kept_items[NUM_SAMPLES * MOST_LENGTH * NUM_COLUMNS];

static ph_value drop_of_items(struct ph_builder *builder, ph_value x)
{
    const ph_value bags = ph_feature_bags(builder, ph_input_ids(builder, 1), 0);
    const ph_value items =
        ph_reshape(builder, ph_repeat_rows(builder, x, bags), 2, (size_t[]){1, NUM_COLUMNS});
    ph_output(builder, "dropped", ph_dropout(builder, items, 0.25));
    return ph_slice(builder, x, 1, 0, 1);
}

static const ph_real *dropped_items(struct ph_workspace *workspace, size_t *num_items_out)
{
    const ph_real *y = NULL;
    struct ph_shape shape;
    assert_ok(ph_workspace_output(workspace, "dropped", &y, &shape));
    *num_items_out = shape.dims[0];
    return y;
}

/* A share of all is gone, and no two items have the same mask. */
static void check_and_remember_items(struct ph_workspace *workspace, const struct ph_state *state)
{
    (void)state;
    size_t num_items, num_kept = 0;
    const ph_real *y = dropped_items(workspace, &num_items);
    for (size_t i = 0; i < num_items * NUM_COLUMNS; i++)
        num_kept += y[i] != 0;
    assert_near((double)num_kept / (double)(num_items * NUM_COLUMNS), 0.75, 0.01, 0);
    for (size_t i = 1; i < num_items; i++)
        for (size_t j = i > MOST_LENGTH ? i - MOST_LENGTH : 0; j < i; j++)
            assert_memory_not_equal(y + i * NUM_COLUMNS, y + j * NUM_COLUMNS, NUM_COLUMNS * sizeof *y);
    memcpy(kept_items, y, num_items * NUM_COLUMNS * sizeof *y);
}

static void assert_kept_by_sample_and_item(struct ph_workspace *workspace, const struct ph_state *state)
{
    (void)state;
    size_t num_items;
    const ph_real *y = dropped_items(workspace, &num_items);
    assert_memory_equal(
        y, kept_items + history.offsets[50] * NUM_COLUMNS, num_items * NUM_COLUMNS * sizeof *y);
}

/* The batch's samples from the fiftieth on, alone, have the masks that they have in the batch. */
static void items_are_dropped_by_their_sample_and_their_place_in_its_bag(void **state)
{
    (void)state;
    struct op_trial trial = trial_of_ones();
    for (size_t sample = 0; sample < NUM_SAMPLES; sample++) {
        history.lengths[sample] = (int32_t)(sample * sample % (MOST_LENGTH + 1));
        history.offsets[sample + 1] = history.offsets[sample] + (uint32_t)history.lengths[sample];
    }
    trial.build = drop_of_items;
    trial.batch.num_sparse = 1;
    trial.batch.num_ids = history.offsets[NUM_SAMPLES];
    trial.batch.lengths = history.lengths;
    trial.batch.offsets = history.offsets;
    trial.batch.ids = history.ids;
    trial.check = check_and_remember_items;
    check_trial(&trial);

    static uint32_t offsets[NUM_SAMPLES - 50 + 1];
    for (size_t sample = 50; sample <= NUM_SAMPLES; sample++)
        offsets[sample - 50] = history.offsets[sample] - history.offsets[50];
    trial.batch.num_samples -= 50;
    trial.batch.first_sample += 50;
    trial.batch.num_ids -= history.offsets[50];
    trial.batch.lengths += 50;
    trial.batch.offsets = offsets;
    trial.num_expected -= 50;
    trial.check = assert_kept_by_sample_and_item;
    check_trial(&trial);
}

static ph_value must_be_the_same_value(struct ph_builder *builder, ph_value x)
{
    assert_int_equal(ph_dropout(builder, x, 0), x);
    if (ph_builder_mode(builder) == PH_INFERENCE)
        assert_int_equal(ph_dropout(builder, x, 0.5), x);
    return ph_slice(builder, x, 1, 0, 1);
}

static void dropout_is_nothing_in_inference_and_at_rate_zero(void **state)
{
    (void)state;
    struct op_trial trial = trial_of_ones();
    trial.build = must_be_the_same_value;
    check_trial(&trial);
    trial.mode = PH_INFERENCE;
    check_trial(&trial);
}

static ph_value drop_everything(struct ph_builder *builder, ph_value x)
{
    return ph_dropout(builder, x, 1);
}

static void dropout_refuses_rates_outside_its_range(void **state)
{
    (void)state;
    assert_refused(drop_everything, "dropout: rate 1 is not in [0,1)");
}

/* Nothing says which sample a number belongs to. */
static ph_value drop_of_a_parameter(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return ph_dropout(
        builder, ph_parameter(builder, "p", 1, (size_t[]){3}, (struct ph_init){PH_INIT_CONSTANT, 1}), 0.5);
}

static void rows_are_of_samples_or_of_items(void **state)
{
    (void)state;
    assert_refused(drop_of_a_parameter, "the rows of 'p' are neither samples nor items of bags");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout_drops_a_share_and_scales_the_rest),
        cmocka_unit_test(what_is_dropped_depends_on_the_place_in_the_epoch),
        cmocka_unit_test(items_are_dropped_by_their_sample_and_their_place_in_its_bag),
        cmocka_unit_test(dropout_is_nothing_in_inference_and_at_rate_zero),
        cmocka_unit_test(dropout_refuses_rates_outside_its_range),
        cmocka_unit_test(rows_are_of_samples_or_of_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
