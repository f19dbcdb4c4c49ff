/* Pairwise dot products: the lower triangle of X X^T.
 *
 * The fields of a sample are first packed in fours, four numbers of each field side by side: (D/4, F, 4)
 * instead of (F, D). A packed vector is a group of FIELDS fields; four numbers of another field, repeated in
 * all of its 128-bit lanes, are multiplied with all of them at once. So only four numbers of a vector are
 * left to be added at the end, and row k of the triangle, which has k products, is rounded up to FIELDS
 * products only.
 *
 * The packed numbers stay in the first cache: of many fields, a panel of columns is packed at a time, and all
 * rows below pass it; of long vectors, MAX_DIM numbers. While a block of rows is computed, the same rows of
 * the next sample are prefetched. */
#include "kernel/simd/simd.h"

enum {
    FIELDS = VF_WIDTH / 4,
    ROWS = FIELDS,     /* the rows from FIELDS k + 1 on have products with k + 1 groups */
    MAX_GROUPS = 6,    /* of a block; their sums fill the registers */
    STORED_GROUPS = 4, /* groups that make a vector of products */
    PANEL = 32,        /* columns: whole vectors of products */
    MAX_DIM = 128,
    /* From four numbers of the packed fields to the next four: an odd number of cache lines, so that they
     * spread over the cache. Behind the panel there is room for a block of rows outside the panel. */
    STEP = 4 * (PANEL + 4),
    CACHE_LINE = 16 /* numbers */
};

struct sample {
    const float *first, *rest; /* field 0, and the fields from 1 on */
    size_t num_fields, dim;
    size_t start, length; /* the part of each field in use */
    size_t next;          /* numbers from a field of rest to the same field of the next sample */
    float *packed;        /* (MAX_DIM / 4, PANEL + 4, 4) */
};

/* Packs VF_WIDTH numbers, or those of the mask, of each field of a group. */
PH_INLINE void pack_numbers(
    const float *const from[FIELDS], size_t d, int has_mask, vmask mask, float *packed)
{
    vf value[FIELDS];
    PH_UNROLL
    for (size_t f = 0; f < FIELDS; f++)
        value[f] = has_mask ? vf_load_mask(from[f] + d, mask) : vf_load(from[f] + d);
    vf_transpose_fours(value);
    PH_UNROLL
    for (size_t f = 0; f < FIELDS; f++)
        vf_store(packed + f * STEP, value[f]);
}

PH_INLINE const float *field(const struct sample *x, size_t f)
{
    return (f == 0 ? x->first : x->rest + (f - 1) * x->dim) + x->start;
}

/* Packs fields [f, f + count), rounded up to whole groups; the last field stands in for missing ones. */
static void pack_fields(const struct sample *x, size_t f, size_t count, float *packed)
{
    const size_t length = x->length, dim = x->dim, last = x->num_fields - 1;
    const vmask mask = vf_first(length % VF_WIDTH);
    for (const size_t end = f + count; f < end; f += FIELDS, packed += VF_WIDTH) {
        const float *from[FIELDS] = {field(x, f)};
        const int is_regular = f > 0 && f + FIELDS <= last + 1;
        PH_UNROLL
        for (size_t k = 1; k < FIELDS; k++)
            from[k] = is_regular ? from[0] + k * dim : field(x, f + k < last ? f + k : last);
        float *to = packed;
        size_t d = 0;
        for (; d + VF_WIDTH <= length; d += VF_WIDTH, to += FIELDS * STEP)
            pack_numbers(from, d, 0, mask, to);
        if (d < length)
            pack_numbers(from, d, 1, mask, to);
    }
}

/* Adds four products of each pair; rows and groups are constants. */
PH_INLINE void add_products(
    vf sum[ROWS][MAX_GROUPS], const float *row, const float *column, size_t rows, size_t groups)
{
    vf factor[ROWS];
    PH_UNROLL
    for (size_t r = 0; r < rows; r++)
        factor[r] = vf_pin(vf_load_four(row + 4 * r));
    PH_UNROLL
    for (size_t g = 0; g < groups; g++) {
        const vf value = vf_pin(vf_load(column + g * VF_WIDTH)); /* one load for all rows */
        PH_UNROLL
        for (size_t r = 0; r < rows; r++)
            sum[r][g] = vf_fma(factor[r], value, sum[r][g]);
    }
}

struct block {
    size_t i, j;               /* its first row and column */
    const float *row, *column; /* their packed numbers */
    float *out;                /* row i of the triangle at column j */
};

/* Reduces the sums of a block to products; each row has one more than the row before. rows and groups are
 * constants. */
