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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout_drops_a_share_and_scales_the_rest),
        cmocka_unit_test(what_is_dropped_depends_on_the_place_in_the_epoch),
        cmocka_unit_test(dropout_is_nothing_in_inference_and_at_rate_zero),
        cmocka_unit_test(dropout_refuses_rates_outside_its_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
