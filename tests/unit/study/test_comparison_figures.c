#include "study/comparison_figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/test_support.h"

static struct ph_config config = {.data = {.paths.valid = "valid.csv", .paths.test = "test.csv"}};
static const int64_t seeds[] = {1, 2, 3, 4};
static struct ph__compared_run runs[2][4];
static struct ph__compared rows[2];
static const struct ph__comparison comparison = {.rows = rows, .num_rows = 2, .seeds = seeds, .num_seeds = 4};

static void finish(size_t row, size_t seed, double auc, double logloss)
{
    struct ph__compared_run *run = &runs[row][seed];
    run->state = PH_RUN_FINISHED;
    run->summary.test = (struct ph_metrics){.auc = auc, .logloss = logloss, .ne = 0.5, .calibration = 1};
    run->summary.valid = (struct ph_metrics){.auc = 0.75, .logloss = 0.25};
    run->summary.parameters = 100;
    run->summary.epochs = 2 + seed;
    run->summary.samples_per_s = 1000 * (double)(seed * seed + 1);
    run->summary.train_seconds = 4;
    run->summary.flops_per_sample = 50;
}

static int begin(void **state)
{
    (void)state;
    memset(runs, 0, sizeof runs);
    config.published = (struct ph__published_settings){.source = ""};
    for (size_t row = 0; row < 2; row++)
        rows[row] = (struct ph__compared){
            .name = row == 0 ? "a" : "b", .config = &config, .test_key = "same", .runs = runs[row]};
    return 0;
}

static struct ph__comparison_figures figures_of(size_t row)
{
    struct ph__comparison_figures figures;
    assert_ok(ph__comparison_figures(&comparison, row, &figures));
    return figures;
}

/* SciPy 1.17: ttest_rel of (.71, .74, .72) and (.70, .71, .72), its confidence_interval(.95). */
static void differences_are_paired_over_common_seeds(void **state)
{
    (void)state;
    finish(0, 0, 0.70, 0.4);
    finish(0, 1, 0.71, 0.4);
    finish(0, 2, 0.72, 0.4);
    finish(1, 0, 0.71, 0.3);
    finish(1, 1, 0.74, 0.3);
    finish(1, 2, 0.72, 0.3);
    finish(1, 3, 0.99, 0.1);
    const struct ph__comparison_figures figures = figures_of(1);
    assert_int_equal(figures.pairing, PH_PAIRED);
    assert_int_equal(figures.num_pairs, 3);
    assert_int_equal(figures.num_finished, 4);
    assert_near(figures.auc_difference.mean, 0.04 / 3, 1e-15, 0);
    assert_near(figures.auc_difference.half_width, 0.0379458303359676, 1e-12, 0);
    assert_near(figures.logloss_difference.mean, -0.1, 1e-15, 0);
    assert_near(figures.logloss_difference.half_width, 0, 1e-15, 0);
    assert_near(figures.test_auc.mean, (0.71 + 0.74 + 0.72 + 0.99) / 4, 1e-15, 0);
    assert_near(figures.epochs, 3.5, 1e-15, 0);
    assert_near(figures.samples_per_s, 3500, 1e-9, 0);
    assert_near(figures.parameters, 100, 0, 0);
    assert_int_equal(figures_of(0).pairing, PH_PAIR_IS_BASE);
}

static void one_seed_has_no_spread(void **state)
{
    (void)state;
    finish(0, 2, 0.70, 0.4);
    finish(1, 2, 0.75, 0.5);
    const struct ph__comparison_figures figures = figures_of(1);
    assert_near(figures.test_auc.mean, 0.75, 0, 0);
    assert_near(figures.auc_difference.mean, 0.05, 1e-15, 0);
    assert_true(isnan(figures.test_auc.deviation) && isnan(figures.auc_difference.half_width));
}

static void what_has_other_test_data_is_not_paired(void **state)
{
    (void)state;
    finish(0, 0, 0.70, 0.4);
    finish(1, 0, 0.75, 0.5);
    snprintf(rows[1].test_key, sizeof rows[1].test_key, "other");
    const struct ph__comparison_figures figures = figures_of(1);
    assert_int_equal(figures.pairing, PH_PAIR_OF_OTHER_DATA);
    assert_int_equal(figures.num_pairs, 0);
    assert_true(isnan(figures.auc_difference.mean));
    assert_near(figures.test_auc.mean, 0.75, 0, 0);
}

static void what_failed_is_counted_and_not_measured(void **state)
{
    (void)state;
    finish(0, 0, 0.70, 0.4);
    runs[1][0].state = PH_RUN_FAILED;
    runs[1][0].summary.test.auc = 0.1;
    struct ph__comparison_figures figures = figures_of(1);
    assert_int_equal(figures.pairing, PH_PAIR_HAS_NO_SEED);
    assert_int_equal(figures.num_failed, 1);
    assert_int_equal(figures.num_finished, 0);
    assert_true(isnan(figures.test_auc.mean) && isnan(figures.parameters) && isnan(figures.samples_per_s));
}

static void what_is_published_stands_beside_it(void **state)
{
    (void)state;
    for (size_t seed = 0; seed < 4; seed++)
        finish(0, seed, 0.70, 0.4);
    assert_null(ph__bar_word(&(struct ph__comparison_figures){.bar_auc = (double)NAN}));
    config.published = (struct ph__published_settings){.auc = 0.69, .bar_auc = 0.70};
    struct ph__comparison_figures figures = figures_of(0);
    assert_near(figures.published_auc_difference, 0.01, 1e-15, 0);
    assert_true(isnan(figures.published_logloss) && isnan(figures.published_logloss_difference));
    assert_string_equal(ph__bar_word(&figures), "reached");
    config.published.bar_auc = 0.71;
    figures = figures_of(0);
    assert_string_equal(ph__bar_word(&figures), "missed");
    runs[0][2].state = PH_RUN_FAILED;
    figures = figures_of(0);
    assert_near(figures.bar_auc, 0.71, 0, 0);
    assert_null(ph__bar_word(&figures)); /* the seed that failed may have been the one that counts */
    runs[0][2].state = PH_RUN_FINISHED;
    rows[0].is_variant = true;
    figures = figures_of(0);
    assert_true(isnan(figures.published_auc) && ph__bar_word(&figures) == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(differences_are_paired_over_common_seeds, begin),
        cmocka_unit_test_setup(one_seed_has_no_spread, begin),
        cmocka_unit_test_setup(what_has_other_test_data_is_not_paired, begin),
        cmocka_unit_test_setup(what_failed_is_counted_and_not_measured, begin),
        cmocka_unit_test_setup(what_is_published_stands_beside_it, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
