/* Vectors of 8 floats and 4 doubles for the kernel bodies in this folder. The same operations as in
 * simd_avx512.h, which explains each. Included by simd.h. */
#ifndef PH_KERNEL_SIMD_AVX2_H
#define PH_KERNEL_SIMD_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/kernel_list.h"

#define PH_SIMD(name) ph__##name##_avx2
#define VF_WIDTH 8
#define VD_WIDTH 4
#define VF_REGISTERS 16

typedef __m256 vf;
typedef __m256d vd;
typedef __m256i vu;
typedef __m256i vmask;
typedef __m128i vw;

static inline vmask vf_first(size_t n) /* the first n lanes, n <= VF_WIDTH */
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline vmask vf_first_and_more(vu n, int more)
{
    const vu lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(n, _mm256_sub_epi32(lanes, _mm256_set1_epi32(more)));
}

static inline vf vf_zero(void)
{
    return _mm256_setzero_ps();
}

static inline vf vf_set1(float x)
{
    return _mm256_set1_ps(x);
}

static inline vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

static inline vf vf_pin(vf x) /* x, kept in a register: compilers would load it again for each use */
{
    __asm__("" : "+x"(x));
    return x;
}

static inline void vf_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x);
}

static inline void vf_stream(float *p, vf x)
{
    _mm256_stream_ps(p, x);
}

static inline void vw_stream(uint16_t *p, vw words)
{
    _mm_stream_si128((__m128i *)(void *)p, words);
}

static inline void end_streams(void)
{
    _mm_sfence();
}

static inline vf vf_load_mask(const float *p, vmask mask)
{
    return _mm256_maskload_ps(p, mask);
}

static inline void vf_store_mask(float *p, vmask mask, vf x)
{
    _mm256_maskstore_ps(p, mask, x);
}

static inline vf vf_load_bf16(const uint16_t *p)
{
    const __m128i words = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16));
}

/* Rounds to nearest even; NaN becomes quiet. */
static inline vw vw_bfloats(vf x)
{
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7fff));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i words = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0x08));
}

static inline void vw_store(uint16_t *p, vw words)
{
    _mm_storeu_si128((__m128i *)(void *)p, words);
}

static inline void vf_store_bf16(uint16_t *p, vf x)
{
    vw_store(p, vw_bfloats(x));
}

static inline vf vf_keep_lanes(vmask mask, vf x) /* the masked lanes, zero elsewhere */
{
    return _mm256_and_ps(_mm256_castsi256_ps(mask), x);
}

static inline vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}

static inline vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}

static inline vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}

static inline vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}

static inline vf vf_sqrt(vf a)
{
    return _mm256_sqrt_ps(a);
}

static inline vf vf_fma(vf a, vf b, vf c) /* a b + c */
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline vf vf_fnma(vf a, vf b, vf c) /* c - a b */
{
    return _mm256_fnmadd_ps(a, b, c);
}

static inline vf vf_max(vf a, vf b) /* b where either is NaN */
{
    return _mm256_max_ps(a, b);
}

static inline vf vf_min(vf a, vf b) /* b where either is NaN */
{
    return _mm256_min_ps(a, b);
}

static inline vf vf_abs(vf a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), a);
}

static inline vf vf_round(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vf vf_exp2_integer(vf k) /* 2^k for integral k of a normal result */
{
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(k), _mm256_set1_epi32(127)), 23));
}

static inline vf vf_exponent(vf x)
{
    const __m256i exponent = _mm256_srli_epi32(_mm256_castps_si256(x), 23);
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(exponent, _mm256_set1_epi32(127)));
}

static inline vf vf_mantissa(vf x)
{
    const __m256i fraction = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffff));
    return _mm256_castsi256_ps(_mm256_or_si256(fraction, _mm256_set1_epi32(0x3f800000)));
}

static inline vf vf_where_negative(vf x, vf yes, vf no) /* x < 0 ? yes : no */
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ));
}

static inline vf vf_where_positive(vf x, vf yes) /* x > 0 ? yes : 0 */
{
    return _mm256_and_ps(_mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_GT_OQ), yes);
}

