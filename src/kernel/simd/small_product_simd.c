/* Products of small matrices: a block of rows x vectors of C stays in registers while the inner dimension
 * passes, each number one chain of multiply-adds, so the cutting into blocks changes no bits. Rows are cut
 * evenly: the sums of a block of two rows would wait for their own last additions. With more than
 * FEW_VECTORS, a loaded vector serves fewer rows and a broadcast more vectors. */
#include "kernel/simd/simd.h"

#if VF_REGISTERS == 32
enum { ROWS = 14, FEW_VECTORS = 2, VECTORS = 4, WIDE_ROWS = 6 };
#else
enum { ROWS = 12, FEW_VECTORS = 1, VECTORS = 2, WIDE_ROWS = 6 };
#endif
enum { GROUP = 3, NUM_GROUPS = (ROWS + GROUP - 1) / GROUP };

/* The places of a block's matrices in one pair. */
struct place {
    const float *a, *b, *bias;
    float *c;
};

/* Returns row r of a block, base[r / GROUP] + (r % GROUP) * stride: few enough pointers to stay in
 * registers. */
PH_INLINE const float *row_of(const float *const base[NUM_GROUPS], size_t r, size_t stride)
{
    return base[r / GROUP] + r % GROUP * stride;
}

/* Begins the sums with the bias, with C's numbers, or with 0. rows and vectors are constants; the last vector
 * has the lanes of `mask`. */
PH_INLINE void begin_sums(const struct ph__small_product_args *args, const struct place *at, size_t rows,
    size_t vectors, vmask mask, vf sum[ROWS][VECTORS])
{
    PH_UNROLL
    for (size_t r = 0; r < rows; r++) {
        const float *old = at->c + r * args->c_stride;
        const vf bias = at->bias != NULL ? vf_set1(at->bias[r]) : vf_zero();
        PH_UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[r][v] = !args->is_added    ? bias
                        : v + 1 == vectors ? vf_load_mask(old + v * VF_WIDTH, mask)
                                           : vf_load(old + v * VF_WIDTH);
    }
}

PH_INLINE void block(const struct ph__small_product_args *args, const struct place *at, size_t rows,
    size_t vectors, vmask mask)
{
    const size_t stride = args->a_row_stride;
    const float *base[NUM_GROUPS], *b = at->b;
    vf sum[ROWS][VECTORS];
    begin_sums(args, at, rows, vectors, mask, sum);
    PH_UNROLL
    for (size_t g = 0; g * GROUP < rows; g++)
        base[g] = at->a + g * GROUP * stride;
    for (size_t k = 0; k < args->inner; k++) {
        vf value[VECTORS];
        PH_UNROLL
        for (size_t v = 0; v + 1 < vectors; v++)
            value[v] = vf_pin(vf_load(b + v * VF_WIDTH));
        value[vectors - 1] = vf_pin(vf_load_mask(b + (vectors - 1) * VF_WIDTH, mask));
        PH_UNROLL
        for (size_t r = 0; r < rows; r++) {
            vf factor = vf_set1(*row_of(base, r, stride));
            if (vectors > 1)
                factor = vf_pin(factor);
            PH_UNROLL
            for (size_t v = 0; v < vectors; v++)
                sum[r][v] = vf_fma(factor, value[v], sum[r][v]);
        }
        PH_UNROLL
        for (size_t g = 0; g * GROUP < rows; g++)
            base[g] += args->a_inner_stride;
        b += args->b_stride;
    }
    PH_UNROLL
    for (size_t r = 0; r < rows; r++) {
        float *c = at->c + r * args->c_stride;
        PH_UNROLL
        for (size_t v = 0; v + 1 < vectors; v++)
            vf_store(c + v * VF_WIDTH, sum[r][v]);
        vf_store_mask(c + (vectors - 1) * VF_WIDTH, mask, sum[r][vectors - 1]);
    }
}

/* X(rows, vectors) for every size of block */
#if VF_REGISTERS == 32
#define BLOCKS_OF_FEW(X, rows) X(rows, 1) X(rows, 2)
#define BLOCKS_OF(X, rows) BLOCKS_OF_FEW(X, rows) X(rows, 3) X(rows, 4)
#else
#define BLOCKS_OF_FEW(X, rows) X(rows, 1)
#define BLOCKS_OF(X, rows) BLOCKS_OF_FEW(X, rows) X(rows, 2)
#endif
#define BLOCKS_OF_BOTH(X) \
    BLOCKS_OF(X, 1)       \
    BLOCKS_OF(X, 2)       \
    BLOCKS_OF(X, 3)       \
    BLOCKS_OF(X, 4)       \
    BLOCKS_OF(X, 5)       \
    BLOCKS_OF(X, 6)       \
    BLOCKS_OF_FEW(X, 7)   \
    BLOCKS_OF_FEW(X, 8) BLOCKS_OF_FEW(X, 9) BLOCKS_OF_FEW(X, 10) BLOCKS_OF_FEW(X, 11) BLOCKS_OF_FEW(X, 12)
#if VF_REGISTERS == 32
#define BLOCKS(X) BLOCKS_OF_BOTH(X) BLOCKS_OF_FEW(X, 13) BLOCKS_OF_FEW(X, 14)
#else
#define BLOCKS(X) BLOCKS_OF_BOTH(X)
#endif

#define CASE(rows, vectors)                   \
    case 8 * (rows) + (vectors):              \
        block(args, at, rows, vectors, mask); \
        break;

static void run_block(const struct ph__small_product_args *args, const struct place *at, size_t rows,
    size_t vectors, vmask mask)
{
    switch (8 * rows + vectors) {
        BLOCKS(CASE)
    }
}

/* Computes all rows of up to VECTORS vectors of columns. */
static void run_columns(
    const struct ph__small_product_args *args, const struct place *from, size_t first, size_t columns)
{
    const size_t vectors = (columns + VF_WIDTH - 1) / VF_WIDTH;
    const vmask mask = vf_first(columns - (vectors - 1) * VF_WIDTH);
    const size_t most = vectors > FEW_VECTORS ? WIDE_ROWS : ROWS;
    const size_t num_blocks = (args->rows + most - 1) / most; /* blocks differ by a row at most */
    for (size_t i = 0; i < num_blocks; i++) {
        const size_t row = args->rows * i / num_blocks, end = args->rows * (i + 1) / num_blocks;
        const struct place at = {.a = from->a + row * args->a_row_stride,
            .b = from->b + first,
            .bias = from->bias != NULL ? from->bias + row : NULL,
            .c = from->c + row * args->c_stride + first};
        run_block(args, &at, end - row, vectors, mask);
    }
}

/* C = A B + bias */
void PH_SIMD(small_product)(const struct ph__small_product_args *args)
{
    struct place from = {args->a, args->b, args->bias, args->c};
    for (size_t i = 0; i < args->count; i++) {
        for (size_t first = 0; first < args->columns; first += VECTORS * VF_WIDTH) {
            const size_t left = args->columns - first;
            run_columns(args, &from, first, left < VECTORS * VF_WIDTH ? left : VECTORS * VF_WIDTH);
        }
        from.a += args->a_step;
        from.b += args->b_step;
        from.c += args->c_step;
    }
}
