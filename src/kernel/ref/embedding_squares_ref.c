/* Block sums of merged slots' gradient rows, the specification. */
#include "kernel/kernel_list.h"

void ph__embedding_squares_ref(const struct ph__embedding_update_args *args, size_t first, size_t last,
    ph_real *row_scratch, ph_real *blocks_out)
{
    const size_t dim = args->source->dim, blocks = ph__square_blocks(dim);
    ph_real *gradient = row_scratch, *weights = args->step->l2 != 0 ? row_scratch + dim : NULL;
    for (size_t r = first; r < last; r++) {
        const size_t end = r + 1 < args->num_unique ? args->starts[r + 1] : args->source->num_entries;
        ph__embedding_gradient_row_ref(args->source, args->starts[r], end, gradient);
        if (weights != NULL)
            ph__table_rows_load_ref(args->table, args->unique[r], 1, weights);
        ph__row_squares_ref(args->step, dim, gradient, weights, blocks_out + r * blocks);
    }
}
