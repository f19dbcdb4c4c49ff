#include "support/op_trial.h"

#include <math.h>

enum { NUM_SAMPLES = 3, NUM_TASKS = 2, NUM_VALUES = NUM_SAMPLES * NUM_TASKS };

static const ph_real teacher[NUM_VALUES] = {.5, .125, .875, .25, .0078125, .75};
static const ph_real teacher_mask[NUM_VALUES] = {1, 1, 0, 1, 1, 1};
static const ph_real label_mask[NUM_VALUES] = {1, 0, 1, 1, 1, 0};
static const double scale = 3, rate = .25;

static struct ph_teacher targets_of(struct ph_builder *builder)
{
    return ph_teacher_targets(builder, NUM_TASKS, scale, rate);
}

static ph_value targets(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return targets_of(builder).targets;
}

static ph_value log_odds(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return targets_of(builder).log_odds;
}

static ph_value known(struct ph_builder *builder, ph_value x)
{
    (void)x;
    return targets_of(builder).known;
}

static void check(
    ph_value (*build)(struct ph_builder *builder, ph_value x), bool has_masks, const double *expected)
{
    check_trial(&(struct op_trial){.batch = {.num_samples = NUM_SAMPLES,
                                       .num_tasks = NUM_TASKS,
                                       .num_dense = 1,
                                       .dense = (ph_real[NUM_SAMPLES]){0},
                                       .teacher = teacher,
                                       .teacher_mask = has_masks ? teacher_mask : NULL,
                                       .label_mask = has_masks ? label_mask : NULL},
        .build = build,
        .num_expected = NUM_VALUES,
        .expected = expected});
}

/* Odds are four times as large where a quarter of the negatives was kept. */
static void targets_are_those_of_sampled_rows(void **state)
{
    (void)state;
    for (int has_masks = 0; has_masks < 2; has_masks++) {
        double expected[3][NUM_VALUES];
        for (size_t i = 0; i < NUM_VALUES; i++) {
            const double odds = (double)teacher[i] / (1 - (double)teacher[i]) / rate;
            const bool is_known = !has_masks || teacher_mask[i] != 0;
            expected[0][i] = is_known ? fmin(scale * odds / (1 + odds), 1) : 0;
            expected[1][i] = is_known ? log(odds) : 0;
            expected[2][i] = is_known && (!has_masks || label_mask[i] != 0);
        }
        check(targets, has_masks != 0, expected[0]);
        check(log_odds, has_masks != 0, expected[1]);
        check(known, has_masks != 0, expected[2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_those_of_sampled_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
