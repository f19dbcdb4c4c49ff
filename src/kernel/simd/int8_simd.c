/* Numbers in one byte each, and back. Magnitudes are compared by their bits, as unsigned integers: infinity
 * and NaN come beyond all finite numbers, so the largest shows them, too. */
#include <string.h>

#include "kernel/int8_scale.h"
#include "kernel/simd/simd.h"
#include "kernel/simd/simd_math.h"

#define INFINITY_BITS 0x7f800000

PH_INLINE vu magnitudes(vf x)
{
    return vu_bits(vf_abs(x));
}

/* Returns the largest magnitude; infinity where a number is not finite. */
static float largest_of(size_t n, const float *x)
{
    vu most = vu_set1(0);
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        most = vu_more(most, magnitudes(vf_load(x + i)));
    if (i < n)
        most = vu_more(most, magnitudes(vf_load_mask(x + i, vf_first(n - i))));
    return vf_largest(vf_of_bits(vu_less(most, vu_set1(INFINITY_BITS))));
}

float PH_SIMD(int8_narrow)(size_t n, const float *x, int8_t *y)
{
    const float scale = ph__int8_scale(largest_of(n, x));
    if (!(scale > 0)) {
        memset(y, 0, n);
        return scale;
    }
    const vf divisor = vf_set1(scale);
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vf_store_signed_bytes(y + i, vf_div(vf_load(x + i), divisor));
    if (i < n) {
        int8_t last[VF_WIDTH];
        vf_store_signed_bytes(last, vf_div(vf_load_mask(x + i, vf_first(n - i)), divisor));
        memcpy(y + i, last, n - i);
    }
    return scale;
}

void PH_SIMD(int8_widen)(size_t n, const int8_t *x, float scale, float *y)
{
    const vf factor = vf_set1(scale);
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vf_store(y + i, vf_mul(vf_load_signed_bytes(x + i), factor));
    for (; i < n; i++)
        y[i] = (float)x[i] * scale;
}
