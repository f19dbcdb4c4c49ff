#include "support/op_trial.h"

#include <math.h>

enum { NUM_SAMPLES = 2100, NUM_TASKS = 2, NUM_LABELS = NUM_SAMPLES * NUM_TASKS };

static ph_real logits[NUM_LABELS], labels[NUM_LABELS], mask[NUM_LABELS], weights[NUM_SAMPLES];

static ph_value loss(struct ph_builder *builder, ph_value x)
{
    return ph_bce_with_logits(builder, x, ph_input_labels(builder, NUM_TASKS),
        ph_input_label_mask(builder, NUM_TASKS), ph_input_weights(builder));
}

static void fill(void)
{
    for (size_t i = 0; i < NUM_LABELS; i++) {
        logits[i] = (ph_real)(sin((double)i) * 5);
        labels[i] = (ph_real)(i % 5) / 4;
        mask[i] = i % 3 != 0;
    }
    for (size_t i = 0; i < NUM_SAMPLES; i++)
        weights[i] = (ph_real)(1 + i % 7) / 2;
}

static double naive_loss(const struct ph_batch *batch)
{
    double sum = 0, total = 0;
    for (size_t i = 0; i < batch->num_samples * NUM_TASKS; i++) {
        const double z = (double)logits[i], y = (double)labels[i], p = 1 / (1 + exp(-z));
        const double known = batch->label_mask != NULL ? (double)mask[i] : 1;
        const double weight = batch->weights != NULL ? (double)weights[i / NUM_TASKS] : 1;
        sum -= known * weight * (y * log(p) + (1 - y) * log(1 - p));
        total += known * weight;
    }
    return total > 0 ? sum / total : 0;
}

/* More elements than one block has, soft labels, and each of mask and weights there or not. */
static void cross_entropy_is_the_weighted_mean_over_known_labels(void **state)
{
    (void)state;
    fill();
    for (size_t i = 0; i < 8; i++) {
        struct op_trial trial = {.build = loss, .num_expected = 1};
        trial.batch = (struct ph_batch){.num_samples = i / 4 == 0 ? NUM_SAMPLES : 3,
            .num_dense = NUM_TASKS,
            .num_tasks = NUM_TASKS,
            .dense = logits,
            .labels = labels,
            .label_mask = i % 2 == 1 ? mask : NULL,
            .weights = i / 2 % 2 == 1 ? weights : NULL};
        const double expected = naive_loss(&trial.batch);
        trial.expected = &expected;
        check_trial(&trial);
    }
}

static void cross_entropy_of_nothing_known_is_zero(void **state)
{
    (void)state;
    const ph_real none[4] = {0};
    const double expected = 0;
    struct op_trial trial = {.build = loss, .num_expected = 1, .expected = &expected};
    trial.batch = (struct ph_batch){.num_dense = NUM_TASKS, .num_tasks = NUM_TASKS};
    check_trial(&trial);
    trial.batch.num_samples = 2;
    trial.batch.dense = logits;
    trial.batch.labels = labels;
    trial.batch.label_mask = none;
    check_trial(&trial);
}

static void large_logits_cost_what_they_are(void **state)
{
    (void)state;
    const ph_real z[] = {200, -200}, y[] = {0, 0};
    const double expected = 100;
    check_trial(&(struct op_trial){
        .batch = {.num_samples = 1, .num_dense = NUM_TASKS, .num_tasks = NUM_TASKS, .dense = z, .labels = y},
        .build = loss,
        .num_expected = 1,
        .expected = &expected});
}

static ph_value other_tasks(struct ph_builder *builder, ph_value x)
{
    return ph_bce_with_logits(builder, x, ph_input_labels(builder, 3), 0, 0);
}

static ph_value differentiated_labels(struct ph_builder *builder, ph_value x)
{
    ph_value gradient = 0;
    ph_value z = ph_bce_with_logits(builder, ph_sigmoid(builder, x), x, 0, 0);
    ph_backward(builder, z, 1, &x, &gradient);
    return z;
}

static void cross_entropy_refuses_other_shapes_and_gradients_of_labels(void **state)
{
    (void)state;
    assert_refused(other_tasks, "got (B,12), (B,3), token, token");
    assert_refused(differentiated_labels, "labels, mask and weights need ph_stop_gradient");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cross_entropy_is_the_weighted_mean_over_known_labels),
        cmocka_unit_test(cross_entropy_of_nothing_known_is_zero),
        cmocka_unit_test(large_logits_cost_what_they_are),
        cmocka_unit_test(cross_entropy_refuses_other_shapes_and_gradients_of_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
