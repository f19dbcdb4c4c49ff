/* Sums the gradients of merged slots in registers, a few vectors of columns at a time, and prefetches the
 * rows of coming entries and the rows that a sweep over runs updates. For embedding_update and
 * embedding_squares. */
#ifndef PH_KERNEL_MERGED_RUN_H
#define PH_KERNEL_MERGED_RUN_H

#include "kernel/simd/simd.h"

enum { VECTORS = 4, RUNS_AHEAD = 8, ENTRIES_AHEAD = 12, LINE_FLOATS = 16, LINE_BYTES = 64 };

PH_INLINE void prefetch_bytes(const void *row, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += LINE_BYTES)
        __builtin_prefetch((const char *)row + i, 1, 3);
}

PH_INLINE void prefetch_run(
    const struct ph__embedding_update_args *args, enum ph_row_format format, size_t run)
{
    if (run >= args->num_unique)
        return;
    const size_t dim = args->source->dim, bytes = dim * sizeof(float), place = args->unique[run] * dim;
    const size_t row_bytes = format == PH_ROWS_FP32 ? bytes : dim * sizeof(uint16_t);
    prefetch_bytes((const char *)args->table->memory + args->unique[run] * row_bytes, row_bytes);
    if (format == PH_ROWS_BF16_SPLIT)
        prefetch_bytes(args->table->low + place, row_bytes);
    if (args->m != NULL)
        prefetch_bytes(args->m + place, bytes);
    if (args->s != NULL && args->step->kind == PH_ROWWISE_ADAGRAD)
        __builtin_prefetch(args->s + args->unique[run], 1, 3);
    else if (args->s != NULL)
        prefetch_bytes(args->s + place, bytes);
}

PH_INLINE vf load(const float *p, int has_mask, vmask mask)
{
    return has_mask ? vf_load_mask(p, mask) : vf_load(p);
}

PH_INLINE void store(float *p, int has_mask, vmask mask, vf x)
{
    if (has_mask)
        vf_store_mask(p, mask, x);
    else
        vf_store(p, x);
}

/* sum_v = sum over entries [first, last) of c_e grad[row_e] in the columns from `column` on; vectors is a
 * constant. */
PH_INLINE void sum_entries(const struct ph__embedding_gradient_source *source, size_t first, size_t last,
    size_t column, size_t vectors, int has_mask, vmask mask, vf *sum)
{
    const float *grad = source->grad + column;
    PH_UNROLL
    for (size_t v = 0; v < vectors; v++)
        sum[v] = vf_zero();
    for (size_t e = first; e < last; e++) {
        const size_t coming = e + ENTRIES_AHEAD;
        if (coming < source->num_entries) {
            const float *row = grad + source->rows[coming] * source->dim;
            PH_UNROLL
            for (size_t i = 0; i < vectors * VF_WIDTH; i += LINE_FLOATS)
                __builtin_prefetch(row + i, 0, 3);
        }
        const float *row = grad + source->rows[e] * source->dim;
        const vf factor = vf_set1(source->coefficients != NULL ? source->coefficients[e] : 1.0F);
        PH_UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[v] = vf_fma(factor, load(row + v * VF_WIDTH, has_mask, mask), sum[v]);
    }
}

PH_INLINE size_t end_of_run(const struct ph__embedding_update_args *args, size_t r)
{
    return r + 1 < args->num_unique ? args->starts[r + 1] : args->source->num_entries;
}

/* Sums run r's gradient into row (dim). */
PH_INLINE void gather_run(
    const struct ph__embedding_gradient_source *source, size_t start, size_t end, float *row)
{
    const size_t dim = source->dim, block = VECTORS * VF_WIDTH;
    const vmask none = vf_first(0), tail = vf_first(dim % VF_WIDTH);
    vf sum[VECTORS];
    size_t column = 0;
    for (; column + block <= dim; column += block) {
        sum_entries(source, start, end, column, VECTORS, 0, none, sum);
        PH_UNROLL
        for (size_t v = 0; v < VECTORS; v++)
            vf_store(row + column + v * VF_WIDTH, sum[v]);
    }
    for (; column + VF_WIDTH <= dim; column += VF_WIDTH) {
        sum_entries(source, start, end, column, 1, 0, none, sum);
        vf_store(row + column, sum[0]);
    }
    if (column < dim) {
        sum_entries(source, start, end, column, 1, 1, tail, sum);
        vf_store_mask(row + column, tail, sum[0]);
    }
}

#endif
