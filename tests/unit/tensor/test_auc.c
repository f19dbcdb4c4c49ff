#include "support/test_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "tensor/auc.h"

#define MOST 300

struct sample {
    size_t n;
    ph_real scores[MOST], labels[MOST];
    int64_t groups[MOST];
};

/* Few distinct scores, so that ties are many. */
static void draw(struct ph__rng_sequence *random, size_t n, struct sample *sample)
{
    sample->n = n;
    uint64_t num_scores = 1 + ph__rng_next(random) % 20;
    for (size_t i = 0; i < n; i++) {
        sample->scores[i] = (ph_real)(ph__rng_next(random) % num_scores) - (ph_real)7.5;
        sample->labels[i] = (ph_real)(ph__rng_next(random) % 3 == 0);
        sample->groups[i] = (int64_t)(ph__rng_next(random) % 5) - 2;
    }
}

/* All pairs, within one group where wanted: NaN when there is none. */
static double auc_of_pairs(const struct sample *sample, const int64_t *group)
{
    double wins = 0, pairs = 0;
    for (size_t i = 0; i < sample->n; i++)
        for (size_t j = 0; j < sample->n; j++) {
            if (group != NULL && (sample->groups[i] != *group || sample->groups[j] != *group))
                continue;
            if (sample->labels[i] <= sample->labels[j])
                continue;
            pairs++;
            wins += sample->scores[i] > sample->scores[j]    ? 1
                    : sample->scores[i] == sample->scores[j] ? 0.5
                                                             : 0;
        }
    return pairs > 0 ? wins / pairs : (double)NAN;
}

static void assert_same(double actual, double expected)
{
    if (isnan(expected))
        assert_true(isnan(actual));
    else
        assert_near(actual, expected, 1e-12, 0);
}

static void auc_equals_the_count_of_all_pairs(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {{test_seed(), 0, ph__hash_name("pairs")}, 0};
    for (size_t round = 0; round < 200; round++) {
        struct sample sample;
        draw(&random, ph__rng_next(&random) % MOST, &sample);
        double auc;
        assert_ok(ph__auc(sample.n, sample.scores, sample.labels, &auc));
        assert_same(auc, auc_of_pairs(&sample, NULL));
    }
}

static void grouped_auc_weighs_groups_by_size_and_skips_one_class(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {{test_seed(), 0, ph__hash_name("groups")}, 0};
    for (size_t round = 0; round < 200; round++) {
        struct sample sample;
        draw(&random, ph__rng_next(&random) % 40, &sample);
        double sum = 0, weight = 0, auc;
        for (int64_t group = -2; group <= 2; group++) {
            double of_group = auc_of_pairs(&sample, &group);
            for (size_t i = 0; i < sample.n && !isnan(of_group); i++) {
                sum += sample.groups[i] == group ? of_group : 0;
                weight += sample.groups[i] == group ? 1 : 0;
            }
        }
        assert_ok(ph__grouped_auc(sample.n, sample.scores, sample.labels, sample.groups, &auc));
        assert_same(auc, weight > 0 ? sum / weight : (double)NAN);
    }
}

static void negative_zero_ties_with_zero(void **state)
{
    (void)state;
    const ph_real scores[] = {(ph_real)-0.0, (ph_real)0.0}, labels[] = {1, 0};
    double auc;
    assert_ok(ph__auc(2, scores, labels, &auc));
    assert_near(auc, 0.5, 0, 0);
}

static void infinities_rank_outermost(void **state)
{
    (void)state;
    const ph_real scores[] = {(ph_real)INFINITY, (ph_real)-INFINITY, 3, -3}, labels[] = {1, 0, 1, 0};
    double auc;
    assert_ok(ph__auc(4, scores, labels, &auc));
    assert_near(auc, 1, 0, 0);
}

static void undefined_for_one_class_or_a_score_that_is_no_number(void **state)
{
    (void)state;
    const ph_real scores[] = {1, 2}, positives[] = {1, 1}, both[] = {1, 0}, broken[] = {1, (ph_real)NAN};
    double auc;
    assert_ok(ph__auc(2, scores, positives, &auc));
    assert_true(isnan(auc));
    assert_ok(ph__auc(2, broken, both, &auc));
    assert_true(isnan(auc));
    assert_ok(ph__auc(0, scores, both, &auc));
    assert_true(isnan(auc));
}

/* The area in bins against the exact one. */

#define N 200000

/* Scores spread by `scale`, labels that follow them half-heartedly. */
static void draw_scores(double scale, ph_real *scores, ph_real *labels)
{
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
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
        struct ph__score_bins *bins;
        draw_scores(scales[i], scores, labels);
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
    struct ph__score_bins *bins;
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
        cmocka_unit_test(auc_equals_the_count_of_all_pairs),
        cmocka_unit_test(grouped_auc_weighs_groups_by_size_and_skips_one_class),
        cmocka_unit_test(negative_zero_ties_with_zero),
        cmocka_unit_test(infinities_rank_outermost),
        cmocka_unit_test(undefined_for_one_class_or_a_score_that_is_no_number),
        cmocka_unit_test(the_exact_area_is_within_the_stated_error),
        cmocka_unit_test(ties_count_half_and_one_class_has_no_area),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
