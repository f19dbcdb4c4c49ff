/* Sigmoid with the exponential of simd_math.h. */
#include "kernel/simd/simd.h"

/* e = exp(-|x|);  y = 1 / (1 + e), or e / (1 + e) where x < 0: nothing overflows */
PH_INLINE vf sigmoid(vf x)
{
    const vf e = vf_exp_nonpositive(vf_sub(vf_zero(), vf_abs(x)));
    return vf_div(vf_where_negative(x, e, vf_set1(1)), vf_add(vf_set1(1), e));
}

void PH_SIMD(sigmoid)(size_t n, const float *x, float *y)
{
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vf_store(y + i, sigmoid(vf_load(x + i)));
    const vmask tail = vf_first(n - i);
    if (i < n)
        vf_store_mask(y + i, tail, sigmoid(vf_load_mask(x + i, tail)));
}

/* dx = dy y (1 - y) */
PH_INLINE vf sigmoid_gradient(vf y, vf dy)
{
    return vf_mul(dy, vf_mul(y, vf_sub(vf_set1(1), y)));
}

void PH_SIMD(sigmoid_backward)(size_t n, const float *y, const float *dy, float *dx)
{
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vf_store(dx + i, sigmoid_gradient(vf_load(y + i), vf_load(dy + i)));
    const vmask tail = vf_first(n - i);
    if (i < n)
        vf_store_mask(dx + i, tail, sigmoid_gradient(vf_load_mask(y + i, tail), vf_load_mask(dy + i, tail)));
}
