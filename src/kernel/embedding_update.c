/* Backward and update of merged slots in one sweep.
 *
 * The rows of a run are scattered over the table, so the sweep is bound by memory latency: the rows of the
 * runs to come are prefetched while the current one is computed. The gradient kernel prefetches its own
 * entries. */
#include "kernel/kernel.h"

#include <assert.h>

enum { DISTANCE = 16 /* runs ahead */, LINE_BYTES = 64 };

static void prefetch_row(const ph_real *rows, size_t slot, size_t width)
{
    const char *row = (const char *)(rows + slot * width);
    for (size_t byte = 0; byte < width * sizeof *rows; byte += LINE_BYTES)
        __builtin_prefetch(row + byte, 1, 2);
}

void ph__embedding_update(const struct ph_kernels *kernels, const struct ph_embedding_update_args *args,
    size_t first, size_t last, ph_real *row_scratch)
{
    const size_t dim = args->source->dim;
    const int is_rowwise = args->step->kind == PH_ROWWISE_ADAGRAD;
    assert(last <= args->num_unique);

    for (size_t r = first; r < last; r++) {
        if (r + DISTANCE < last) {
            const size_t coming = args->unique[r + DISTANCE];
            prefetch_row(args->table, coming, dim);
            if (args->m != NULL)
                prefetch_row(args->m, coming, dim);
            if (args->s != NULL)
                prefetch_row(args->s, coming, is_rowwise ? 1 : dim);
        }
        const size_t slot = args->unique[r];
        const size_t end = r + 1 < args->num_unique ? args->starts[r + 1] : args->source->num_entries;
        kernels->embedding_gradient_row(args->source, args->starts[r], end, row_scratch);
        if (is_rowwise)
            kernels->rowwise_adagrad_update(
                args->step, dim, row_scratch, args->table + slot * dim, args->s + slot);
        else
            kernels->optimizer_update(args->step, dim, row_scratch, args->table + slot * dim,
                args->m != NULL ? args->m + slot * dim : NULL, args->s != NULL ? args->s + slot * dim : NULL);
    }
}
