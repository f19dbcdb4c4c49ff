/* Numbers in one byte each, and back. */
#include <string.h>

#include "kernel/int8_scale.h"
#include "kernel/simd/int8_largest.h"

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
