/* Backward and update of merged slots in one sweep, the specification. */
#include "kernel/kernel_list.h"

void ph__embedding_update_ref(
    const struct ph__embedding_update_args *args, size_t first, size_t last, ph_real *row_scratch)
{
    const size_t dim = args->source->dim;
    ph_real *gradient = row_scratch, *weights = row_scratch + dim;
    for (size_t r = first; r < last; r++) {
        const size_t slot = args->unique[r];
        const size_t end = r + 1 < args->num_unique ? args->starts[r + 1] : args->source->num_entries;
        ph__embedding_gradient_row_ref(args->source, args->starts[r], end, gradient);
        ph__table_rows_load_ref(args->table, slot, 1, weights);
        if (args->step->kind == PH_ROWWISE_ADAGRAD && args->square_sums != NULL)
            ph__rowwise_adagrad_step_ref(
                args->step, ph__mean_square(args, r), dim, gradient, weights, args->s + slot);
        else if (args->step->kind == PH_ROWWISE_ADAGRAD)
            ph__rowwise_adagrad_update_ref(args->step, dim, gradient, weights, args->s + slot);
        else
            ph__optimizer_update_ref(args->step, dim, gradient, weights,
                args->m != NULL ? args->m + slot * dim : NULL, args->s != NULL ? args->s + slot * dim : NULL);
        ph__table_rows_store_ref(args->table, slot, 1, weights);
    }
}
