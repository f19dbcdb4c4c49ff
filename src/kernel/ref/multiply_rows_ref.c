/* Products of rows, the specification. */
#include "kernel/kernel_list.h"

/* y_rj (+)= a_rj b_rj */
void ph__multiply_rows_ref(const struct ph__multiply_rows_args *args)
{
    for (size_t r = 0; r < args->rows; r++) {
        const ph_real *a = args->a + r * args->a_stride, *b = args->b + r * args->b_stride;
        ph_real *y = args->y + r * args->y_stride;
        for (size_t j = 0; j < args->n; j++)
            y[j] = (args->is_added ? y[j] : 0) + a[j] * b[j];
    }
}
