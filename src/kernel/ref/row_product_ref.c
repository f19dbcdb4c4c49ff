/* Row-invariant product, the specification. */
#include "kernel/kernel_list.h"

/* y_ij = bias_j + sum_k x_ik w_jk, k ascending; or its relu */
void ph__row_product_ref(const struct ph_row_product_args *args)
{
    const size_t n = args->out_features, inner = args->in_features;
    for (size_t i = 0; i < args->rows; i++) {
        const ph_real *x = args->x + i * inner;
        for (size_t first = 0; first < n; first += PH_ROW_PRODUCT_PANEL) {
            const size_t count = n - first < PH_ROW_PRODUCT_PANEL ? n - first : PH_ROW_PRODUCT_PANEL;
            const ph_real *panel = args->packed + first * inner;
            ph_real *y = args->y + i * n + first;
            for (size_t j = 0; j < count; j++)
                y[j] = args->bias != NULL ? args->bias[first + j] : 0;
            for (size_t k = 0; k < inner; k++)
                for (size_t j = 0; j < count; j++)
                    y[j] += x[k] * panel[k * PH_ROW_PRODUCT_PANEL + j];
            if (args->is_rectified)
                ph__relu_ref(count, y, y);
        }
    }
}
