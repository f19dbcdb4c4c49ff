/* Gradient of the pairwise dot products: dX = G X with the symmetric G read out of its lower triangle.
 *
 * A block of rows x vectors of dX stays in registers while all fields x_j pass. For j before the block, row i
 * of the triangle holds g_ij; for j after it, row j does; on the diagonal there is no product. Each field
 * also prefetches one line of the next sample's input and one of its output, so that memory works while the
 * block does. */
#include "kernel/simd/simd.h"

enum {
    VECTORS = VF_REGISTERS / 8,
    ROWS = 6, /* in a block of VECTORS */
    MAX_ROWS = 9,
    NONE = MAX_ROWS,
    CACHE_LINE = 16 /* floats */
};

struct sample {
    const float *first, *rest; /* field 0, and the fields from 1 on */
    const float *grad;         /* row k of the triangle starts at k (k - 1) / 2 */
    float *d_first, *d_rest;
    size_t num_fields, dim;
    size_t next; /* numbers from a field of rest to the same field of the next sample */
    int add_to_first;
};

/* Returns the pointer, hidden from the compiler's analysis, so that it is kept and not computed again. */
PH_INLINE const float *pin(const float *pointer)
{
    __asm__("" : "+r"(pointer));
    return pointer;
}

/* sum_r += g_r x_j for all rows but `skipped`; g_r is at *g[r] */
PH_INLINE void add_field(vf sum[MAX_ROWS][VECTORS], size_t rows, size_t vectors, size_t skipped,
    const float *const g[MAX_ROWS], const float *xj, int has_mask, vmask mask)
{
    vf value[VECTORS];
    PH_UNROLL
    for (size_t v = 0; v < vectors; v++)
        value[v] = vf_pin(has_mask ? vf_load_mask(xj, mask) : vf_load(xj + v * VF_WIDTH));
    PH_UNROLL
    for (size_t r = 0; r < rows; r++) {
        if (r == skipped)
            continue;
        const vf factor = vectors > 1 ? vf_pin(vf_set1(*g[r])) : vf_set1(*g[r]);
        PH_UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[r][v] = vf_fma(factor, value[v], sum[r][v]);
    }
}

/* Places in the next sample's input and output, from this block on. */
struct ahead {
    const float *x, *dx;
};

PH_INLINE void fetch_line(struct ahead *ahead)
{
    __builtin_prefetch(ahead->x);
    __builtin_prefetch(ahead->dx);
    ahead->x += CACHE_LINE;
    ahead->dx += CACHE_LINE;
}

PH_INLINE void store_row(
    float *dx, int is_added, const vf sum[VECTORS], size_t vectors, int has_mask, vmask mask)
{
    PH_UNROLL
    for (size_t v = 0; v < vectors; v++) {
        float *target = dx + v * VF_WIDTH;
        if (has_mask)
            vf_store_mask(target, mask, is_added ? vf_add(vf_load_mask(target, mask), sum[v]) : sum[v]);
        else
            vf_store(target, is_added ? vf_add(vf_load(target), sum[v]) : sum[v]);
    }
}

PH_INLINE size_t triangle(size_t n) /* numbers before row n */
{
    return n * (n - 1) / 2;
}

/* Computes rows [i, i + rows) and vectors from `column` of dX; rows, vectors and has_mask are constants. */
PH_INLINE void block_gradient(
    const struct sample *x, size_t i, size_t rows, size_t column, size_t vectors, int has_mask)
{
    const size_t dim = x->dim;
    const vmask mask = vf_first(has_mask ? dim - column : 0);
    const float *first = x->first + column, *xj = x->rest + column;
    struct ahead ahead = {xj + x->next + i * dim, x->d_rest + column + x->next + i * dim};
    const float *own[MAX_ROWS], *g[MAX_ROWS]; /* own: the rows of the triangle */
    vf sum[MAX_ROWS][VECTORS];
    PH_UNROLL
    for (size_t r = 0; r < rows; r++) {
        own[r] = pin(r == 0 ? x->grad + triangle(i) : own[r - 1] + i + r - 1);
        PH_UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[r][v] = vf_zero();
    }

    if (i > 0)
        add_field(sum, rows, vectors, NONE, own, first, has_mask, mask);
    for (size_t j = 1; j < i; j++, xj += dim) {
        PH_UNROLL
        for (size_t r = 0; r < rows; r++)
            g[r] = own[r] + j;
        fetch_line(&ahead);
        add_field(sum, rows, vectors, NONE, g, xj, has_mask, mask);
    }
    PH_UNROLL
    for (size_t r = 0; r < rows; r++)
        own[r] = pin(own[r] + i);
    PH_UNROLL
    for (size_t c = 0; c < rows; c++) {
        PH_UNROLL
        for (size_t r = 0; r < rows; r++)
            g[r] = r > c ? own[r] + c : own[c] + r;
        fetch_line(&ahead);
        if (c == 0 && i == 0) {
            add_field(sum, rows, vectors, c, g, first, has_mask, mask);
        } else {
            add_field(sum, rows, vectors, c, g, xj, has_mask, mask);
            xj += dim;
        }
    }
    const float *later = x->grad + triangle(i + rows) + i;
    for (size_t j = i + rows; j < x->num_fields; later += j, j++, xj += dim) {
        PH_UNROLL
        for (size_t r = 0; r < rows; r++)
            g[r] = later + r;
        fetch_line(&ahead);
        add_field(sum, rows, vectors, NONE, g, xj, has_mask, mask);
    }

    float *dx = x->d_rest + column + i * dim; /* the field after i */
    store_row(
        i == 0 ? x->d_first + column : dx - dim, i == 0 && x->add_to_first, sum[0], vectors, has_mask, mask);
    PH_UNROLL
    for (size_t r = 1; r < rows; r++, dx += dim)
        store_row(dx, 0, sum[r], vectors, has_mask, mask);
}

