/* The gradient row of one merged slot. Its sum stays in registers while the entries' rows pass; the rows of
 * coming entries, of the next slots too, are prefetched. Wider rows are summed in blocks of columns. */
#include "kernel/simd/simd.h"

enum { MAX_VECTORS = 8, DISTANCE = 16 /* entries ahead */, LINE_FLOATS = 16 };

PH_INLINE void prefetch_entry(
    const struct ph__embedding_gradient_source *source, size_t entry, size_t column, size_t width)
{
    if (entry >= source->num_entries)
        return;
    const float *row = source->grad + source->rows[entry] * source->dim + column;
    PH_UNROLL
    for (size_t i = 0; i < width; i += LINE_FLOATS)
        __builtin_prefetch(row + i, 0, 3);
}

/* Sums columns [column, column + vectors * VF_WIDTH) and the tail's; vectors and has_tail are constants. */
PH_INLINE void sum_entries(const struct ph__embedding_gradient_source *source, size_t first, size_t last,
    size_t column, size_t vectors, int has_tail, vmask tail, float *row_out)
{
    vf sum[MAX_VECTORS + 1];
    PH_UNROLL
    for (size_t v = 0; v <= vectors; v++)
        sum[v] = vf_zero();

    for (size_t e = first; e < last; e++) {
        prefetch_entry(source, e + DISTANCE, column, vectors * VF_WIDTH + (has_tail ? 1 : 0));
        const float *grad = source->grad + source->rows[e] * source->dim + column;
        const vf factor = vf_set1(source->coefficients != NULL ? source->coefficients[e] : 1.0F);
        PH_UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[v] = vf_fma(factor, vf_load(grad + v * VF_WIDTH), sum[v]);
        if (has_tail)
            sum[vectors] = vf_fma(factor, vf_load_mask(grad + vectors * VF_WIDTH, tail), sum[vectors]);
    }

    PH_UNROLL
    for (size_t v = 0; v < vectors; v++)
        vf_store(row_out + column + v * VF_WIDTH, sum[v]);
    if (has_tail)
        vf_store_mask(row_out + column + vectors * VF_WIDTH, tail, sum[vectors]);
}

#define SUM(vectors, has_tail)                                                      \
    case 2 * (vectors) + (has_tail):                                                \
        sum_entries(source, first, last, column, vectors, has_tail, tail, row_out); \
        break

static void sum_columns(const struct ph__embedding_gradient_source *source, size_t first, size_t last,
    size_t column, size_t width, float *row_out)
{
    const vmask tail = vf_first(width % VF_WIDTH);
    switch (2 * (width / VF_WIDTH) + (width % VF_WIDTH != 0)) {
        SUM(0, 1);
        SUM(1, 0);
        SUM(1, 1);
        SUM(2, 0);
        SUM(2, 1);
        SUM(3, 0);
        SUM(3, 1);
        SUM(4, 0);
        SUM(4, 1);
        SUM(5, 0);
        SUM(5, 1);
        SUM(6, 0);
        SUM(6, 1);
        SUM(7, 0);
        SUM(7, 1);
        SUM(8, 0);
    }
}

/* row = sum_e c_e grad[row_e] */
void PH_SIMD(embedding_gradient_row)(
    const struct ph__embedding_gradient_source *source, size_t first, size_t last, float *row_out)
{
    const size_t block = MAX_VECTORS * VF_WIDTH;
    for (size_t column = 0; column < source->dim; column += block) {
        const size_t rest = source->dim - column;
        sum_columns(source, first, last, column, rest < block ? rest : block, row_out);
    }
}
