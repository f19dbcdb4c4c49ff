/* Hard swish of a vector, with the bits of the specification. */
#ifndef PH_KERNEL_SIMD_HARD_SWISH_H
#define PH_KERNEL_SIMD_HARD_SWISH_H

#include "kernel/simd/simd.h"

/* clamp(x + 3, 0, 6) / 6 */
PH_INLINE vf vf_swish_gate(vf x)
{
    const vf positive = vf_max(vf_zero(), vf_add(x, vf_set1(3)));
    return vf_mul(vf_min(vf_set1(6), positive), vf_set1(1.0F / 6));
}

PH_INLINE vf vf_hard_swish(vf x)
{
    return vf_mul(x, vf_swish_gate(x));
}

PH_INLINE vf vf_hard_swish_slope(vf x)
{
    const vf inner = vf_mul(x, vf_set1(1.0F / 6));
    return vf_add(vf_swish_gate(x), vf_where_negative(vf_sub(vf_abs(x), vf_set1(3)), inner, vf_zero()));
}

#endif
