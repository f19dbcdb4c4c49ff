/* The gradient row of one merged slot, the specification. */
#include "kernel/kernel_list.h"

#include <string.h>

/* row = sum_e c_e grad[row_e] */
void ph__embedding_gradient_row_ref(
    const struct ph__embedding_gradient_source *source, size_t first, size_t last, ph_real *row_out)
{
    memset(row_out, 0, source->dim * sizeof *row_out);
    for (size_t e = first; e < last; e++) {
        const ph_real *grad = source->grad + source->rows[e] * source->dim;
        const ph_real coefficient = source->coefficients != NULL ? source->coefficients[e] : 1;
        for (size_t d = 0; d < source->dim; d++)
            row_out[d] += coefficient * grad[d];
    }
}
