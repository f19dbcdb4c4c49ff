#include "train/probe/row_statistics.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "train/probe/cholesky.h"

#define RIDGE 1e-9 /* of correlations, which are singular where features depend on each other */

static struct ph__gemm_weight_shape scatter_shape(size_t width)
{
    return (struct ph__gemm_weight_shape){.out_features = width, .in_features = width};
}

ph_status ph__row_statistics_open(struct ph__row_statistics *statistics, size_t width, struct ph__gemm *gemm)
{
    const struct ph__gemm_weight_shape shape = scatter_shape(width);
    *statistics = (struct ph__row_statistics){.width = width,
        .mean = calloc(width, sizeof(double)),
        .scatter = calloc(width * width, sizeof(double)),
        .thirds = calloc(width, sizeof(double)),
        .fourths = calloc(width, sizeof(double)),
        .deltas = calloc(width, sizeof(double)),
        .batch = calloc(width * width, sizeof(ph_real)),
        .scratch = malloc(ph__gemm_weight_scratch_bytes(gemm, &shape) + 1)};
    if (statistics->mean != NULL && statistics->scatter != NULL && statistics->thirds != NULL &&
        statistics->fourths != NULL && statistics->deltas != NULL && statistics->batch != NULL &&
        statistics->scratch != NULL)
        return PH_OK;
    ph__row_statistics_close(statistics);
    return ph__out_of_memory("statistics of %zu features", width);
}

void ph__row_statistics_close(struct ph__row_statistics *statistics)
{
    free(statistics->mean);
    free(statistics->scatter);
    free(statistics->thirds);
    free(statistics->fourths);
    free(statistics->deltas);
    free(statistics->deviations);
    free(statistics->batch);
    free(statistics->scratch);
    *statistics = (struct ph__row_statistics){.width = 0};
}

uint64_t ph__row_statistics_bytes(const struct ph__row_statistics *statistics, size_t rows)
{
    const uint64_t width = statistics->width;
    return width *
           (width * (sizeof(double) + sizeof(ph_real)) + 4 * sizeof(double) + (rows + 1) * sizeof(ph_real));
}

static double mean_of(size_t rows, size_t stride, const ph_real *x)
{
    double sum = 0;
    for (size_t r = 0; r < rows; r++)
        sum += (double)x[r * stride];
    return sum / (double)rows;
}

/* Merges the second, third and fourth powers of a feature's deviations, of which those from the batch's mean
 * are given. */
static void merge_powers(
    struct ph__row_statistics *statistics, size_t feature, double rows, double delta, const double sums[3])
{
    const double n = (double)statistics->count, all = n + rows;
    const double second = statistics->scatter[feature * statistics->width + feature];
    const double third = statistics->thirds[feature];
    statistics->fourths[feature] +=
        sums[2] +
        delta * delta * delta * delta * n * rows * (n * n - n * rows + rows * rows) / (all * all * all) +
        6 * delta * delta * (n * n * sums[0] + rows * rows * second) / (all * all) +
        4 * delta * (n * sums[1] - rows * third) / all;
    statistics->thirds[feature] += sums[1] + delta * delta * delta * n * rows * (n - rows) / (all * all) +
                                   3 * delta * (n * sums[0] - rows * second) / all;
}

/* Takes a feature's deviations from its mean in the batch, and merges all but the scatter. Returns how far
 * that mean lies from the one before. */
static double take_feature(
    struct ph__row_statistics *statistics, size_t feature, size_t rows, const ph_real *x)
{
    const size_t width = statistics->width;
    const double mean = mean_of(rows, width, x + feature);
    double sums[3] = {0, 0, 0};
    for (size_t r = 0; r < rows; r++) {
        const double deviation = (double)x[r * width + feature] - mean, square = deviation * deviation;
        statistics->deviations[r * width + feature] = (ph_real)deviation;
        sums[0] += square;
        sums[1] += square * deviation;
        sums[2] += square * square;
    }
    const double delta = mean - statistics->mean[feature];
    merge_powers(statistics, feature, (double)rows, delta, sums);
    return delta;
}

ph_status ph__row_statistics_add(
    struct ph__row_statistics *statistics, struct ph__gemm *gemm, size_t rows, const ph_real *x)
{
    const size_t width = statistics->width;
    const struct ph__gemm_weight_shape shape = scatter_shape(width);
    const double n = (double)statistics->count, all = n + (double)rows;
    if (rows == 0)
        return PH_OK;
    PH_TRY(ph__array_reserve((void **)&statistics->deviations, &statistics->deviations_capacity,
        rows * width + width, sizeof *statistics->deviations));
    double *deltas = statistics->deltas;
    for (size_t i = 0; i < width; i++)
        deltas[i] = take_feature(statistics, i, rows, x);
    const ph_status status = ph__gemm_backward_weight(gemm, &shape, rows, statistics->deviations,
        statistics->deviations, statistics->batch, NULL, statistics->scratch);
    for (size_t i = 0; i < width && status == PH_OK; i++) {
        for (size_t j = 0; j < width; j++)
            statistics->scatter[i * width + j] +=
                (double)statistics->batch[i * width + j] + n * (double)rows / all * deltas[i] * deltas[j];
        statistics->mean[i] += (double)rows / all * deltas[i];
    }
    statistics->count += rows;
    return status;
}

double ph__row_statistics_covariance(const struct ph__row_statistics *statistics, size_t i, size_t j)
{
    return statistics->scatter[i * statistics->width + j] / ((double)statistics->count - 1);
}

double ph__row_statistics_kurtosis(const struct ph__row_statistics *statistics, size_t feature)
{
    const double second = statistics->scatter[feature * statistics->width + feature];
    return second > 0 ? (double)statistics->count * statistics->fourths[feature] / (second * second) : 0;
}

/* Fills the correlations and the deviations of the features; a constant one goes with no other. */
static void correlate(const struct ph__row_statistics *statistics, double *correlation, double *deviations)
{
    const size_t width = statistics->width;
    for (size_t i = 0; i < width; i++)
        deviations[i] = sqrt(ph__row_statistics_covariance(statistics, i, i));
    for (size_t i = 0; i < width; i++)
        for (size_t j = 0; j <= i; j++) {
            const double scale = deviations[i] * deviations[j];
            correlation[i * width + j] =
                scale > 0 ? ph__row_statistics_covariance(statistics, i, j) / scale : i == j;
        }
}

/* row = mean + deviations L z, correlation = L L^T */
ph_status ph__row_statistics_draw(const struct ph__row_statistics *statistics,
    struct ph__rng_sequence *random, size_t num_rows, ph_real *rows_out)
{
    const size_t width = statistics->width;
    double *correlation = malloc((2 * width + 2) * width * sizeof *correlation);
    if (correlation == NULL)
        return ph__out_of_memory("a covariance of %zu features", width);
    double *lower = correlation + width * width, *deviations = lower + width * width, *z = deviations + width;
    correlate(statistics, correlation, deviations);
    ph__cholesky(width, correlation, RIDGE, lower);
    for (size_t r = 0; r < num_rows; r++) {
        for (size_t i = 0; i < width; i++)
            z[i] = ph__rng_next_normal(random);
        for (size_t i = 0; i < width; i++)
            rows_out[r * width + i] =
                (ph_real)(statistics->mean[i] + deviations[i] * ph__dot(i + 1, lower + i * width, z));
    }
    free(correlation);
    return PH_OK;
}
