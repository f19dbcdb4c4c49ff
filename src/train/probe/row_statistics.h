/* Distribution of the rows that enter a product: N(mean, covariance), merged batch by batch, with each
 * feature's kurtosis, which tells where a normal distribution lies.
 *
 *     delta = mean_b - mean,  n' = n + B,  mean += (B / n') delta,
 *     scatter += scatter_b + (n B / n') delta delta^T,  covariance = scatter / (n' - 1)
 *
 * One thread at a time. Source: LoKA (arXiv 2605.10886), the probe; merging by Chan, Golub and LeVeque, of
 * fourth moments by Pebay (SAND2008-6212). */
#ifndef PH_TRAIN_ROW_STATISTICS_H
#define PH_TRAIN_ROW_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "kernel/gemm.h"

struct ph__row_statistics { /* zero-initialised is closed */
    size_t width;
    uint64_t count;              /* rows */
    double *mean;                /* (width) */
    double *scatter;             /* (width, width) sums of products of deviations */
    double *thirds, *fourths;    /* (width) sums of powers of deviations */
    double *deltas;              /* (width) from the means before a batch */
    ph_real *deviations, *batch; /* (deviations_capacity), (width, width) */
    size_t deviations_capacity;
    void *scratch; /* of the product */
};

ph_status ph__row_statistics_open(struct ph__row_statistics *statistics, size_t width, struct ph__gemm *gemm);
void ph__row_statistics_close(struct ph__row_statistics *statistics);
/* Returns the bytes held for batches of so many rows; 0 when closed. */
uint64_t ph__row_statistics_bytes(const struct ph__row_statistics *statistics, size_t rows);

/* Merges rows x (rows, width). PH_ERROR_MEMORY. */
ph_status ph__row_statistics_add(
    struct ph__row_statistics *statistics, struct ph__gemm *gemm, size_t rows, const ph_real *x);

/* Returns an element of the covariance; from two rows on. */
double ph__row_statistics_covariance(const struct ph__row_statistics *statistics, size_t i, size_t j);
/* Returns the kurtosis of a feature, 3 where it is normal; 0 where it is constant. */
double ph__row_statistics_kurtosis(const struct ph__row_statistics *statistics, size_t feature);

/* Draws rows (num_rows, width) of the normal distribution. PH_ERROR_MEMORY. */
ph_status ph__row_statistics_draw(const struct ph__row_statistics *statistics,
    struct ph__rng_sequence *random, size_t num_rows, ph_real *rows_out);

#endif
