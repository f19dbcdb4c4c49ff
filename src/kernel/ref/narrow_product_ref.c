/* Products of few outputs, the specification. */
#include "kernel/kernel_list.h"

/* y_ij = bias_j + sum_k x_ik w_jk */
void ph__narrow_product_ref(size_t rows, size_t in_features, size_t out_features, const ph_real *x,
    const ph_real *weight, const ph_real *bias, ph_real *y)
{
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < out_features; j++) {
            ph_real sum = 0;
            for (size_t k = 0; k < in_features; k++)
                sum += x[i * in_features + k] * weight[j * in_features + k];
            y[i * out_features + j] = bias != NULL ? sum + bias[j] : sum;
        }
    }
}