/* Sums each of 8 vectors: lane k is the sum of x[k]. A transposition that adds as it goes. */
static inline vf vf_sums(const vf x[VF_WIDTH])
{
    vf half[4];
    for (int k = 0; k < 4; k++) /* low half of lanes from x[k], high half from x[k + 4] */
        half[k] = vf_add(_mm256_blend_ps(x[k], x[k + 4], 0xF0), _mm256_permute2f128_ps(x[k], x[k + 4], 0x21));
    const vf a = vf_add(_mm256_unpacklo_ps(half[0], half[1]), _mm256_unpackhi_ps(half[0], half[1]));
    const vf b = vf_add(_mm256_unpacklo_ps(half[2], half[3]), _mm256_unpackhi_ps(half[2], half[3]));
    return vf_add(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xEE));
}

static inline vf vf_load_four(const float *p)
{
    return _mm256_broadcast_ps((const __m128 *)(const void *)p);
}

static inline void vf_transpose_fours(vf x[VF_WIDTH / 4]) /* 2x2 here */
{
    const vf a = _mm256_permute2f128_ps(x[0], x[1], 0x20);
    x[1] = _mm256_permute2f128_ps(x[0], x[1], 0x31);
    x[0] = a;
}

/* Transposes the 4x4 matrix of numbers in every 128-bit lane. */
static inline void vf_interleave(vf x[4])
{
    const vf a = _mm256_unpacklo_ps(x[0], x[1]);
    const vf b = _mm256_unpackhi_ps(x[0], x[1]);
    const vf c = _mm256_unpacklo_ps(x[2], x[3]);
    const vf d = _mm256_unpackhi_ps(x[2], x[3]);
    x[0] = _mm256_shuffle_ps(a, c, 0x44);
    x[1] = _mm256_shuffle_ps(a, c, 0xEE);
    x[2] = _mm256_shuffle_ps(b, d, 0x44);
    x[3] = _mm256_shuffle_ps(b, d, 0xEE);
}

/* Lane 2 k + l: the sum of the four numbers in 128-bit lane l of x[k], for k < count <= 4, a constant. */
static inline vf vf_sums_of_fours(const vf *x, size_t count)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    vf a, b;
    if (count == 1) {
        a = vf_add(x[0], _mm256_shuffle_ps(x[0], x[0], 0x4E));
        return _mm256_permutevar8x32_ps(vf_add(a, _mm256_shuffle_ps(a, a, 0xB1)), order);
    }
    a = vf_add(_mm256_unpacklo_ps(x[0], x[1]), _mm256_unpackhi_ps(x[0], x[1]));
    if (count == 2)
        return _mm256_permutevar8x32_ps(vf_add(a, _mm256_shuffle_ps(a, a, 0x4E)), order);
    b = vf_add(_mm256_unpacklo_ps(x[2], x[count - 1]), _mm256_unpackhi_ps(x[2], x[count - 1]));
    return _mm256_permutevar8x32_ps(
        vf_add(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xEE)), order);
}

static inline vf vf_sums_in_fours(const vf *x, size_t count)
{
    vf a, b;
    if (count == 1) {
        a = vf_add(x[0], _mm256_shuffle_ps(x[0], x[0], 0xB1));
        return vf_add(a, _mm256_shuffle_ps(a, a, 0x4E));
    }
    a = vf_add(_mm256_shuffle_ps(x[0], x[1], 0x88), _mm256_shuffle_ps(x[0], x[1], 0xDD));
    b = a;
    if (count == 4)
        b = vf_add(_mm256_shuffle_ps(x[2], x[3], 0x88), _mm256_shuffle_ps(x[2], x[3], 0xDD));
    return vf_add(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xDD));
}

static inline vf vf_firsts_of_fours(vf x)
{
    return _mm256_permutevar8x32_ps(x, _mm256_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4));
}

static inline float vf_sum_of_lanes(const vf *x, size_t count) /* lanes 2 and 3 are those of x[1] */
{
    const vf half = vf_add(x[0], x[1]);
    const __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    const __m128 pair = count == 4 ? _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter)) : quarter;
    return _mm_cvtss_f32(count == 1 ? pair : _mm_add_ss(pair, _mm_movehdup_ps(pair)));
}

static inline float vf_sum(vf x)
{
    const __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
}

static inline float vf_largest(vf x)
{
    const __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 pair = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
}

static inline vd vd_zero(void)
{
    return _mm256_setzero_pd();
}

