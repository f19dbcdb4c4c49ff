/* A row's squares as row-wise Adagrad sums them (kernel.h), and the step that it makes of them. Four
 * consecutive blocks of columns are FOUR_BLOCKS vectors, and of as many such fours as numbers fit a 128-bit
 * lane the sums are made together. Columns that are not there are zeros, which change no sum. */
#ifndef PH_KERNEL_ROWWISE_SQUARES_H
#define PH_KERNEL_ROWWISE_SQUARES_H

#include <math.h>

#include "kernel/simd/simd.h"

enum { FOUR_BLOCKS = 4 * PH_SQUARES_COLUMNS / VF_WIDTH, FOURS = 4, GROUP_VECTORS = FOURS * FOUR_BLOCKS };

/* The block sums of the first `columns` <= VF_WIDTH of g. */
PH_INLINE void store_blocks(float *blocks_out, vf g, size_t columns)
{
    const vf square = vf_mul(g, g);
    const size_t count = (columns + PH_SQUARES_COLUMNS - 1) / PH_SQUARES_COLUMNS;
    vf_store_mask(blocks_out, vf_first(count), vf_firsts_of_fours(vf_sums_in_fours(&square, 1)));
}

/* sums[p]: block sums of vectors p, FOUR_BLOCKS + p ... of g, of which `fours`, a constant: 1, 2 or 4, are
 * there. */
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
