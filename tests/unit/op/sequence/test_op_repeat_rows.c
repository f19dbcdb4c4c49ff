#include "op/operator.h"

#include "base/rng.h"
#include "support/op_trial.h"

enum { NUM_SAMPLES = 700, MOST_ITEMS = 5 * NUM_SAMPLES, MOST_WIDTH = 37 };

static uint32_t offsets[NUM_SAMPLES + 1];
static int32_t lengths[NUM_SAMPLES];
static int64_t ids[MOST_ITEMS];
static ph_real x[NUM_SAMPLES * MOST_WIDTH];
static double expected[MOST_ITEMS * MOST_WIDTH];

static ph_value repeat(struct ph_builder *builder, ph_value value)
{
    return ph_repeat_rows(builder, value, ph_feature_bags(builder, ph_input_ids(builder, 1), 0));
}

/* Bags of 0 to max_items items. */
static void check_repetition(size_t num_samples, size_t width, size_t max_items)
{
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    size_t next = 0;
    for (size_t sample = 0; sample < num_samples; sample++) {
        lengths[sample] = (int32_t)ph__rng_below(&random, max_items + 1);
        offsets[sample + 1] = offsets[sample] + (uint32_t)lengths[sample];
        for (size_t k = 0; k < width; k++)
            x[sample * width + k] = (ph_real)ph__rng_next_normal(&random);
        for (int32_t i = 0; i < lengths[sample]; i++)
            for (size_t k = 0; k < width; k++)
                expected[next++] = (double)x[sample * width + k];
    }
    check_trial(&(struct op_trial){.batch = {.num_samples = num_samples,
                                       .num_dense = width,
                                       .dense = x,
                                       .num_sparse = 1,
                                       .num_ids = offsets[num_samples],
                                       .lengths = lengths,
                                       .offsets = offsets,
                                       .ids = ids},
        .build = repeat,
        .num_expected = next,
        .expected = expected});
}

static void a_row_stands_once_for_each_item_of_its_bag(void **state)
{
    (void)state;
    static const size_t widths[] = {1, 3, 16, MOST_WIDTH};
    for (size_t i = 0; i < 4; i++) {
        check_repetition(NUM_SAMPLES, widths[i], 5);
        check_repetition(1, widths[i], 1);
        check_repetition(20, widths[i], 0);
        check_repetition(0, widths[i], 1);
    }
}

/* 3 samples of 4 numbers, 5 items: what is read and written once, of the bags where they begin. */
static void bags_cost_where_they_begin(void **state)
{
    (void)state;
    const struct ph_type dense = {.kind = PH_DENSE, .dtype = PH_REAL, .num_dims = 2},
                         jagged = {.kind = PH_JAGGED, .dtype = PH_I64, .num_dims = 2},
                         none = {.kind = PH_TOKEN};
    ph_real data[1];
    struct ph__operand inputs[] = {{.type = &dense, .shape = {2, {3, 4}}, .data = data},
        {.type = &jagged, .shape = {2, {3, 5}}, .data = data}, {.type = &none}};
    struct ph__operand output = {.type = &dense, .shape = {2, {5, 4}}, .data = data};
    const struct ph__call call = {.inputs = inputs, .num_inputs = 3, .outputs = &output, .num_outputs = 1};
    struct ph__cost cost = {0};
    ph__op_repeat_rows.cost(&call, &cost);
    assert_true(cost.bytes == (3 * 4 + 5 * 4) * sizeof(ph_real) + 4 * sizeof(uint32_t));
    assert_true(cost.flops == 0);
}

static ph_value bags_of_two_features(struct ph_builder *builder, ph_value value)
{
    return ph_repeat_rows(builder, value, ph_input_ids(builder, 2));
}

static ph_value rows_of_items(struct ph_builder *builder, ph_value value)
{
    const ph_value bags = ph_feature_bags(builder, ph_input_ids(builder, 2), 0);
    return ph_repeat_rows(builder, ph_repeat_rows(builder, value, bags), bags);
}

static void only_rows_of_samples_are_repeated(void **state)
{
    (void)state;
    assert_refused(bags_of_two_features, "needs x (B,K), bags of B samples, factors (I,1) or none");
    assert_refused(rows_of_items, "needs x (B,K), bags of B samples, factors (I,1) or none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_stands_once_for_each_item_of_its_bag),
        cmocka_unit_test(bags_cost_where_they_begin),
        cmocka_unit_test(only_rows_of_samples_are_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
