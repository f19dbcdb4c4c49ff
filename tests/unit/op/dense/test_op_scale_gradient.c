#include "support/op_trial.h"

static const ph_real x[] = {1, -2};

static ph_value passed(struct ph_builder *builder, ph_value value)
{
    return ph_scale_gradient(builder, value, 3);
}

/* The gradient of the mean of two squares, which is the numbers themselves. */
static ph_value gradient_of(struct ph_builder *builder, ph_value value, double factor)
{
    const ph_value zeros = ph_stop_gradient(builder, ph_scale(builder, value, 0));
    ph_value gradient = 0;
    ph_backward(builder, ph_squared_error(builder, ph_scale_gradient(builder, value, factor), zeros, 0), 1,
        &value, &gradient);
    return gradient;
}

static ph_value three_times(struct ph_builder *builder, ph_value value)
{
    return gradient_of(builder, value, 3);
}

static ph_value no_times(struct ph_builder *builder, ph_value value)
{
    return gradient_of(builder, value, 0);
}

static struct op_trial trial_of(
    ph_value (*build)(struct ph_builder *builder, ph_value x), const double *expected)
{
    return (struct op_trial){.batch = {.num_samples = 1, .num_dense = 2, .dense = x},
        .build = build,
        .num_expected = 2,
        .expected = expected};
}

static void numbers_pass_as_they_are(void **state)
{
    (void)state;
    const struct op_trial trial = trial_of(passed, (double[]){1, -2});
    check_trial(&trial);
}

static void gradients_are_multiplied(void **state)
{
    (void)state;
    const struct op_trial trials[] = {
        trial_of(three_times, (double[]){3, -6}), trial_of(no_times, (double[]){0, 0})};
    for (size_t i = 0; i < 2; i++)
        check_trial(&trials[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_pass_as_they_are),
        cmocka_unit_test(gradients_are_multiplied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
