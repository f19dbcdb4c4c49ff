/* Binary cross entropy with logits: exp and log of simd_math.h in float, the sum in double. */
#include "kernel/simd/simd.h"

/* max(z,0) - z y + log(1 + exp(-|z|)) */
PH_INLINE vf loss(vf z, vf y)
{
    const vf e = vf_exp_nonpositive(vf_sub(vf_zero(), vf_abs(z)));
    return vf_add(vf_fnma(z, y, vf_max(vf_zero(), z)), vf_log1p_unit(e));
}

double PH_SIMD(bce)(size_t n, const float *logits, const float *labels, const float *weights)
{
    vd low = vd_zero();
    vd high = vd_zero();
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH) {
        const vf l = loss(vf_load(logits + i), vf_load(labels + i));
        const vf w = weights != NULL ? vf_load(weights + i) : vf_set1(1);
        low = vd_fma(vd_low(w), vd_low(l), low);
        high = vd_fma(vd_high(w), vd_high(l), high);
    }
    if (i < n) { /* lanes beyond the tail have weight zero and a finite loss */
        const vmask tail = vf_first(n - i);
        const vf l = loss(vf_load_mask(logits + i, tail), vf_load_mask(labels + i, tail));
        const vf one = vf_set1(1);
        const vf w = vf_keep_lanes(tail, weights != NULL ? vf_load_mask(weights + i, tail) : one);
        low = vd_fma(vd_low(w), vd_low(l), low);
        high = vd_fma(vd_high(w), vd_high(l), high);
    }
    return vd_sum(vd_add(low, high));
}

/* scale w (sigmoid(z) - y); for z < 0 the sigmoid is e / (1 + e) */
PH_INLINE vf loss_gradient(vf z, vf y, vf weight)
{
    const vf e = vf_exp_nonpositive(vf_sub(vf_zero(), vf_abs(z)));
    const vf probability = vf_div(vf_where_negative(z, e, vf_set1(1)), vf_add(vf_set1(1), e));
    return vf_mul(weight, vf_sub(probability, y));
}

void PH_SIMD(bce_backward)(
    size_t n, const float *logits, const float *labels, const float *weights, float scale, float *dz)
{
    const vf factor = vf_set1(scale);
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH) {
        const vf weight = weights != NULL ? vf_mul(factor, vf_load(weights + i)) : factor;
        vf_store(dz + i, loss_gradient(vf_load(logits + i), vf_load(labels + i), weight));
    }
    if (i < n) {
        const vmask tail = vf_first(n - i);
        const vf weight = weights != NULL ? vf_mul(factor, vf_load_mask(weights + i, tail)) : factor;
        vf_store_mask(dz + i, tail,
            loss_gradient(vf_load_mask(logits + i, tail), vf_load_mask(labels + i, tail), weight));
    }
}
