/* Row-invariant product, the specification. */
#include "kernel/kernel_list.h"
#include "tensor/float16.h"

enum { PANEL = PH_ROW_PRODUCT_PANEL };

/* Returns number j of a panel's line that begins at `index`. */
static ph_real weight_at(const struct ph__row_product_args *args, size_t index, size_t j)
{
    const uint16_t *words = args->packed;
    const ph_real *reals = args->packed;
    if (!args->is_bf16)
        return reals[index + j];
    return (ph_real)ph__float_from_bfloat(words[index + j % (PANEL / 2) * 2 + j / (PANEL / 2)]);
}

/* y_ij = bias_j + sum_k x_ik w_jk, k ascending; or its relu */
void ph__row_product_ref(const struct ph__row_product_args *args)
{
    const size_t n = args->out_features, inner = args->in_features;
    for (size_t i = 0; i < args->rows; i++) {
        const ph_real *x = args->x + i * inner;
        for (size_t first = 0; first < n; first += PANEL) {
            const size_t count = n - first < PANEL ? n - first : PANEL;
            ph_real *y = args->y + i * n + first;
            for (size_t j = 0; j < count; j++)
                y[j] = args->bias != NULL ? args->bias[first + j] : 0;
            for (size_t k = 0; k < inner; k++)
                for (size_t j = 0; j < count; j++)
                    y[j] += x[k] * weight_at(args, first * inner + k * PANEL, j);
            if (args->is_rectified)
                ph__relu_ref(count, y, y);
        }
    }
}
