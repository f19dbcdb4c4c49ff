/* Products of rows. Where all are added to one row of y, vectors take turns, so that no sum waits for its own
 * last addition. */
#include "kernel/simd/simd.h"

PH_INLINE void multiply_row(size_t n, const float *a, const float *b, float *y, int is_added)
{
    size_t j = 0;
    for (; j + VF_WIDTH <= n; j += VF_WIDTH) {
        const vf x = vf_load(a + j);
        vf_store(y + j, is_added ? vf_fma(x, vf_load(b + j), vf_load(y + j)) : vf_mul(x, vf_load(b + j)));
    }
    if (j == n)
        return;
    const vmask tail = vf_first(n - j);
    const vf x = vf_load_mask(a + j, tail), factor = vf_load_mask(b + j, tail);
    vf_store_mask(y + j, tail, is_added ? vf_fma(x, factor, vf_load_mask(y + j, tail)) : vf_mul(x, factor));
}

/* y_rj (+)= a_rj b_rj */
void PH_SIMD(multiply_rows)(const struct ph__multiply_rows_args *args)
{
    for (size_t r = 0; r < args->rows; r++) {
        const float *a = args->a + r * args->a_stride, *b = args->b + r * args->b_stride;
        if (args->is_added)
            multiply_row(args->n, a, b, args->y + r * args->y_stride, 1);
        else
            multiply_row(args->n, a, b, args->y + r * args->y_stride, 0);
    }
}
