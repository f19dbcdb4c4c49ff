/* A block of a weight gradient, the specification. */
#include "kernel/kernel_list.h"

/* c[n][k] (+)= sum_m a[m][n] b[m][k] */
void ph__weight_product_ref(const struct ph__weight_product_args *args)
{
    for (size_t n = 0; n < args->rows; n++) {
        for (size_t k = 0; k < args->columns; k++) {
            ph_real *c = args->c + n * args->c_stride + k;
            ph_real sum = args->is_added ? *c : 0;
            for (size_t m = 0; m < args->inner; m++)
                sum += args->a[m * args->a_stride + n] * args->b[m * args->b_stride + k];
            *c = sum;
        }
    }
}
