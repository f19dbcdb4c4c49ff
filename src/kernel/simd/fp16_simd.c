/* fp16 and back: whole vectors, then the tail number by number. The processor's conversions keep a NaN's
 * payload, as far as it fits; the specification keeps only its sign. */
#include "kernel/simd/simd.h"
#include "kernel/simd/simd_math.h"
#include "tensor/float16.h"

PH_INLINE vf plain_nan(vf x)
{
    const vu bits = vu_bits(x);
    const vu plain = vu_or(vu_and(bits, vu_set1(0x80000000)), vu_set1(0x7fc00000));
    return vf_of_bits(vu_where_nan(x, plain, bits));
}

void PH_SIMD(fp16_narrow)(size_t n, const float *x, uint16_t *y)
{
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vw_store(y + i, vw_halves(plain_nan(vf_load(x + i))));
    for (; i < n; i++)
        y[i] = ph__half_from_float(x[i]);
}

void PH_SIMD(fp16_widen)(size_t n, const uint16_t *x, float *y)
{
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vf_store(y + i, plain_nan(vf_load_halves((const unsigned char *)(x + i))));
    for (; i < n; i++)
        y[i] = ph__float_from_half(x[i]);
}
