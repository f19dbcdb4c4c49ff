#include "study/tuning.h"

#include <math.h>

#include "support/test_support.h"

/* Who came furthest, then the metric, then the lower number; what has failed is last, however good it was. */
static struct ph__trial trials[] = {
    {.index = 0, .num_rungs = 1, .valid_auc = 0.9, .valid_logloss = 0.1},
    {.index = 1, .num_rungs = 2, .valid_auc = 0.7, .valid_logloss = 0.4},
    {.index = 2, .num_rungs = 2, .valid_auc = 0.8, .valid_logloss = 0.5},
    {.index = 3, .num_rungs = 2, .valid_auc = 0.95, .valid_logloss = 0.05, .failure = "it diverged"},
    {.index = 4},
    {.index = 5, .num_rungs = 2, .valid_auc = 0.8, .valid_logloss = 0.5},
    {.index = 6, .num_rungs = 2, .valid_auc = (double)NAN, .valid_logloss = (double)NAN},
};

static void assert_ordered(enum ph__tune_metric metric, enum ph_selection selection, const uint64_t *wanted)
{
    struct ph_config config = {.tune.metric = metric, .train.selection = selection};
    struct ph__tuning tuning = {
        .config = &config, .trials = trials, .num_trials = sizeof trials / sizeof *trials};
    const struct ph__trial **ordered;
    size_t num_finished;
    assert_ok(ph__tuning_order(&tuning, &ordered, &num_finished));
    assert_int_equal(num_finished, 5);
    for (size_t i = 0; i < tuning.num_trials; i++)
        assert_int_equal(ordered[i]->index, wanted[i]);
    ph__arena_fini(&tuning.arena);
}

static void who_came_furthest_is_best_and_then_the_metric_decides(void **state)
{
    (void)state;
    static const uint64_t by_auc[] = {2, 5, 1, 6, 0, 4, 3}, by_logloss[] = {1, 2, 5, 6, 0, 4, 3};
    assert_ordered(PH_TUNE_AUC, PH_SELECT_LOGLOSS, by_auc);
    assert_ordered(PH_TUNE_LOGLOSS, PH_SELECT_AUC, by_logloss);
    assert_ordered(PH_TUNE_SELECTION, PH_SELECT_AUC, by_auc);
    assert_ordered(PH_TUNE_SELECTION, PH_SELECT_LOGLOSS, by_logloss);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_came_furthest_is_best_and_then_the_metric_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
