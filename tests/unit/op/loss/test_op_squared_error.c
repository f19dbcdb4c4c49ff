#include "support/op_trial.h"

#include <math.h>

enum { NUM_SAMPLES = 2100, NUM_TASKS = 2, NUM_LABELS = NUM_SAMPLES * NUM_TASKS };

static ph_real predictions[NUM_LABELS], labels[NUM_LABELS], weights[NUM_SAMPLES];

static ph_value loss(struct ph_builder *builder, ph_value x)
{
    return ph_squared_error(builder, x, ph_input_labels(builder, NUM_TASKS), ph_input_weights(builder));
}

static double naive_loss(const struct ph_batch *batch)
{
    double sum = 0;
    for (size_t i = 0; i < batch->num_samples * NUM_TASKS; i++) {
        const double error = (double)predictions[i] - (double)labels[i];
        sum += (batch->weights != NULL ? (double)weights[i / NUM_TASKS] : 1) * error * error;
    }
    return batch->num_samples > 0 ? sum / (double)(batch->num_samples * NUM_TASKS) : 0;
}

/* More elements than one block has, few, and none; with weights and without. */
static void squared_error_is_the_mean_over_all_elements(void **state)
{
    (void)state;
    static const size_t counts[] = {NUM_SAMPLES, 3, 0};
    for (size_t i = 0; i < NUM_LABELS; i++) {
        predictions[i] = (ph_real)(sin((double)i) * 5);
        labels[i] = (ph_real)(i % 5) / 4 - 1;
        weights[i / NUM_TASKS] = (ph_real)(i / NUM_TASKS % 7) / 2;
    }
    for (size_t i = 0; i < 6; i++) {
        struct op_trial trial = {.build = loss, .num_expected = 1};
        trial.batch = (struct ph_batch){.num_samples = counts[i / 2],
            .num_dense = NUM_TASKS,
            .num_tasks = NUM_TASKS,
            .dense = predictions,
            .labels = labels,
            .weights = i % 2 == 1 ? weights : NULL};
        const double expected = naive_loss(&trial.batch);
        trial.expected = &expected;
        check_trial(&trial);
    }
}

static ph_value other_tasks(struct ph_builder *builder, ph_value x)
{
    return ph_squared_error(builder, x, ph_input_labels(builder, 3), 0);
}

static ph_value differentiated_labels(struct ph_builder *builder, ph_value x)
{
    ph_value gradient = 0;
    ph_value z = ph_squared_error(builder, ph_sigmoid(builder, x), x, 0);
    ph_backward(builder, z, 1, &x, &gradient);
    return z;
}

static void squared_error_refuses_other_shapes_and_gradients_of_labels(void **state)
{
    (void)state;
    assert_refused(other_tasks, "got (B,12), (B,3), token, token");
    assert_refused(differentiated_labels, "only the predictions have a gradient");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(squared_error_is_the_mean_over_all_elements),
        cmocka_unit_test(squared_error_refuses_other_shapes_and_gradients_of_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
