/* Products of a weight with an expansion of each sample.
 *
 *   Y_b (K,P) = W (K,R) Z_b + bias
 *
 * Z_b (R,P), the sample's expansion, is made of the operator's inputs when it is needed, some rows at a time,
 * and never lies in memory for a whole batch: x itself, the products of all pairs of vectors, the windows of
 * a convolution.
 *
 * Rows of one sample may be short (10 numbers), so some samples are taken together in a block: its row r has
 * all samples' numbers, one sample after the other, and the weight is read once for all of them. Each number
 * of Y is one sum over ascending rows, so it does not depend on the samples beside it. The weight's gradient
 * is summed over blocks of the batch that follow from its shape, then over the blocks in order. */
#ifndef PH_OP_EXPANSION_H
#define PH_OP_EXPANSION_H

#include "op/operator.h"

/* Samples [first, first + count), handled by one worker. */
struct ph__sample_block {
    size_t first, count;
    ph_real *kept; /* (samples, kept_reals): kept by begin for the other functions */
    ph_real *room; /* (chunk_rows, count, width) */
};

struct ph__expansion {
    const struct ph__kernels *kernels;
    const void *source; /* the operator's data */
    size_t rows, width; /* R, P; neither is 0 */
    size_t chunk_rows;  /* rows made at a time; the last chunk may have fewer */
    size_t samples;     /* samples per block: ph__expansion_samples(width), or 1 */
    size_t kept_reals;  /* per sample */
    /* Called before the block's other functions; NULL: nothing to do. */
    void (*begin)(const struct ph__expansion *expansion, const struct ph__sample_block *block);
    /* Makes rows [row, row + num_rows) of the block's expansion (num_rows, count, width); returns
     * block->room, or where the rows already stand. */
    const ph_real *(*make)(const struct ph__expansion *expansion, const struct ph__sample_block *block,
        size_t row, size_t num_rows);
    /* Backward data: takes the gradient of these rows, in ascending order until all rows have come, and may
     * overwrite it. `end` is called after the last; NULL: nothing to do. */
    void (*take)(const struct ph__expansion *expansion, const struct ph__sample_block *block, size_t row,
        size_t num_rows, ph_real *gradient);
    void (*end)(const struct ph__expansion *expansion, const struct ph__sample_block *block);
};

struct ph__expanded_product {
    struct ph__expansion expansion;
    size_t num_samples, outputs; /* B, K */
    const ph_real *weight;       /* number (k, r) is weight[k * output_stride + r * row_stride] */
    size_t output_stride, row_stride;
    const ph_real *bias; /* (K) or NULL */
    ph_real *y;          /* (B,K,P) */
    const ph_real *dy;   /* (B,K,P) */
    ph_real *dw, *db;    /* (K,R), and (K) or NULL */
    void *scratch;
};

/* Returns the samples of `width` > 0 numbers per row that fill a product's vectors: a power of two. */
size_t ph__expansion_samples(size_t width);

/* Run the passes. The functions ..._scratch_bytes count a pass's scratch for num_samples samples or fewer. */
size_t ph__expanded_scratch_bytes(
    const struct ph_backend *backend, const struct ph__expanded_product *product);
void ph__expanded_forward(const struct ph_backend *backend, const struct ph__expanded_product *product);
/* Hands the gradient by the expansion, made of dy, to its `take` and `end`, which write the results. */
void ph__expanded_backward_data(const struct ph_backend *backend, const struct ph__expanded_product *product);
size_t ph__expanded_weight_scratch_bytes(
    const struct ph_backend *backend, const struct ph__expanded_product *product);
void ph__expanded_backward_weight(
    const struct ph_backend *backend, const struct ph__expanded_product *product);

#endif
