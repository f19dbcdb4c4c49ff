/* Merged statistics against two passes in double, for any cuts of the rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/thread/parallel.h"
#include "support/test_support.h"
#include "train/probe/row_statistics.h"

enum { WIDTH = 23, ROWS = 1500 };

static ph_real rows[ROWS][WIDTH];

/* Fills rows with features of unequal scale and mean, of which neighbours depend on each other, some with
 * heavy tails, and one is constant. */
static int fill_rows(void **state)
{
    (void)state;
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    for (size_t r = 0; r < ROWS; r++)
        for (size_t i = 0; i < WIDTH; i++) {
            const double normal = ph__rng_next_normal(&random);
            const double number = i % 3 == 2 ? normal * normal * normal : normal;
            const double former = i > 0 ? (double)rows[r][i - 1] / pow(1.4, (double)i) : 0;
            rows[r][i] = (ph_real)(i == 7 ? 3 : pow(1.5, (double)i) * (number + .5 * former) + 40);
        }
    return 0;
}

static double mean_of(size_t i)
{
    double sum = 0;
    for (size_t r = 0; r < ROWS; r++)
        sum += (double)rows[r][i];
    return sum / ROWS;
}

static double power_sum(size_t i, size_t j, int power)
{
    const double mean_i = mean_of(i), mean_j = mean_of(j);
    double sum = 0;
    for (size_t r = 0; r < ROWS; r++)
        sum += pow(((double)rows[r][i] - mean_i) * ((double)rows[r][j] - mean_j), power);
    return sum;
}

static void check(const struct ph__row_statistics *statistics)
{
    assert_int_equal(statistics->count, ROWS);
    for (size_t i = 0; i < WIDTH; i++) {
        const double square = power_sum(i, i, 1);
        assert_near(statistics->mean[i], mean_of(i), 1e-9 * fabs(mean_of(i)), 0);
        for (size_t j = 0; j < WIDTH; j++) {
            const double size = sqrt(square * power_sum(j, j, 1)) / (ROWS - 1);
            assert_near(ph__row_statistics_covariance(statistics, i, j), power_sum(i, j, 1) / (ROWS - 1),
                1e-5 * size + 1e-12, 0);
        }
        const double kurtosis = square > 0 ? ROWS * power_sum(i, i, 2) / (square * square) : 0;
        assert_near(ph__row_statistics_kurtosis(statistics, i), kurtosis, 1e-5 * kurtosis, 0);
    }
}

static void merged_statistics_are_those_of_two_passes(void **state)
{
    (void)state;
    static const size_t cuts[] = {ROWS, 1, 7, 64, 333, 1499};
    struct ph__team *team = NULL;
    struct ph__gemm *gemm = NULL;
    assert_ok(ph__team_create(2, &team));
    assert_ok(ph__gemm_create(team, false, &gemm));
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
        struct ph__row_statistics statistics;
        assert_ok(ph__row_statistics_open(&statistics, WIDTH, gemm));
        for (size_t first = 0; first < ROWS; first += cuts[c])
            assert_ok(ph__row_statistics_add(
                &statistics, gemm, first + cuts[c] < ROWS ? cuts[c] : ROWS - first, rows[first]));
        assert_ok(ph__row_statistics_add(&statistics, gemm, 0, NULL));
        check(&statistics);
        ph__row_statistics_close(&statistics);
    }
    ph__gemm_destroy(gemm);
    ph__team_destroy(team);
}

/* Drawn rows have the mean and the covariance of the distribution. */
static void drawn_rows_have_the_distribution(void **state)
{
    (void)state;
    enum { DRAWN = 40000 };
    static ph_real drawn[DRAWN * WIDTH];
    struct ph__rng_sequence random = {.key = {.seed = test_seed()}};
    struct ph__team *team = NULL;
    struct ph__gemm *gemm = NULL;
    struct ph__row_statistics learnt, again;
    assert_ok(ph__team_create(1, &team));
    assert_ok(ph__gemm_create(team, false, &gemm));
    assert_ok(ph__row_statistics_open(&learnt, WIDTH, gemm));
    assert_ok(ph__row_statistics_open(&again, WIDTH, gemm));
    assert_ok(ph__row_statistics_add(&learnt, gemm, ROWS, rows[0]));
    assert_ok(ph__row_statistics_draw(&learnt, &random, DRAWN, drawn));
    assert_ok(ph__row_statistics_add(&again, gemm, DRAWN, drawn));
    for (size_t i = 0; i < WIDTH; i++) {
        const double deviation = sqrt(ph__row_statistics_covariance(&learnt, i, i));
        assert_near(again.mean[i], learnt.mean[i], .03 * deviation + 1e-6 * fabs(learnt.mean[i]), 0);
        for (size_t j = 0; j < WIDTH; j++) {
            const double size = deviation * sqrt(ph__row_statistics_covariance(&learnt, j, j));
            assert_near(ph__row_statistics_covariance(&again, i, j),
                ph__row_statistics_covariance(&learnt, i, j),
                .05 * size + 1e-6 * learnt.mean[i] * learnt.mean[i], 0);
        }
    }
    ph__row_statistics_close(&learnt);
    ph__row_statistics_close(&again);
    ph__gemm_destroy(gemm);
    ph__team_destroy(team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_rows_have_the_distribution),
        cmocka_unit_test(merged_statistics_are_those_of_two_passes),
    };
    return cmocka_run_group_tests(tests, fill_rows, NULL);
}
