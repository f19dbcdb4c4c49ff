/* exp and log of vectors, for either ISA: minimax polynomials fitted for these ranges, no libm. Included by
 * simd_avx2.h and simd_avx512.h, which define the operations used here. */
#ifndef PH_KERNEL_SIMD_MATH_H
#define PH_KERNEL_SIMD_MATH_H

/* Unrolls a loop of constant length completely, so that an array of vectors lives in registers. */
#ifdef __clang__
#define PH_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PH_UNROLL _Pragma("GCC unroll 32")
#endif

/* Inlines a function into every call, so that constant arguments are constant within; comments name such
 * parameters "constants". Builds whose speed does not matter keep the calls, to compile in a quarter of the
 * time. */
#ifdef PH_KEEP_CALLS
#define PH_INLINE static inline
#else
#define PH_INLINE static inline __attribute__((always_inline))
#endif

/* exp(x) for x <= 0, within 2 ulp; below -87.3, where floats end, about 1e-38. NaN gives NaN.
 * x = k ln 2 + r, |r| <= ln 2 / 2;  exp(x) = 2^k (1 + r + r^2 p(r)) */
PH_INLINE vf vf_exp_nonpositive(vf x)
{
    x = vf_max(vf_set1(-87.3F), x);
    const vf k = vf_round(vf_mul(x, vf_set1(1.44269504F)));
    vf r = vf_fnma(k, vf_set1(0.693359375F), x); /* ln 2 in two parts: the first times k is exact */
    r = vf_fnma(k, vf_set1(-2.12194440e-4F), r);

    vf p = vf_set1(1.381459878757596e-3F);
    p = vf_fma(p, r, vf_set1(8.368716575205326e-3F));
    p = vf_fma(p, r, vf_set1(4.166838899254799e-2F));
    p = vf_fma(p, r, vf_set1(1.666652113199234e-1F));
    p = vf_fma(p, r, vf_set1(4.999999403953552e-1F));
    p = vf_fma(vf_mul(p, r), r, r);
    return vf_mul(vf_add(p, vf_set1(1)), vf_exp2_integer(k));
}

/* log(1 + e) for 0 <= e <= 1, within 2 ulp, small e included.
 * s = e / (2 + e), t = s^2 <= 1/9;  log(1 + e) = 2 atanh(s) = 2 s (1 + t q(t)) */
PH_INLINE vf vf_log1p_unit(vf e)
{
    const vf s = vf_div(e, vf_add(e, vf_set1(2)));
    const vf t = vf_mul(s, s);

    vf q = vf_set1(1.400633305311203e-1F);
    q = vf_fma(q, t, vf_set1(1.400083899497986e-1F));
    q = vf_fma(q, t, vf_set1(2.001076638698578e-1F));
    q = vf_fma(q, t, vf_set1(3.333320915699005e-1F));
    const vf twice = vf_add(s, s);
    return vf_fma(vf_mul(q, t), twice, twice);
}

/* log(x) for normal x >= 1, within 3 ulp. log(2^k m) = k ln 2 + log(1 + (m - 1)) */
PH_INLINE vf vf_log_from_one(vf x)
{
    const vf k = vf_exponent(x);
    const vf rest = vf_fma(k, vf_set1(-2.12194440e-4F), vf_log1p_unit(vf_sub(vf_mantissa(x), vf_set1(1))));
    return vf_fma(k, vf_set1(0.693359375F), rest);
}

#endif
