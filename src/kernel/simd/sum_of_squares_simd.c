/* Sum of squares in double: eight accumulators of doubles, added pairwise at the end. */
#include "kernel/simd/simd.h"

enum { CHAINS = 4, STEP = CHAINS * VF_WIDTH };

PH_INLINE void add_squares(vf x, vf w, vd l2, vd *low, vd *high)
{
    const vd a = vd_fma(l2, vd_low(w), vd_low(x));
    const vd b = vd_fma(l2, vd_high(w), vd_high(x));
    *low = vd_fma(a, a, *low);
    *high = vd_fma(b, b, *high);
}

/* sum_i (x_i + l2 w_i)^2 */
double PH_SIMD(sum_of_squares)(size_t n, const float *x, const float *w, float l2)
{
    const vd factor = vd_set1((double)l2);
    vd low[CHAINS], high[CHAINS];
    for (size_t c = 0; c < CHAINS; c++)
        low[c] = high[c] = vd_zero();

    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        PH_UNROLL
        for (size_t c = 0; c < CHAINS; c++) {
            const size_t at = i + c * VF_WIDTH;
            add_squares(x != NULL ? vf_load(x + at) : vf_zero(), w != NULL ? vf_load(w + at) : vf_zero(),
                factor, &low[c], &high[c]);
        }
    }
    for (; i < n; i += VF_WIDTH) {
        const vmask tail = vf_first(n - i < VF_WIDTH ? n - i : VF_WIDTH);
        add_squares(x != NULL ? vf_load_mask(x + i, tail) : vf_zero(),
            w != NULL ? vf_load_mask(w + i, tail) : vf_zero(), factor, &low[0], &high[0]);
    }

    vd sum = vd_zero();
    for (size_t c = 0; c < CHAINS; c++)
        sum = vd_add(sum, vd_add(low[c], high[c]));
    return vd_sum(sum);
}
