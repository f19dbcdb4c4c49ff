/* Products of small matrices, the specification. */
#include "kernel/kernel_list.h"

static void product(const struct ph__small_product_args *args, const ph_real *a, const ph_real *b, ph_real *c)
{
    for (size_t r = 0; r < args->rows; r++) {
        for (size_t column = 0; column < args->columns; column++) {
            ph_real *to = c + r * args->c_stride + column;
            ph_real sum = args->is_added ? *to : args->bias != NULL ? args->bias[r] : 0;
            for (size_t k = 0; k < args->inner; k++)
                sum += a[r * args->a_row_stride + k * args->a_inner_stride] * b[k * args->b_stride + column];
            *to = sum;
        }
    }
}

/* c[r][j] = bias[r] + sum_k a[r][k] b[k][j] */
void ph__small_product_ref(const struct ph__small_product_args *args)
{
    for (size_t i = 0; i < args->count; i++)
        product(args, args->a + i * args->a_step, args->b + i * args->b_step, args->c + i * args->c_step);
}
