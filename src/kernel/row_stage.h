/* Slices of rows on their way through a product of reals whose arrays may be bf16: a slice is widened into a worker's
 * scratch before the product, and its result rounded behind it, while both are in the cache. Arrays of reals are read and
 * written where they stand. */
#ifndef PH_KERNEL_ROW_STAGE_H
#define PH_KERNEL_ROW_STAGE_H

#include "kernel/gemm.h"
#include "kernel/kernel.h"

struct ph_row_stage {
    const struct ph_kernels *kernels;
    const struct ph_gemm_args *args;
    size_t in_columns, out_columns; /* of args->x, of args->y */
    size_t rows;                    /* of the largest slice */
    bool is_bf16;                   /* args->x is */
    bool is_widened;                /* ... and the product wants reals */
};

/* Of each worker. Slices of a worker follow one another in the order of the functions below. */
size_t ph__row_stage_reals(const struct ph_row_stage *stage);

/* What the product of the slice [first, first + rows) reads and writes. */
const void *ph__row_stage_input(const struct ph_row_stage *stage, size_t first, size_t rows, size_t worker);
ph_real *ph__row_stage_output(const struct ph_row_stage *stage, size_t first, size_t worker);
/* The slice of args->activated, as reals. The widened input is gone. */
const ph_real *ph__row_stage_activated(
    const struct ph_row_stage *stage, size_t first, size_t rows, size_t worker);
/* The result stands in args->y. */
void ph__row_stage_finish(const struct ph_row_stage *stage, size_t first, size_t rows, size_t worker);

#endif
