/* A block of a weight gradient: rows x vectors of C stay in registers while the samples pass; each number is
 * one chain of multiply-adds over them, which a later call continues. With four vectors and few rows, each
 * loaded vector serves all rows and each broadcast four vectors: few instructions per multiply-add decide the
 * speed. More rows take half as many vectors, if there are registers for them, so that B is read once. */
#include "kernel/simd/simd.h"

enum { FEW_ROWS = PH_WEIGHT_FEW_ROWS, VECTORS = VF_REGISTERS / 8 };
#if VF_REGISTERS == 32
enum { ROWS = PH_WEIGHT_MOST_ROWS };
#else
enum { ROWS = FEW_ROWS };
#endif

/* Adds the block's samples, one after the other. rows, vectors and is_fetched are constants. */
PH_INLINE void add_samples(const struct ph__weight_product_args *args, const float *a, const float *b,
    size_t rows, size_t vectors, vmask mask, int is_fetched, vf sum[ROWS][VECTORS])
{
    const size_t ahead = args->fetched_samples * args->b_stride;
    for (size_t m = 0; m < args->inner; m++) {
        vf value[VECTORS];
        PH_UNROLL
        for (size_t v = 0; is_fetched && v < vectors; v++)
            __builtin_prefetch(b + ahead + v * VF_WIDTH);
        PH_UNROLL
        for (size_t v = 0; v + 1 < vectors; v++)
            value[v] = vf_pin(vf_load(b + v * VF_WIDTH));
        value[vectors - 1] = vf_pin(vf_load_mask(b + (vectors - 1) * VF_WIDTH, mask));
        PH_UNROLL
        for (size_t r = 0; r < rows; r++) {
            const vf factor = vf_pin(vf_set1(a[r]));
            PH_UNROLL
            for (size_t v = 0; v < vectors; v++)
                sum[r][v] = vf_fma(factor, value[v], sum[r][v]);
        }
        a += args->a_stride;
        b += args->b_stride;
    }
}

/* Computes a block; rows and vectors are constants; the last vector has the lanes of `mask`. */
PH_INLINE void block(const struct ph__weight_product_args *args, size_t row, size_t column, size_t rows,
    size_t vectors, vmask mask)
{
    const float *a = args->a + row, *b = args->b + column;
    float *c = args->c + row * args->c_stride + column;
    vf sum[ROWS][VECTORS];
    PH_UNROLL
    for (size_t r = 0; r < rows; r++) {
        PH_UNROLL
        for (size_t v = 0; v < vectors; v++) {
            const float *old = c + r * args->c_stride + v * VF_WIDTH;
            sum[r][v] = !args->is_added    ? vf_zero()
                        : v + 1 == vectors ? vf_load_mask(old, mask)
                                           : vf_load(old);
        }
    }
    if (args->fetched_samples > 0)
        add_samples(args, a, b, rows, vectors, mask, 1, sum);
    else
        add_samples(args, a, b, rows, vectors, mask, 0, sum);
    PH_UNROLL
    for (size_t r = 0; r < rows; r++) {
        PH_UNROLL
        for (size_t v = 0; v + 1 < vectors; v++)
            vf_store(c + r * args->c_stride + v * VF_WIDTH, sum[r][v]);
        vf_store_mask(c + r * args->c_stride + (vectors - 1) * VF_WIDTH, mask, sum[r][vectors - 1]);
    }
}

/* X(rows, vectors) for every size of block */
#if VF_REGISTERS == 32
#define BLOCKS_OF(X, rows) X(rows, 1) X(rows, 2) X(rows, 3) X(rows, 4)
#define BLOCKS_OF_MANY(X, rows) X(rows, 1) X(rows, 2)
#define BLOCKS(X)         \
    BLOCKS_OF(X, 1)       \
    BLOCKS_OF(X, 2)       \
    BLOCKS_OF(X, 3)       \
    BLOCKS_OF(X, 4)       \
    BLOCKS_OF(X, 5)       \
    BLOCKS_OF(X, 6)       \
    BLOCKS_OF_MANY(X, 7)  \
    BLOCKS_OF_MANY(X, 8)  \
    BLOCKS_OF_MANY(X, 9)  \
    BLOCKS_OF_MANY(X, 10) \
    BLOCKS_OF_MANY(X, 11) BLOCKS_OF_MANY(X, 12) BLOCKS_OF_MANY(X, 13) BLOCKS_OF_MANY(X, 14)
#else
#define BLOCKS_OF(X, rows) X(rows, 1) X(rows, 2)
#define BLOCKS(X) \
    BLOCKS_OF(X, 1) BLOCKS_OF(X, 2) BLOCKS_OF(X, 3) BLOCKS_OF(X, 4) BLOCKS_OF(X, 5) BLOCKS_OF(X, 6)
#endif

#define CASE(rows, vectors)                     \
    case 8 * (rows) + (vectors):                \
        block(args, n, k, rows, vectors, mask); \
        break;

static void run_blocks(const struct ph__weight_product_args *args, size_t n, size_t rows)
{
    const size_t width = (rows > FEW_ROWS ? VECTORS / 2 : VECTORS) * VF_WIDTH;
    for (size_t k = 0; k < args->columns; k += width) {
        const size_t left = args->columns - k, columns = left < width ? left : width;
        const size_t vectors = (columns + VF_WIDTH - 1) / VF_WIDTH;
        const vmask mask = vf_first(columns - (vectors - 1) * VF_WIDTH);
        switch (8 * rows + vectors) {
            BLOCKS(CASE)
        }
    }
}

void PH_SIMD(weight_product)(const struct ph__weight_product_args *args)
{
    for (size_t n = 0; n < args->rows; n += ROWS)
        run_blocks(args, n, args->rows - n < ROWS ? args->rows - n : ROWS);
}
