/* A row's squares as row-wise Adagrad sums them (kernel.h), and the step's rate from their sum. Four
 * consecutive blocks of columns are a four, FOUR_BLOCKS vectors. A group is FOURS fours, as many as numbers
 * fit a 128-bit lane; their sums are computed together. Missing columns are zeros, which change no sum. */
#ifndef PH_KERNEL_ROWWISE_SQUARES_H
#define PH_KERNEL_ROWWISE_SQUARES_H

#include <math.h>

#include "kernel/simd/simd.h"

enum { FOUR_BLOCKS = 4 * PH_SQUARES_COLUMNS / VF_WIDTH, FOURS = 4, GROUP_VECTORS = FOURS * FOUR_BLOCKS };

/* Stores the block sums of the first `columns` <= VF_WIDTH of g. */
PH_INLINE void store_blocks(float *blocks_out, vf g, size_t columns)
{
    const vf square = vf_mul(g, g);
    const size_t count = (columns + PH_SQUARES_COLUMNS - 1) / PH_SQUARES_COLUMNS;
    vf_store_mask(blocks_out, vf_first(count), vf_firsts_of_fours(vf_sums_in_fours(&square, 1)));
}

/* sums[p]: block sums of vectors p, FOUR_BLOCKS + p ... of g, which has `fours` fours: 1, 2 or 4, a
 * constant. */
PH_INLINE void square_blocks(const vf *g, size_t fours, vf sums[FOUR_BLOCKS])
{
    PH_UNROLL
    for (size_t p = 0; p < FOUR_BLOCKS; p++) {
        vf squares[FOURS];
        PH_UNROLL
        for (size_t i = 0; i < fours; i++)
            squares[i] = vf_mul(g[i * FOUR_BLOCKS + p], g[i * FOUR_BLOCKS + p]);
        sums[p] = vf_sums_in_fours(squares, fours);
    }
}

/* s += mean g_d^2; returns lr / (sqrt(s) + eps). */
PH_INLINE vf rowwise_rate(const struct ph__optimizer_step *step, float mean_square, float *s)
{
    *s += mean_square;
    return vf_set1(step->learning_rate / (sqrtf(*s) + step->epsilon));
}

#endif
