#include "support/test_support.h"

#include <math.h>

#include "train/config/schedule.h"

static double rate(const struct ph_train_settings *settings, uint64_t step)
{
    return ph__schedule_learning_rate(settings, 0.1, 1, step);
}

static void constant_stays(void **state)
{
    (void)state;
    struct ph_train_settings settings = {.schedule = PH_SCHEDULE_CONSTANT};
    assert_near(rate(&settings, 1), 0.1, 0, 0);
    assert_near(rate(&settings, 1000000), 0.1, 0, 0);
}

static void warmup_rises_in_a_line(void **state)
{
    (void)state;
    struct ph_train_settings settings = {.schedule = PH_SCHEDULE_CONSTANT, .warmup_steps = 4};
    assert_near(rate(&settings, 1), 0.025, 1e-15, 0);
    assert_near(rate(&settings, 4), 0.1, 1e-15, 0);
    assert_near(rate(&settings, 5), 0.1, 1e-15, 0);
}

static void step_cuts_every_so_many_steps_after_warmup(void **state)
{
    (void)state;
    struct ph_train_settings settings = {
        .schedule = PH_SCHEDULE_STEP, .schedule_steps = 10, .schedule_factor = 0.5, .warmup_steps = 2};
    assert_near(rate(&settings, 12), 0.1, 1e-15, 0);
    assert_near(rate(&settings, 13), 0.05, 1e-15, 0);
    assert_near(rate(&settings, 23), 0.025, 1e-15, 0);
}

static void cosine_ends_at_its_factor_and_stays_there(void **state)
{
    (void)state;
    struct ph_train_settings settings = {
        .schedule = PH_SCHEDULE_COSINE, .max_steps = 100, .schedule_factor = 0.1};
    assert_near(rate(&settings, 1), 0.1, 1e-15, 0);
    assert_near(rate(&settings, 51), 0.055, 1e-12, 0);
    assert_near(rate(&settings, 101), 0.01, 1e-15, 0);
    assert_near(rate(&settings, 500), 0.01, 1e-15, 0);
}

static void rate_does_not_fall_below_its_minimum(void **state)
{
    (void)state;
    struct ph_train_settings settings = {.schedule = PH_SCHEDULE_PLATEAU, .min_learning_rate = 1e-3};
    assert_near(ph__schedule_learning_rate(&settings, 0.1, 1e-5, 1), 1e-3, 0, 0);
    assert_near(ph__schedule_learning_rate(&settings, 1e-4, 1, 1), 1e-4, 0, 0);
}

static void settings_without_an_end_are_refused(void **state)
{
    (void)state;
    struct ph_train_settings step = {.schedule = PH_SCHEDULE_STEP};
    struct ph_train_settings cosine = {.schedule = PH_SCHEDULE_COSINE};
    assert_fails(ph__schedule_check(&step), PH_ERROR_CONFIG, "train.schedule_steps");
    assert_fails(ph__schedule_check(&cosine), PH_ERROR_CONFIG, "train.max_steps");
}

static struct ph__decision evaluated(
    struct ph__protocol *protocol, const struct ph_train_settings *settings, double auc)
{
    struct ph_metrics metrics = {.auc = auc, .logloss = 1 - auc};
    return ph__protocol_evaluated(protocol, settings, &metrics);
}

static const struct ph_train_settings bars = {
    .schedule = PH_SCHEDULE_PLATEAU, .schedule_factor = 0.1, .patience = 2};

static void plateau_cuts_after_each_evaluation_that_did_not_rise(void **state)
{
    (void)state;
    struct ph__protocol protocol = {.cuts = 1};
    assert_true(evaluated(&protocol, &bars, 0.7).is_best);
    struct ph__decision decision = evaluated(&protocol, &bars, 0.69);
    assert_true(decision.has_cut && !decision.is_best && !decision.is_stop);
    assert_near(protocol.cuts, 0.1, 1e-15, 0);
    decision = evaluated(&protocol, &bars, 0.71);
    assert_true(decision.is_best && !decision.has_cut);
    assert_near(protocol.cuts, 0.1, 1e-15, 0);
}

