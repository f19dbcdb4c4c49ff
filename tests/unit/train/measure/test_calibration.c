/* Bins against counts made sample by sample, intervals against what defines them. */
#include "train/measure/calibration.h"

#include <math.h>
#include <string.h>

#include "support/test_support.h"

enum { NUM_SAMPLES = 5000 };

static ph_real scores[NUM_SAMPLES], labels[NUM_SAMPLES];

/* Scores around -2, some far out, labels that follow them but not exactly. */
static void make_samples(struct ph__calibration *calibration)
{
    uint64_t state = test_seed();
    *calibration = (struct ph__calibration){0};
    for (size_t i = 0; i < NUM_SAMPLES; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        double uniform = (double)(state >> 11) / (double)(1ull << 53);
        scores[i] = (ph_real)(i % 50 == 0 ? 40 * uniform - 20 : 6 * uniform - 5);
        state = state * 6364136223846793005u + 1442695040888963407u;
        labels[i] =
            (double)(state >> 11) / (double)(1ull << 53) < 1 / (1 + exp(-1.3 * (double)scores[i])) ? 1 : 0;
        ph__calibration_add(calibration, scores[i], labels[i]);
    }
}

static void bins_count_what_lies_between_their_edges(void **state)
{
    (void)state;
    struct ph__calibration calibration;
    make_samples(&calibration);
    for (size_t bin = 0; bin < PH_CALIBRATION_BINS; bin++) {
        double low = bin == 0 ? -(double)INFINITY : ph__calibration_edge(bin);
        double high = bin + 1 == PH_CALIBRATION_BINS ? (double)INFINITY : ph__calibration_edge(bin + 1);
        double predicted = 0, observed = 0;
        uint64_t count = 0;
        for (size_t i = 0; i < NUM_SAMPLES; i++)
            if ((double)scores[i] >= low && (double)scores[i] < high) {
                count++;
                predicted += 1 / (1 + exp(-(double)scores[i]));
                observed += (double)labels[i];
            }
        assert_int_equal(calibration.bins[bin].count, count);
        assert_near(calibration.bins[bin].predicted, predicted, 1e-9, 1e-9);
        assert_near(calibration.bins[bin].observed, observed, 0, 0);
    }
    assert_int_equal(ph__calibration_count(&calibration), NUM_SAMPLES);
    assert_near(ph__calibration_edge(1), -8, 0, 0);
    assert_near(ph__calibration_edge(PH_CALIBRATION_BINS - 1), 8, 0, 0);
}

static void what_is_no_number_is_left_out_and_infinities_are_at_the_ends(void **state)
{
    (void)state;
    struct ph__calibration calibration = {0};
    ph__calibration_add(&calibration, (ph_real)NAN, 1);
    assert_int_equal(ph__calibration_count(&calibration), 0);
    ph__calibration_add(&calibration, (ph_real)INFINITY, 1);
    ph__calibration_add(&calibration, -(ph_real)INFINITY, 0);
    assert_int_equal(calibration.bins[PH_CALIBRATION_BINS - 1].count, 1);
    assert_int_equal(calibration.bins[0].count, 1);
}

static void groups_lose_nothing_and_are_of_like_size(void **state)
{
    (void)state;
    struct ph__calibration calibration;
    make_samples(&calibration);
    for (size_t max_groups = 1; max_groups <= 30; max_groups++) {
        struct ph__calibration_bin groups[30];
        size_t num_groups = ph__calibration_group(&calibration, max_groups, groups);
        uint64_t count = 0;
        double last = 0;
        assert_in_range(num_groups, 1, max_groups);
        for (size_t g = 0; g < num_groups; g++) {
            double mean = groups[g].predicted / (double)groups[g].count;
            assert_true(mean > last);
            last = mean;
            count += groups[g].count;
            if (g + 1 < num_groups)
                assert_true(groups[g].count * max_groups >= NUM_SAMPLES);
        }
        assert_int_equal(count, NUM_SAMPLES);
    }
    const struct ph__calibration empty = {0};
    struct ph__calibration_bin none[4];
    assert_int_equal(ph__calibration_group(&empty, 4, none), 0);
}

