#include "support/test_support.h"

#include <math.h>

#include "train/measure/metrics.h"

static struct ph_metrics measure(size_t n, const ph_real *scores, const ph_real *labels)
{
    struct ph_metrics metrics;
    assert_ok(ph_metrics_compute(n, scores, labels, NULL, &metrics));
    return metrics;
}

static void logloss_ne_and_calibration_follow_their_formulas(void **state)
{
    (void)state;
    const ph_real scores[] = {2, -1, 0, (ph_real)0.5}, labels[] = {1, 0, 0, 1};
    struct ph_metrics metrics = measure(4, scores, labels);
    double loss = 0, sum = 0;
    for (size_t i = 0; i < 4; i++) {
        double p = 1 / (1 + exp(-(double)scores[i]));
        loss -= labels[i] > 0 ? log(p) : log(1 - p);
        sum += p;
    }
    assert_near(metrics.logloss, loss / 4, 1e-12, 0);
    assert_near(metrics.ne, loss / 4 / log(2), 1e-12, 0);
    assert_near(metrics.calibration, sum / 2, 1e-12, 0);
    assert_near(metrics.base_rate, 0.5, 0, 0);
    assert_near(metrics.auc, 1, 0, 0);
    assert_int_equal(metrics.num_samples, 4);
}

static void base_rate_predicted_everywhere_has_ne_one(void **state)
{
    (void)state;
    ph_real score = (ph_real)log(0.25 / 0.75);
    const ph_real scores[] = {score, score, score, score}, labels[] = {1, 0, 0, 0};
    struct ph_metrics metrics = measure(4, scores, labels);
    assert_near(metrics.ne, 1, 1e-6, 0);
    assert_near(metrics.calibration, 1, 1e-6, 0);
    assert_near(metrics.auc, 0.5, 0, 0);
}

static void certainty_that_is_wrong_costs_a_finite_loss(void **state)
{
    (void)state;
    const ph_real scores[] = {-1000, 1000}, labels[] = {1, 0};
    assert_near(measure(2, scores, labels).logloss, -log(1e-7), 1e-6, 0);
}

static void soft_labels_enter_the_loss_as_they_are(void **state)
{
    (void)state;
    const ph_real scores[] = {0}, labels[] = {(ph_real)0.25};
    assert_near(measure(1, scores, labels).logloss, log(2), 1e-12, 0);
}

static void one_class_leaves_auc_and_ne_undefined(void **state)
{
    (void)state;
    const ph_real scores[] = {1, 2}, labels[] = {1, 1};
    struct ph_metrics metrics = measure(2, scores, labels);
    assert_true(isnan(metrics.auc));
    assert_true(isnan(metrics.ne));
    assert_true(isfinite(metrics.logloss));
}

static void nothing_measured_is_all_undefined(void **state)
{
    (void)state;
    struct ph_metrics metrics = measure(0, NULL, NULL);
    assert_true(
        isnan(metrics.auc) && isnan(metrics.logloss) && isnan(metrics.ne) && isnan(metrics.calibration));
}

static void predictions_keep_known_labels_of_one_task(void **state)
{
    (void)state;
    const ph_real logits[] = {1, 10, 2, 20, 3, 30}, labels[] = {0, 1, 0, 1, 1, 0},
                  mask[] = {1, 1, 1, 0, 1, 1};
    const int64_t groups[] = {7, 8, 9};
    struct ph_batch batch = {
        .num_samples = 3, .num_tasks = 2, .labels = labels, .label_mask = mask, .groups = groups};
    struct ph__predictions predictions = {0};
    assert_ok(ph__predictions_add(&predictions, &batch, logits, 1));
    assert_int_equal(predictions.count, 2);
    assert_true(predictions.scores[0] == 10 && predictions.scores[1] == 30);
    assert_true(predictions.labels[0] == 1 && predictions.labels[1] == 0);
    assert_true(predictions.groups[0] == 7 && predictions.groups[1] == 9);
    ph__predictions_fini(&predictions);
}

static void many_predictions_are_counted_in_bins(void **state)
{
    (void)state;
    enum { COUNT = 5000, BATCH = 100 };
    ph_real logits[COUNT], labels[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        logits[i] = (ph_real)((double)(i * 7919 % COUNT) / 500 - 5);
        labels[i] = (ph_real)((i * i + i / 7) % 3 == 0);
    }
    struct ph_metrics exact = measure(COUNT, logits, labels), metrics;
    struct ph__predictions predictions = {.max_exact = 1024};
    for (size_t first = 0; first < COUNT; first += BATCH) {
        const struct ph_batch batch = {.num_samples = BATCH, .num_tasks = 1, .labels = labels + first};
        assert_ok(ph__predictions_add(&predictions, &batch, logits + first, 0));
        assert_true(predictions.count <= 1024);
    }
    assert_ok(ph__predictions_measure(&predictions, &metrics));
    assert_true(metrics.logloss == exact.logloss && metrics.calibration == exact.calibration);
    assert_true(metrics.num_samples == COUNT && exact.auc_error == 0);
    assert_true(fabs(metrics.auc - exact.auc) <= metrics.auc_error + 1e-12 && metrics.auc_error < 1e-3);
    ph__predictions_fini(&predictions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logloss_ne_and_calibration_follow_their_formulas),
        cmocka_unit_test(base_rate_predicted_everywhere_has_ne_one),
        cmocka_unit_test(certainty_that_is_wrong_costs_a_finite_loss),
        cmocka_unit_test(soft_labels_enter_the_loss_as_they_are),
        cmocka_unit_test(one_class_leaves_auc_and_ne_undefined),
        cmocka_unit_test(nothing_measured_is_all_undefined),
        cmocka_unit_test(predictions_keep_known_labels_of_one_task),
        cmocka_unit_test(many_predictions_are_counted_in_bins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
