/* Largest magnitudes. They are compared by their bits, as unsigned integers: infinity and NaN come beyond all
 * finite numbers, so the largest shows them, too. */
#ifndef PH_KERNEL_INT8_LARGEST_H
#define PH_KERNEL_INT8_LARGEST_H

#include "kernel/simd/simd.h"
#include "kernel/simd/simd_math.h"

#define INFINITY_BITS 0x7f800000

PH_INLINE vu magnitudes(vf x)
{
    return vu_bits(vf_abs(x));
}

/* Returns magnitudes as floats; infinity where a number was not finite. */
PH_INLINE vf finite_or_infinity(vu magnitude)
{
    return vf_of_bits(vu_less(magnitude, vu_set1(INFINITY_BITS)));
}

/* Returns the largest magnitude; infinity where a number is not finite. */
PH_INLINE float largest_of(size_t n, const float *x)
{
    vu most = vu_set1(0);
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        most = vu_more(most, magnitudes(vf_load(x + i)));
    if (i < n)
        most = vu_more(most, magnitudes(vf_load_mask(x + i, vf_first(n - i))));
    return vf_largest(finite_or_infinity(most));
}

#endif