static void groups_without_a_positive_join_their_neighbours(void **state)
{
    (void)state;
    struct ph__calibration_bin groups[] = {
        {10, 0.1, 0}, {10, 0.2, 0}, {10, 0.3, 1}, {10, 0.4, 2}, {10, 0.5, 0}, {10, 0.6, 3}, {10, 0.7, 0}};
    assert_int_equal(ph__calibration_join(groups, 7), 3);
    static const double wanted[][3] = {{30, 0.6, 1}, {10, 0.4, 2}, {30, 1.8, 3}};
    for (size_t i = 0; i < 3; i++) {
        assert_near((double)groups[i].count, wanted[i][0], 0, 0);
        assert_near(groups[i].predicted, wanted[i][1], 1e-12, 0);
        assert_near(groups[i].observed, wanted[i][2], 0, 0);
    }
    struct ph__calibration_bin none[] = {{10, 0.1, 0}, {10, 0.2, 0}};
    assert_int_equal(ph__calibration_join(none, 2), 1);
    assert_int_equal(none[0].count, 20);
    assert_int_equal(ph__calibration_join(none, 0), 0);
}

/* Wilson's interval ends where the rate seen is z standard errors away from the end itself. */
static void an_interval_ends_where_the_rate_would_just_be_believed(void **state)
{
    (void)state;
    static const double cases[][2] = {{3, 10}, {1, 200}, {150, 200}, {4999, 10000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double rate = cases[i][0] / cases[i][1], low, high;
        ph__rate_interval(cases[i][0], cases[i][1], &low, &high);
        assert_true(low < rate && rate < high);
        assert_near((rate - low) / sqrt(low * (1 - low) / cases[i][1]), 1.959964, 1e-6, 0);
        assert_near((high - rate) / sqrt(high * (1 - high) / cases[i][1]), 1.959964, 1e-6, 0);
    }
    double low, high;
    ph__rate_interval(0, 5, &low, &high);
    assert_true(low == 0 && high > 0.4 && high < 0.6);
    ph__rate_interval(5, 5, &low, &high);
    assert_true(high == 1 && low > 0.4 && low < 0.6);
}

static void bins_come_back_from_json(void **state)
{
    (void)state;
    struct ph__calibration calibration, read = {0};
    make_samples(&calibration);
    struct ph__json *json = ph__calibration_json(&calibration);
    assert_true(ph__calibration_from_json(json, &read));
    assert_memory_equal(&read, &calibration, sizeof read);
    ph__json_destroy(json);
}

static void bins_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"{}", "[[0,1,0.5]]", "[[-1,1,0.5,1]]", "[[130,1,0.5,1]]",
        "[[3,0,0.5,1]]", "[[3,1,null,1]]", "[7]", "[[3,1,1.5,1]]", "[[3,2,1.5,-1]]",
        "[[3,9223372036854775807,1.5,1]]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct ph__json *json = NULL;
        struct ph__calibration read = {.bins[5] = {7, 1, 1}};
        assert_ok(ph__json_parse(texts[i], strlen(texts[i]), "text", PH_ERROR_DATA, &json));
        assert_false(ph__calibration_from_json(json, &read));
        assert_int_equal(read.bins[5].count, 7);
        ph__json_destroy(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bins_count_what_lies_between_their_edges),
        cmocka_unit_test(what_is_no_number_is_left_out_and_infinities_are_at_the_ends),
        cmocka_unit_test(groups_lose_nothing_and_are_of_like_size),
        cmocka_unit_test(groups_without_a_positive_join_their_neighbours),
        cmocka_unit_test(an_interval_ends_where_the_rate_would_just_be_believed),
        cmocka_unit_test(bins_come_back_from_json),
        cmocka_unit_test(bins_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
