/* Block sums of the squares of merged slots' gradient rows (kernel.h, ROWWISE_ADAGRAD). Without a penalty no
 * gradient leaves its registers; with one, gradient and weights meet in scratch. */
#include <assert.h>

#include "kernel/simd/merged_run.h"
#include "kernel/simd/rowwise_squares.h"
#include "kernel/simd/simd.h"

/* Squares the columns from `column` on of run r: whole vectors, or the first num_last numbers of one. vectors
 * and has_mask are constants. */
PH_INLINE void square_columns(const struct ph__embedding_update_args *args, size_t r, size_t column,
    size_t vectors, int has_mask, size_t num_last, float *blocks_out)
{
    const vf gradient_scale = vf_set1(args->step->gradient_scale);
    vf sum[VECTORS];
    sum_entries(args->source, args->starts[r], end_of_run(args, r), column, vectors, has_mask,
        vf_first(num_last), sum);
    PH_UNROLL
    for (size_t v = 0; v < vectors; v++)
        store_blocks(blocks_out + (column + v * VF_WIDTH) / PH_SQUARES_COLUMNS,
            vf_mul(sum[v], gradient_scale), has_mask ? num_last : VF_WIDTH);
}

/* Writes run r's block sums to blocks_out. */
static void square_run(const struct ph__embedding_update_args *args, size_t r, float *blocks_out)
{
    const size_t dim = args->source->dim, block = VECTORS * VF_WIDTH;
    size_t column = 0;
    for (; column + block <= dim; column += block)
        square_columns(args, r, column, VECTORS, 0, 0, blocks_out);
    for (; column + VF_WIDTH <= dim; column += VF_WIDTH)
        square_columns(args, r, column, 1, 0, 0, blocks_out);
    if (column < dim)
        square_columns(args, r, column, 1, 1, dim - column, blocks_out);
}

/* row_scratch (2 dim): gradient, weights */
static void square_run_with_penalty(
    const struct ph__embedding_update_args *args, size_t r, float *row_scratch, float *blocks_out)
{
    const size_t dim = args->source->dim;
    float *weights = row_scratch + dim;
    prefetch_run(args, args->table->format, r + RUNS_AHEAD);
    gather_run(args->source, args->starts[r], end_of_run(args, r), row_scratch);
    PH_SIMD(table_rows_load)(args->table, args->unique[r], 1, weights);
    PH_SIMD(row_squares)(args->step, dim, row_scratch, weights, blocks_out);
}

void PH_SIMD(embedding_squares)(const struct ph__embedding_update_args *args, size_t first, size_t last,
    float *row_scratch, float *blocks_out)
{
    const size_t blocks = ph__square_blocks(args->source->dim);
    assert(last <= args->num_unique);
    for (size_t r = first; r < last; r++) {
        if (args->step->l2 == 0)
            square_run(args, r, blocks_out + r * blocks);
        else
            square_run_with_penalty(args, r, row_scratch, blocks_out + r * blocks);
    }
}
