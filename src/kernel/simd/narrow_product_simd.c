/* Products of few outputs: each output's sum runs in four vectors side by side, which are added at the end in
 * one order. */
#include "kernel/simd/simd.h"

enum { CHAINS = 4 };

static float dot(size_t n, const float *x, const float *w)
{
    vf sum[CHAINS];
    PH_UNROLL
    for (size_t c = 0; c < CHAINS; c++)
        sum[c] = vf_zero();
    size_t i = 0;
    for (; i + CHAINS * VF_WIDTH <= n; i += CHAINS * VF_WIDTH) {
        PH_UNROLL
        for (size_t c = 0; c < CHAINS; c++)
            sum[c] = vf_fma(vf_load(x + i + c * VF_WIDTH), vf_load(w + i + c * VF_WIDTH), sum[c]);
    }
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        sum[0] = vf_fma(vf_load(x + i), vf_load(w + i), sum[0]);
    if (i < n) {
        const vmask tail = vf_first(n - i);
        sum[1] = vf_fma(vf_load_mask(x + i, tail), vf_load_mask(w + i, tail), sum[1]);
    }
    return vf_sum(vf_add(vf_add(sum[0], sum[1]), vf_add(sum[2], sum[3])));
}

/* y_ij = bias_j + sum_k x_ik w_jk */
void PH_SIMD(narrow_product)(size_t rows, size_t in_features, size_t out_features, const float *x,
    const float *weight, const float *bias, float *y)
{
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < out_features; j++) {
            const float sum = dot(in_features, x + i * in_features, weight + j * in_features);
            y[i * out_features + j] = bias != NULL ? sum + bias[j] : sum;
        }
    }
}
