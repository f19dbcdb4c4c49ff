/* The area in bins against the exact one. */
#include "tensor/score_bins.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "support/test_support.h"
#include "tensor/rank.h"

#define N 200000

/* Scores spread by `scale`, labels that follow them half-heartedly. */
static void draw(double scale, ph_real *scores, ph_real *labels)
{
    struct ph_rng_sequence random = {.key = {.seed = test_seed()}};
    for (size_t i = 0; i < N; i++) {
        double logit = ph__rng_next_normal(&random);
        scores[i] = (ph_real)(scale * (logit + ph__rng_next_normal(&random)));
        labels[i] = ph__rng_next_uniform(&random) < 1 / (1 + exp(2 - logit)) ? 1 : 0;
    }
}

static void the_exact_area_is_within_the_stated_error(void **state)
{
    (void)state;
    ph_real *scores = malloc(N * sizeof *scores), *labels = malloc(N * sizeof *labels);
    assert_true(scores != NULL && labels != NULL);
    const double scales[] = {1e-6, 1e-3, 0.1, 1, 5};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        double exact, auc, error;
        struct ph_score_bins *bins;
        draw(scales[i], scores, labels);
        assert_ok(ph__auc(N, scores, labels, &exact));
        assert_ok(ph__score_bins_create(&bins));
        ph__score_bins_add(bins, N / 3, scores, labels);
        ph__score_bins_add(bins, N - N / 3, scores + N / 3, labels + N / 3);
        ph__score_bins_auc(bins, &auc, &error);
        ph__score_bins_destroy(bins);
        printf("scale %g: exact %.9f, in bins %.9f within %.1e\n", scales[i], exact, auc, error);
        assert_true(fabs(auc - exact) <= error + 1e-12);
        if (scales[i] >= 0.1 && scales[i] <= 5)
            assert_true(error < 1e-5 && fabs(auc - exact) < 1e-7);
    }
    free(scores);
    free(labels);
}

static void ties_count_half_and_one_class_has_no_area(void **state)
{
    (void)state;
    const ph_real scores[] = {1, 1, 2, (ph_real)NAN}, labels[] = {0, 1, 1, 1};
    double auc, error;
    struct ph_score_bins *bins;
    assert_ok(ph__score_bins_create(&bins));
    ph__score_bins_auc(bins, &auc, &error);
    assert_true(isnan(auc));
    ph__score_bins_add(bins, 3, scores, labels);
    ph__score_bins_auc(bins, &auc, &error);
    assert_true(auc == 0.75);
    ph__score_bins_add(bins, 1, scores + 3, labels + 3);
    ph__score_bins_auc(bins, &auc, &error);
    assert_true(isnan(auc));
    ph__score_bins_destroy(bins);
    ph__score_bins_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exact_area_is_within_the_stated_error),
        cmocka_unit_test(ties_count_half_and_one_class_has_no_area),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
