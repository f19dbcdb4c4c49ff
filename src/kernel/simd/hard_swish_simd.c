/* Hard swish: whole vectors, then a masked tail. */
#include "kernel/simd/hard_swish.h"

void PH_SIMD(hard_swish)(size_t n, const float *x, float *y)
{
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vf_store(y + i, vf_hard_swish(vf_load(x + i)));
    const vmask tail = vf_first(n - i);
    if (i < n)
        vf_store_mask(y + i, tail, vf_hard_swish(vf_load_mask(x + i, tail)));
}

void PH_SIMD(hard_swish_backward)(size_t n, const float *x, const float *dy, float *dx)
{
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vf_store(dx + i, vf_mul(vf_load(dy + i), vf_hard_swish_slope(vf_load(x + i))));
    const vmask tail = vf_first(n - i);
    if (i < n)
        vf_store_mask(
            dx + i, tail, vf_mul(vf_load_mask(dy + i, tail), vf_hard_swish_slope(vf_load_mask(x + i, tail))));
}