PH_INLINE void store_products(
    vf sum[ROWS][MAX_GROUPS], const struct block *block, int is_added, size_t rows, size_t groups)
{
    const size_t last = (groups - 1) / STORED_GROUPS; /* last vector of a row; those before it are full */
    const vu count = vu_set1((uint32_t)(block->i - block->j - last * VF_WIDTH));
    vf products[ROWS][2];
    PH_UNROLL
    for (size_t r = 0; r < rows; r++) {
        products[r][0] = vf_sums_of_fours(sum[r], last > 0 ? STORED_GROUPS : groups);
        if (last > 0)
            products[r][1] = vf_sums_of_fours(sum[r] + STORED_GROUPS, groups - STORED_GROUPS);
    }
    float *out = block->out;
    if (is_added) {
        PH_UNROLL
        for (size_t r = 0; r < rows; r++) {
            products[r][last] = vf_add(
                products[r][last], vf_load_mask(out + last * VF_WIDTH, vf_first_and_more(count, (int)r)));
            if (last > 0)
                products[r][0] = vf_add(products[r][0], vf_load(out));
            out += block->i + r;
        }
        out = block->out;
    }
    PH_UNROLL
    for (size_t r = 0; r < rows; r++) {
        if (last > 0)
            vf_store(out, products[r][0]);
        vf_store_mask(out + last * VF_WIDTH, vf_first_and_more(count, (int)r), products[r][last]);
        out += block->i + r; /* row k has k products */
    }
}

/* Computes a block's products; rows and groups are constants. */
PH_INLINE void block_products(const struct sample *x, const struct block *block, size_t rows, size_t groups)
{
    const float *row = block->row, *column = block->column;
    const float *next =
        x->rest + x->next + (block->i - 1) * x->dim + ROWS * x->start; /* in the next sample */
    const size_t length = x->length;
    vf sum[ROWS][MAX_GROUPS];
    PH_UNROLL
    for (size_t k = 0; k < rows * groups; k++)
        sum[k / groups][k % groups] = vf_zero();
    for (size_t d = 0; d < length; d += VF_WIDTH) {
        PH_UNROLL
        for (size_t k = 0; k < FIELDS; k++)
            add_products(sum, row + k * STEP, column + k * STEP, rows, groups);
        PH_UNROLL
        for (size_t k = 0; k < ROWS * VF_WIDTH; k += CACHE_LINE)
            __builtin_prefetch(next + k);
        next += ROWS * VF_WIDTH;
        row += FIELDS * STEP;
        column += FIELDS * STEP;
    }
    store_products(sum, block, x->start > 0, rows, groups);
}

#define CASE(rows, groups)                          \
    case 8 * (rows) + (groups):                     \
        block_products(x, block, (rows), (groups)); \
        break;
#define CASES(rows) CASE(rows, 1) CASE(rows, 2) CASE(rows, 3) CASE(rows, 4) CASE(rows, 5) CASE(rows, 6)

static void run_block(const struct sample *x, const struct block *block, size_t rows, size_t groups)
{
    switch (8 * rows + groups) {
        CASES(1)
        CASES(2)
#if VF_WIDTH == 16
        CASES(3)
        CASES(4)
#endif
    }
}

/* Computes rows [i, i + rows) at the first groups of the panel. */
static void row_products(const struct sample *x, struct block block, size_t rows, size_t groups)
{
    for (; groups > MAX_GROUPS; groups -= STORED_GROUPS) {
        run_block(x, &block, rows, STORED_GROUPS);
        block.j += VF_WIDTH;
        block.column += STORED_GROUPS * VF_WIDTH;
        block.out += VF_WIDTH;
    }
    run_block(x, &block, rows, groups);
}

/* Computes columns [first, first + count) of all rows below. */
static void panel_products(const struct sample *x, size_t first, size_t count, float *out)
{
    const size_t panel_groups = (count + FIELDS - 1) / FIELDS;
    float *packed_rows = x->packed + 4 * PANEL;
    pack_fields(x, first, count, x->packed);
    for (size_t i = first + 1, groups = 1; i < x->num_fields; i += ROWS, groups++) {
        const size_t rows = x->num_fields - i < ROWS ? x->num_fields - i : ROWS;
        const int is_packed = i + rows <= first + count;
        if (!is_packed)
            pack_fields(x, i, rows, packed_rows);
        const struct block block = {
            .i = i,
            .j = first,
            .row = is_packed ? x->packed + 4 * (i - first) : packed_rows,
            .column = x->packed,
            .out = out + i * (i - 1) / 2 + first,
        };
        row_products(x, block, rows, groups < panel_groups ? groups : panel_groups);
    }
}

static void sample_products(struct sample *x, float *out)
{
    for (x->start = 0; x->start < x->dim; x->start += MAX_DIM) {
        x->length = x->dim - x->start < MAX_DIM ? x->dim - x->start : MAX_DIM;
        for (size_t column = 0; column + 1 < x->num_fields; column += PANEL) {
            const size_t left = x->num_fields - column;
            panel_products(x, column, left < PANEL ? left : PANEL, out);
        }
    }
}

void PH_SIMD(dot_forward)(size_t count, size_t num_fields, size_t dim, const float *first, const float *rest,
    float *out, size_t out_stride)
{
    const size_t rest_fields = first != NULL ? num_fields - 1 : num_fields;
    _Alignas(64) float packed[MAX_DIM / 4 * STEP];
    for (size_t b = 0; b < count; b++) {
        const float *vectors = rest + b * rest_fields * dim;
        struct sample x = {
            .first = first != NULL ? first + b * dim : vectors,
            .rest = first != NULL ? vectors : vectors + dim,
            .num_fields = num_fields,
            .dim = dim,
            .next = rest_fields * dim,
            .packed = packed,
        };
        sample_products(&x, out + b * out_stride);
    }
}
