/* What factors and weights of items have as gradients, and repetition with factors, on every ISA. */
#include "op/table/op_table.h"

#include "base/rng.h"
#include "support/op_trial.h"

enum { NUM_SAMPLES = 200, MOST_LENGTH = 6, NUM_ROWS = 40, MOST_WIDTH = 67 };

static struct {
    size_t width;
    uint32_t offsets[NUM_SAMPLES + 1];
    int32_t lengths[NUM_SAMPLES];
    int64_t ids[NUM_SAMPLES * MOST_LENGTH];
    ph_real x[NUM_SAMPLES * MOST_WIDTH], table[NUM_ROWS * MOST_WIDTH];
    double expected[NUM_SAMPLES * MOST_LENGTH * MOST_WIDTH];
} trial;

static ph_value bags_of(struct ph_builder *builder)
{
    return ph_feature_bags(builder, ph_input_ids(builder, 1), 0);
}

static ph_value items_of(struct ph_builder *builder, size_t width)
{
    const struct ph_table_slice slice = {"rows.f", NUM_ROWS};
    const struct ph_init zeros = {PH_INIT_CONSTANT, 0};
    return ph_embedding_rows(
        builder, bags_of(builder), ph_table(builder, "rows", 1, &slice, width, zeros), 0, 0);
}

static ph_value dots(struct ph_builder *builder, ph_value x)
{
    return ph__item_dots(builder, items_of(builder, trial.width), x, bags_of(builder));
}

static ph_value repeat_with_factors(struct ph_builder *builder, ph_value x)
{
    return ph__repeat_rows(builder, x, bags_of(builder), items_of(builder, 1));
}

static void draw(size_t num_samples, size_t width)
{
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    trial.width = width;
    for (size_t i = 0; i < NUM_ROWS * width; i++)
        trial.table[i] = (ph_real)ph__rng_next_normal(&random);
    for (size_t i = 0; i < num_samples * width; i++)
        trial.x[i] = (ph_real)ph__rng_next_normal(&random);
    for (size_t sample = 0; sample < num_samples; sample++) {
        trial.lengths[sample] = (int32_t)ph__rng_below(&random, MOST_LENGTH + 1);
        trial.offsets[sample + 1] = trial.offsets[sample] + (uint32_t)trial.lengths[sample];
    }
    for (size_t p = 0; p < trial.offsets[num_samples]; p++)
        trial.ids[p] = (int64_t)ph__rng_below(&random, NUM_ROWS);
}

static size_t sample_of(size_t item)
{
    size_t sample = 0;
    while (trial.offsets[sample + 1] <= item)
        sample++;
    return sample;
}

static double dot_of(size_t item)
{
    const ph_real *row = trial.table + (size_t)trial.ids[item] * trial.width,
                  *x = trial.x + sample_of(item) * trial.width;
    double sum = 0;
    for (size_t k = 0; k < trial.width; k++)
        sum += (double)row[k] * (double)x[k];
    return sum;
}

static void check(size_t num_samples, size_t num_expected, ph_value (*build)(struct ph_builder *, ph_value))
{
    check_trial(&(struct op_trial){.batch = {.num_samples = num_samples,
                                       .num_dense = trial.width,
                                       .dense = trial.x,
                                       .num_sparse = 1,
                                       .num_ids = trial.offsets[num_samples],
                                       .lengths = trial.lengths,
                                       .offsets = trial.offsets,
                                       .ids = trial.ids},
        .parameters = trial.table,
        .build = build,
        .num_expected = num_expected,
        .expected = trial.expected,
        .tolerance = 1e-5});
}

static void each_item_meets_the_row_of_its_sample(void **state)
{
    (void)state;
    static const size_t widths[] = {1, 5, 16, MOST_WIDTH}, samples[] = {0, 1, NUM_SAMPLES};
    for (size_t i = 0; i < 12; i++) {
        const size_t num_samples = samples[i / 4], width = widths[i % 4];
        draw(num_samples, width);
        const size_t num_items = trial.offsets[num_samples];
        for (size_t item = 0; item < num_items; item++)
            trial.expected[item] = dot_of(item);
        check(num_samples, num_items, dots);
        for (size_t j = 0; j < num_items * width; j++)
            trial.expected[j] = (double)trial.table[trial.ids[j / width]] *
                                (double)trial.x[sample_of(j / width) * width + j % width];
        check(num_samples, num_items * width, repeat_with_factors);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_meets_the_row_of_its_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