static void training_stops_after_patience_bad_evaluations_in_a_row(void **state)
{
    (void)state;
    struct ph__protocol protocol = {.cuts = 1};
    evaluated(&protocol, &bars, 0.7);
    assert_false(evaluated(&protocol, &bars, 0.7).is_stop);
    assert_false(evaluated(&protocol, &bars, 0.72).is_stop);
    assert_false(evaluated(&protocol, &bars, 0.72).is_stop);
    assert_true(evaluated(&protocol, &bars, 0.71).is_stop);
    assert_near(protocol.best, 0.72, 0, 0);
}

static void without_patience_training_never_stops_early(void **state)
{
    (void)state;
    struct ph_train_settings settings = bars;
    settings.patience = 0;
    struct ph__protocol protocol = {.cuts = 1};
    for (size_t i = 0; i < 10; i++)
        assert_false(evaluated(&protocol, &settings, 0.5).is_stop);
}

static void scores_that_are_no_numbers_are_no_improvement(void **state)
{
    (void)state;
    struct ph__protocol protocol = {.cuts = 1};
    const struct ph_metrics metrics = {
        .num_samples = 9, .auc = (double)NAN, .logloss = (double)NAN}; /* of scores that are NaN */
    const struct ph__decision decision = ph__protocol_evaluated(&protocol, &bars, &metrics);
    assert_true(decision.has_cut && !decision.is_best && !decision.is_incomparable);
    assert_false(protocol.has_best);
    assert_int_equal(protocol.bad_in_row, 1);
}

/* An AUC of one class, and anything of no labels. */
static void metric_that_is_not_defined_decides_nothing(void **state)
{
    (void)state;
    const struct ph_metrics undefined[] = {{.num_samples = 9, .auc = (double)NAN, .logloss = 0.3},
        {.num_samples = 0, .auc = (double)NAN, .logloss = (double)NAN}};
    struct ph__protocol protocol = {.cuts = 1};
    for (size_t i = 0; i < 10; i++) {
        const struct ph__decision decision = ph__protocol_evaluated(&protocol, &bars, &undefined[i % 2]);
        assert_true(decision.is_incomparable);
        assert_false(decision.is_best || decision.has_cut || decision.is_stop);
    }
    assert_int_equal(protocol.bad_in_row, 0);
    assert_true(protocol.cuts == 1 && !protocol.has_best);
    assert_true(evaluated(&protocol, &bars, 0.5).is_best);
}

static void selection_by_logloss_wants_it_low(void **state)
{
    (void)state;
    struct ph_train_settings settings = bars;
    settings.selection = PH_SELECT_LOGLOSS;
    struct ph__protocol protocol = {.cuts = 1};
    struct ph_metrics first = {.auc = 0.5, .logloss = 0.4}, worse = {.auc = 0.9, .logloss = 0.5},
                      better = {.auc = 0.1, .logloss = 0.3};
    assert_true(ph__protocol_evaluated(&protocol, &settings, &first).is_best);
    assert_false(ph__protocol_evaluated(&protocol, &settings, &worse).is_best);
    assert_true(ph__protocol_evaluated(&protocol, &settings, &better).is_best);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_stays),
        cmocka_unit_test(warmup_rises_in_a_line),
        cmocka_unit_test(step_cuts_every_so_many_steps_after_warmup),
        cmocka_unit_test(cosine_ends_at_its_factor_and_stays_there),
        cmocka_unit_test(rate_does_not_fall_below_its_minimum),
        cmocka_unit_test(settings_without_an_end_are_refused),
        cmocka_unit_test(plateau_cuts_after_each_evaluation_that_did_not_rise),
        cmocka_unit_test(training_stops_after_patience_bad_evaluations_in_a_row),
        cmocka_unit_test(without_patience_training_never_stops_early),
        cmocka_unit_test(scores_that_are_no_numbers_are_no_improvement),
        cmocka_unit_test(metric_that_is_not_defined_decides_nothing),
        cmocka_unit_test(selection_by_logloss_wants_it_low),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