#define CASE(rows, vectors, has_mask)                              \
    case 8 * (rows) + 2 * (vectors)-2 + (has_mask):                \
        block_gradient(x, i, (rows), column, (vectors), has_mask); \
        break;
#define UP_TO_SIX(vectors, has_mask) \
    CASE(1, vectors, has_mask)       \
    CASE(2, vectors, has_mask)       \
    CASE(3, vectors, has_mask)       \
    CASE(4, vectors, has_mask)       \
    CASE(5, vectors, has_mask)       \
    CASE(6, vectors, has_mask)
#define UP_TO_NINE(vectors, has_mask) \
    UP_TO_SIX(vectors, has_mask)      \
    CASE(7, vectors, has_mask)        \
    CASE(8, vectors, has_mask)        \
    CASE(9, vectors, has_mask)

static void run_block(
    const struct sample *x, size_t i, size_t rows, size_t column, size_t vectors, int has_mask)
{
    switch (8 * rows + 2 * vectors - 2 + (size_t)has_mask) {
        UP_TO_NINE(1, 1)
        UP_TO_NINE(1, 0)
#if VF_REGISTERS == 32
        UP_TO_NINE(2, 0)
#endif
        UP_TO_SIX(VECTORS, 0)
    }
}

/* Computes all rows of dX at some columns, in blocks of nearly equal numbers of rows. */
static void column_gradients(const struct sample *x, size_t column, size_t vectors, int has_mask)
{
    const size_t max_rows = vectors == VECTORS ? ROWS : MAX_ROWS;
    size_t blocks = (x->num_fields + max_rows - 1) / max_rows;
    for (size_t i = 0, rows; i < x->num_fields; i += rows, blocks--) {
        rows = (x->num_fields - i + blocks - 1) / blocks;
        run_block(x, i, rows, column, vectors, has_mask);
    }
}

static void sample_gradient(const struct sample *x)
{
    size_t column = 0;
    for (size_t vectors = VECTORS; vectors > 0; vectors /= 2)
        for (; column + vectors * VF_WIDTH <= x->dim; column += vectors * VF_WIDTH)
            column_gradients(x, column, vectors, 0);
    if (column < x->dim)
        column_gradients(x, column, 1, 1);
}

/* dx_i = sum_{j != i} g_ij x_j */
void PH_SIMD(dot_backward)(size_t count, size_t num_fields, size_t dim, const float *first, const float *rest,
    const float *grad, size_t grad_stride, int add_to_first, float *d_first, float *d_rest)
{
    const size_t rest_fields = first != NULL ? num_fields - 1 : num_fields;
    for (size_t b = 0; b < count; b++) {
        const size_t start = b * rest_fields * dim;
        const size_t skipped = first != NULL ? 0 : dim;
        sample_gradient(&(struct sample){
            .first = first != NULL ? first + b * dim : rest + start,
            .rest = rest + start + skipped,
            .grad = grad + b * grad_stride,
            .d_first = first != NULL ? d_first + b * dim : d_rest + start,
            .d_rest = d_rest + start + skipped,
            .num_fields = num_fields,
            .dim = dim,
            .next = rest_fields * dim,
            .add_to_first = first != NULL && add_to_first,
        });
    }
}
