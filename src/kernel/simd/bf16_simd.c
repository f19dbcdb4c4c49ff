/* bf16 and back: whole vectors, then the tail number by number. */
#include "kernel/simd/simd.h"
#include "tensor/float16.h"

void PH_SIMD(bf16_narrow)(size_t n, const float *x, uint16_t *y)
{
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vf_store_bf16(y + i, vf_load(x + i));
    for (; i < n; i++)
        y[i] = ph__bfloat_from_float(x[i]);
}

void PH_SIMD(bf16_widen)(size_t n, const uint16_t *x, float *y)
{
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vf_store(y + i, vf_load_bf16(x + i));
    for (; i < n; i++)
        y[i] = ph__float_from_bfloat(x[i]);
}
