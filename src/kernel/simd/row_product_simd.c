/* Row-invariant product: a block of rows x vectors of sums stays in registers while the inner dimension
 * passes, each sum one chain of multiply-adds. The size of a block decides its speed, never the bits of a
 * sum.
 *
 * Few rows take many vectors at once, so that enough independent chains hide the latency and the weights
 * stream from several places; many rows take few vectors, so that each loaded weight serves all of them.
 * Where a block has more than FEW_ROWS, arithmetic leaves time to prefetch the weights AHEAD steps before
 * they are needed: those of a whole model do not fit into the second cache.
 *
 * Where sums have few terms, writing them takes longer than computing them: then rows are finished one block
 * after the other, so that memory is written from end to end, and coming outputs are prefetched. */
#include <math.h>

#include "kernel/simd/simd.h"

#if VF_REGISTERS == 32
enum { ROWS = 14 };
#else
enum { ROWS = 6 };
#endif
enum { PANEL = PH_ROW_PRODUCT_PANEL };
enum { FEW_ROWS = 6, ONE_ROW_VECTORS = 8, GROUP = 3, NUM_GROUPS = (ROWS + GROUP - 1) / GROUP, AHEAD = 16 };
enum { FEW_TERMS = 32, BLOCKS_AHEAD = 4 };

/* Returns row r of a block, base[r / GROUP] + (r % GROUP) * stride: few enough pointers to stay in
 * registers. */
PH_INLINE const float *row_of(const float *const base[NUM_GROUPS], size_t r, size_t stride)
{
    return base[r / GROUP] + r % GROUP * stride;
}

/* Place of a vector of weights; bf16 weights lie in one half of the words from there on. */
struct weights {
    const float *reals;
    const uint32_t *words;
    vu shift; /* 16: the weights are the low halves; 0: the high ones */
};

PH_INLINE struct weights weights_of(const struct ph__row_product_args *args, size_t output)
{
    const size_t within = output % PANEL, panel = (output - within) * args->in_features;
    struct weights weights = {.shift = vu_set1(within < PANEL / 2 ? 16 : 0)};
    if (args->is_bf16)
        weights.words = (const uint32_t *)args->packed + panel / 2 + within % (PANEL / 2);
    else
        weights.reals = (const float *)args->packed + panel + within;
    return weights;
}

/* Loads vector v of a block. A block with an even number of vectors, each as wide as half a panel, begins
 * with a whole panel. */
PH_INLINE vf load_weights(const struct weights *weights, size_t k, size_t v, size_t vectors, int is_bf16)
{
    if (!is_bf16)
        return vf_load(weights->reals + k * PANEL);
    const vu words = vu_load(weights->words + k * (PANEL / 2));
    if (VF_WIDTH != PANEL / 2 || vectors % 2 != 0)
        return vf_shifted_bf16(words, weights->shift);
    return v % 2 == 0 ? vf_low_bf16(words) : vf_high_bf16(words);
}

PH_INLINE void prefetch_weights(const struct weights *weights, size_t k, int is_bf16)
{
    __builtin_prefetch(is_bf16 ? (const void *)(weights->words + k * (PANEL / 2))
                               : (const void *)(weights->reals + k * PANEL));
}

/* Prefetches the lines of a block of outputs for writing; the block may lie behind the last one. */
PH_INLINE void fetch_outputs(
    const struct ph__row_product_args *args, size_t row, size_t rows, size_t column, size_t vectors)
{
    PH_UNROLL
    for (size_t r = 0; r < rows; r++) {
        PH_UNROLL
        for (size_t v = 0; v < vectors; v++)
            __builtin_prefetch(args->y + (row + r) * args->out_features + column + v * VF_WIDTH, 1);
    }
}

/* Computes outputs [column, column + vectors * VF_WIDTH), as far as they exist, of rows [row, row + rows);
 * rows, vectors and is_bf16 are constants. */
PH_INLINE void block(const struct ph__row_product_args *args, size_t row, size_t rows, size_t column,
    size_t vectors, int is_bf16)
{
    const size_t inner = args->in_features;
    const float *base[NUM_GROUPS];
    struct weights weights[ONE_ROW_VECTORS];
    vf sum[ROWS][ONE_ROW_VECTORS];
    vmask mask[ONE_ROW_VECTORS];
    for (size_t g = 0; g * GROUP < rows; g++)
        base[g] = args->x + (row + g * GROUP) * inner;
    PH_UNROLL
    for (size_t v = 0; v < vectors; v++) {
        const size_t first = column + v * VF_WIDTH;
        const size_t left = args->out_features - first;
        mask[v] = vf_first(left < VF_WIDTH ? left : VF_WIDTH);
        weights[v] = weights_of(args, first);
        const vf bias = args->bias != NULL ? vf_load_mask(args->bias + first, mask[v]) : vf_zero();
        PH_UNROLL
        for (size_t r = 0; r < rows; r++)
            sum[r][v] = bias;
    }
    if (inner <= FEW_TERMS)
        fetch_outputs(args, row, rows, column + BLOCKS_AHEAD * vectors * VF_WIDTH, vectors);
    for (size_t k = 0; k < inner; k++) {
        vf value[ONE_ROW_VECTORS];
        PH_UNROLL
        for (size_t v = 0; v < vectors; v++) {
            if (rows > FEW_ROWS)
                prefetch_weights(&weights[v], k + AHEAD, is_bf16);
            value[v] = vf_pin(load_weights(&weights[v], k, v, vectors, is_bf16));
        }
        PH_UNROLL
        for (size_t r = 0; r < rows; r++) {
            const vf factor = vf_set1(row_of(base, r, inner)[k]);
            PH_UNROLL
            for (size_t v = 0; v < vectors; v++)
                sum[r][v] = vf_fma(factor, value[v], sum[r][v]);
        }
    }
    const vf least = vf_set1(args->is_rectified ? 0 : -INFINITY);
    PH_UNROLL
    for (size_t r = 0; r < rows; r++) {
        float *y = args->y + (row + r) * args->out_features + column;
        PH_UNROLL
        for (size_t v = 0; v < vectors; v++)
            vf_store_mask(y + v * VF_WIDTH, mask[v], vf_max(least, sum[r][v]));
    }
}

