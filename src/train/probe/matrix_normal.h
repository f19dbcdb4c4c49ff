/* Distribution of a weight while it is learnt: matrix normal, W (M,N) ~ mean + L_U Z L_V^T, whose rows vary
 * together by U = L_U L_U^T (M,M) and columns by V (N,N). Fitted by flip-flop to the deviations W_c of each
 * weight from the running mean before it:
 *
 *     U* = (1/N) W_c (V + eps I)^-1 W_c^T,   V* = (1/M) W_c^T (U + eps I)^-1 W_c
 *
 * U and V move towards them by 1 - momentum, faster while fewer have been seen; U's mean variance is kept at
 * 1. One thread at a time. Source: LoKA (arXiv 2605.10886), the probe; the flip-flop is Dutilleul's (1999).
 */
#ifndef PH_TRAIN_MATRIX_NORMAL_H
#define PH_TRAIN_MATRIX_NORMAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "phloem/status.h"
#include "phloem/tensor.h"

struct ph__matrix_normal { /* zero-initialised is closed */
    size_t rows, columns;
    double momentum;
    uint64_t count;                       /* weights that were seen */
    double *mean;                         /* (rows, columns) */
    double *u, *v;                        /* (rows, rows), (columns, columns) */
    double *deviations, *factor, *solved; /* scratch */
};

/* momentum: .9 to .999. */
ph_status ph__matrix_normal_open(
    struct ph__matrix_normal *normal, size_t rows, size_t columns, double momentum);
void ph__matrix_normal_close(struct ph__matrix_normal *normal);
uint64_t ph__matrix_normal_bytes(size_t rows, size_t columns); /* of an open one */

void ph__matrix_normal_add(struct ph__matrix_normal *normal, const ph_real *weight);

/* Draws a weight (rows, columns): the mean where fewer than two were seen. */
void ph__matrix_normal_draw(
    struct ph__matrix_normal *normal, struct ph__rng_sequence *random, ph_real *weight_out);

#endif