static inline vd vd_set1(double x)
{
    return _mm256_set1_pd(x);
}

static inline vd vd_load(const double *p)
{
    return _mm256_loadu_pd(p);
}

static inline void vd_store(double *p, vd x)
{
    _mm256_storeu_pd(p, x);
}

static inline vd vd_low(vf x)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}

static inline vd vd_high(vf x)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}

static inline vd vd_add(vd a, vd b)
{
    return _mm256_add_pd(a, b);
}

static inline vd vd_sub(vd a, vd b)
{
    return _mm256_sub_pd(a, b);
}

static inline vd vd_mul(vd a, vd b)
{
    return _mm256_mul_pd(a, b);
}

static inline vd vd_fma(vd a, vd b, vd c) /* a b + c */
{
    return _mm256_fmadd_pd(a, b, c);
}

static inline double vd_sum(vd x)
{
    const __m128d pair = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair)));
}

static inline vu vu_set1(uint32_t x)
{
    return _mm256_set1_epi32((int)x);
}

static inline vu vu_load(const uint32_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

static inline vu vu_bits(vf x)
{
    return _mm256_castps_si256(x);
}

/* 16 signed bytes as words of 16 bits; four of them, repeated. */
static inline vu vu_widen_bytes(const int8_t *p)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
}

static inline vu vu_widen_four_bytes(int32_t four)
{
    return _mm256_cvtepi8_epi16(_mm_set1_epi32(four));
}

static inline vu vu_add_products(vu a, vu b)
{
    return _mm256_madd_epi16(a, b);
}

static inline vu vu_add_neighbours(vu a, vu b)
{
    return _mm256_permute4x64_epi64(_mm256_hadd_epi32(a, b), 0xd8);
}

static inline vf vf_from_signed(vu x) /* of signed words */
{
    return _mm256_cvtepi32_ps(x);
}

static inline vf vf_of_bits(vu x)
{
    return _mm256_castsi256_ps(x);
}

static inline vf vf_low_bf16(vu words)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
}

static inline vf vf_high_bf16(vu words)
{
    return _mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32((int)0xffff0000)));
}

static inline vf vf_shifted_bf16(vu words, vu shift)
{
    return vf_high_bf16(_mm256_sllv_epi32(words, shift));
}

static inline vu vu_add(vu a, vu b)
{
    return _mm256_add_epi32(a, b);
}

static inline vu vu_xor3(vu a, vu b, vu c)
{
    return _mm256_xor_si256(a, _mm256_xor_si256(b, c));
}

/* Multiplies 32-bit lanes to 64-bit products, as their low and high words. */
static inline vu vu_multiply(vu a, vu b, vu *high_out)
{
    const vu even = _mm256_mul_epu32(a, b);
    const vu odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), b);
    *high_out = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
    return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
}

/* Numbers the lanes such that, after vu_interleave, the four words of block k are at 4 k .. 4 k + 3. */
static inline vu vu_block_numbers(void)
{
    return _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
}

/* Transposes the 4x4 matrix of words in every 128-bit lane. */
static inline void vu_interleave(vu word[4])
{
    vf x[4] = {vf_of_bits(word[0]), vf_of_bits(word[1]), vf_of_bits(word[2]), vf_of_bits(word[3])};
    vf_interleave(x);
    for (int i = 0; i < 4; i++)
        word[i] = vu_bits(x[i]);
}

/* Keeps the floats of lanes where word >= threshold, zeroes the others; bytes get 1 or 0. */
static inline vf vf_keep_from(vu word, vu threshold, vf x, uint8_t *bytes_out)
{
    const __m256i kept = _mm256_cmpeq_epi32(_mm256_max_epu32(word, threshold), word);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(kept), _mm256_extracti128_si256(kept, 1));
    const __m128i bytes = _mm_and_si128(_mm_packs_epi16(words, words), _mm_set1_epi8(1));
    _mm_storel_epi64((__m128i *)(void *)bytes_out, bytes);
    return _mm256_and_ps(_mm256_castsi256_ps(kept), x);
}

static inline vf vf_keep_bytes(const uint8_t *bytes, vf x) /* lanes whose byte is not zero */
{
    const __m256i words = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)bytes));
    return _mm256_andnot_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(words, _mm256_setzero_si256())), x);
}

#include "kernel/simd/simd_math.h"

#endif
