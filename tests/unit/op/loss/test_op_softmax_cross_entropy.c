#include "support/op_trial.h"

#include <math.h>

enum { NUM_SAMPLES = 1500, NUM_CLASSES = 5, NUM_LABELS = NUM_SAMPLES * NUM_CLASSES };

static ph_real logits[NUM_LABELS], labels[NUM_LABELS], mask[NUM_LABELS], weights[NUM_SAMPLES];

static ph_value loss(struct ph_builder *builder, ph_value x)
{
    return ph_softmax_cross_entropy(builder, x, ph_input_labels(builder, NUM_CLASSES),
        ph_input_label_mask(builder, NUM_CLASSES), ph_input_weights(builder));
}

static void fill(void)
{
    for (size_t i = 0; i < NUM_LABELS; i++) {
        const size_t row = i / NUM_CLASSES;
        logits[i] = (ph_real)(sin((double)i) * 5);
        labels[i] = i % NUM_CLASSES == row % NUM_CLASSES;
        mask[i] = row % 3 != 0;
    }
    for (size_t i = 0; i < NUM_SAMPLES; i++)
        weights[i] = (ph_real)(i % 7) / 2;
}

static double naive_loss(const struct ph_batch *batch)
{
    double sum = 0, total = 0;
    for (size_t row = 0; row < batch->num_samples; row++) {
        const ph_real *z = logits + row * NUM_CLASSES;
        const double known = batch->label_mask != NULL ? (double)mask[row * NUM_CLASSES] : 1;
        const double weight = known * (batch->weights != NULL ? (double)weights[row] : 1);
        double exps = 0;
        for (size_t t = 0; t < NUM_CLASSES; t++)
            exps += exp((double)z[t]);
        sum += weight * (log(exps) - (double)z[row % NUM_CLASSES]);
        total += weight;
    }
    return total > 0 ? sum / total : 0;
}

/* More rows than one block has, and each of mask and weights there or not. */
static void softmax_cross_entropy_is_the_weighted_mean_over_known_rows(void **state)
{
    (void)state;
    fill();
    for (size_t i = 0; i < 8; i++) {
        struct op_trial trial = {.build = loss, .num_expected = 1};
        trial.batch = (struct ph_batch){.num_samples = i / 4 == 0 ? NUM_SAMPLES : 3,
            .num_dense = NUM_CLASSES,
            .num_tasks = NUM_CLASSES,
            .dense = logits,
            .labels = labels,
            .label_mask = i % 2 == 1 ? mask : NULL,
            .weights = i / 2 % 2 == 1 ? weights : NULL};
        const double expected = naive_loss(&trial.batch);
        trial.expected = &expected;
        check_trial(&trial);
    }
}

static void softmax_cross_entropy_of_nothing_known_is_zero(void **state)
{
    (void)state;
    const ph_real none[NUM_CLASSES] = {0};
    const double expected = 0;
    struct op_trial trial = {.build = loss, .num_expected = 1, .expected = &expected};
    trial.batch = (struct ph_batch){.num_dense = NUM_CLASSES, .num_tasks = NUM_CLASSES};
    check_trial(&trial);
    trial.batch.num_samples = 1;
    trial.batch.dense = logits;
    trial.batch.labels = labels;
    trial.batch.label_mask = none;
    check_trial(&trial);
}

static void large_logits_cost_what_they_are(void **state)
{
    (void)state;
    const ph_real z[] = {2000, -2000, 0, 0, 0}, y[] = {0, 1, 0, 0, 0};
    const double expected = 4000;
    check_trial(&(struct op_trial){
        .batch =
            {.num_samples = 1, .num_dense = NUM_CLASSES, .num_tasks = NUM_CLASSES, .dense = z, .labels = y},
        .build = loss,
        .num_expected = 1,
        .expected = &expected});
}

static ph_value other_classes(struct ph_builder *builder, ph_value x)
{
    return ph_softmax_cross_entropy(builder, x, ph_input_labels(builder, 3), 0, 0);
}

static void softmax_cross_entropy_refuses_other_shapes(void **state)
{
    (void)state;
    assert_refused(other_classes, "got (B,12), (B,3), token, token");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_cross_entropy_is_the_weighted_mean_over_known_rows),
        cmocka_unit_test(softmax_cross_entropy_of_nothing_known_is_zero),
        cmocka_unit_test(large_logits_cost_what_they_are),
        cmocka_unit_test(softmax_cross_entropy_refuses_other_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