/* X(rows, vectors) for every size of block */
#define UP_TO_TWO(X, rows) X(rows, 1) X(rows, 2)
#define UP_TO_FOUR(X, rows) UP_TO_TWO(X, rows) X(rows, 4)
#define UP_TO_EIGHT(X, rows) UP_TO_FOUR(X, rows) X(rows, 8)
#if VF_REGISTERS == 32
#define BLOCKS(X)     \
    UP_TO_EIGHT(X, 1) \
    UP_TO_EIGHT(X, 2) \
    UP_TO_FOUR(X, 3)  \
    UP_TO_FOUR(X, 4)  \
    UP_TO_FOUR(X, 5)  \
    UP_TO_FOUR(X, 6)  \
    UP_TO_TWO(X, 7)   \
    UP_TO_TWO(X, 8)   \
    UP_TO_TWO(X, 9) UP_TO_TWO(X, 10) UP_TO_TWO(X, 11) UP_TO_TWO(X, 12) UP_TO_TWO(X, 13) UP_TO_TWO(X, 14)
#else
#define BLOCKS(X) \
    UP_TO_EIGHT(X, 1) UP_TO_FOUR(X, 2) UP_TO_TWO(X, 3) UP_TO_TWO(X, 4) UP_TO_TWO(X, 5) UP_TO_TWO(X, 6)
#endif

#define CASE(rows, vectors)                         \
    case 16 * (rows) + (vectors):                   \
        block(args, row, rows, column, vectors, 0); \
        break;

static void run_block(
    const struct ph__row_product_args *args, size_t row, size_t rows, size_t column, size_t vectors)
{
    switch (16 * rows + vectors) {
        BLOCKS(CASE)
    }
}

#define CASE_BF16(rows, vectors)                    \
    case 16 * (rows) + (vectors):                   \
        block(args, row, rows, column, vectors, 1); \
        break;

static void run_block_bf16(
    const struct ph__row_product_args *args, size_t row, size_t rows, size_t column, size_t vectors)
{
    switch (16 * rows + vectors) {
        BLOCKS(CASE_BF16)
    }
}

/* Returns the most vectors that a block of `rows` rows has. */
static size_t vectors_of(size_t rows)
{
    if (rows == 1)
        return ONE_ROW_VECTORS;
    if (rows == 2)
        return VF_REGISTERS / 4;
    return rows <= FEW_ROWS ? VF_REGISTERS / 8 : 2;
}

/* Runs block `index` of num_blocks that divide the rows evenly, for outputs from `column` on. */
static void run_part(
    const struct ph__row_product_args *args, size_t index, size_t num_blocks, size_t column, size_t vectors)
{
    const size_t row = args->rows * index / num_blocks, end = args->rows * (index + 1) / num_blocks;
    (args->is_bf16 ? run_block_bf16 : run_block)(args, row, end - row, column, vectors);
}

/* Returns the most vectors, `most` halved as needed, that fit into those left. */
static size_t fitting(size_t most, size_t left)
{
    while (most > left)
        most /= 2;
    return most;
}

/* y = x W^T + bias */
void PH_SIMD(row_product)(const struct ph__row_product_args *args)
{
    const size_t num_blocks = (args->rows + ROWS - 1) / ROWS; /* blocks differ by a row at most */
    const size_t most = num_blocks > 0 ? vectors_of(args->rows / num_blocks) : 1;
    const size_t num_vectors = (args->out_features + VF_WIDTH - 1) / VF_WIDTH;
    const size_t together = args->in_features <= FEW_TERMS ? 1 : num_blocks; /* blocks of rows */
    size_t vectors;
    for (size_t first = 0; first < num_blocks; first += together) {
        for (size_t done = 0; done < num_vectors; done += vectors) {
            vectors = fitting(most, num_vectors - done);
            for (size_t b = first; b < first + together; b++)
                run_part(args, b, num_blocks, done * VF_WIDTH, vectors);
        }
    }
}
