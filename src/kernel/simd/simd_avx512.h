/* Vectors of 16 floats and 8 doubles for the kernel bodies in this folder. Included by simd.h.
 *
 * vf floats, vd doubles (vd_low and vd_high widen the halves of a vf), vu 32-bit words, vw as many 16-bit
 * words, vmask a tail of lanes. Masked loads fill with zeros and touch no memory beyond the mask. */
#ifndef PH_KERNEL_SIMD_AVX512_H
#define PH_KERNEL_SIMD_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/kernel_list.h"

#define PH_SIMD(name) ph__##name##_avx512
#define VF_WIDTH 16
#define VD_WIDTH 8
#define VF_REGISTERS 32

typedef __m512 vf;
typedef __m512d vd;
typedef __m512i vu;
typedef __m256i vw;
typedef __mmask16 vmask;

static inline vmask vf_first(size_t n) /* the first n lanes, n <= VF_WIDTH */
{
    return (vmask)((1u << n) - 1);
}

/* Masks the first n + more lanes, or all; n is repeated in every lane, more is a constant. */
static inline vmask vf_first_and_more(vu n, int more)
{
    const vu lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_cmpgt_epi32_mask(n, _mm512_sub_epi32(lanes, _mm512_set1_epi32(more)));
}

static inline vf vf_zero(void)
{
    return _mm512_setzero_ps();
}

static inline vf vf_set1(float x)
{
    return _mm512_set1_ps(x);
}

static inline vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline vf vf_pin(vf x) /* x, kept in a register: compilers would load it again for each use */
{
    __asm__("" : "+v"(x));
    return x;
}

static inline void vf_store(float *p, vf x)
{
    _mm512_storeu_ps(p, x);
}

/* Stores past the caches, to a multiple of the vector's size; other threads see it after end_streams. */
static inline void vf_stream(float *p, vf x)
{
    _mm512_stream_ps(p, x);
}

static inline void vw_stream(uint16_t *p, vw words)
{
    _mm256_stream_si256((__m256i *)(void *)p, words);
}

static inline void end_streams(void)
{
    _mm_sfence();
}

static inline vf vf_load_mask(const float *p, vmask mask)
{
    return _mm512_maskz_loadu_ps(mask, p);
}

static inline void vf_store_mask(float *p, vmask mask, vf x)
{
    _mm512_mask_storeu_ps(p, mask, x);
}

static inline vf vf_load_bf16(const uint16_t *p)
{
    const __m256i words = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
}

/* Rounds to nearest even; NaN becomes quiet. */
static inline vw vw_bfloats(vf x)
{
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i result = _mm512_mask_or_epi32(rounded, is_nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(result, 16));
}

static inline void vw_store(uint16_t *p, vw words)
{
    _mm256_storeu_si256((__m256i *)(void *)p, words);
}

static inline void vf_store_bf16(uint16_t *p, vf x)
{
    vw_store(p, vw_bfloats(x));
}

static inline vf vf_keep_lanes(vmask mask, vf x) /* the masked lanes, zero elsewhere */
{
    return _mm512_maskz_mov_ps(mask, x);
}

static inline vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}

static inline vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}

static inline vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}

static inline vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}

static inline vf vf_sqrt(vf a)
{
    return _mm512_sqrt_ps(a);
}

static inline vf vf_fma(vf a, vf b, vf c) /* a b + c */
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline vf vf_fnma(vf a, vf b, vf c) /* c - a b */
{
    return _mm512_fnmadd_ps(a, b, c);
}

static inline vf vf_max(vf a, vf b) /* b where either is NaN */
{
    return _mm512_max_ps(a, b);
}

static inline vf vf_min(vf a, vf b) /* b where either is NaN */
{
    return _mm512_min_ps(a, b);
}

static inline vf vf_abs(vf a)
{
    return _mm512_abs_ps(a);
}

static inline vf vf_round(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vf vf_exp2_integer(vf k) /* 2^k for integral k of a normal result */
{
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(k), _mm512_set1_epi32(127)), 23));
}

/* x = mantissa * 2^exponent with 1 <= mantissa < 2, for normal x > 0 */
static inline vf vf_exponent(vf x)
{
    return _mm512_getexp_ps(x);
}

static inline vf vf_mantissa(vf x)
{
    return _mm512_getmant_ps(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
}

static inline vf vf_where_negative(vf x, vf yes, vf no) /* x < 0 ? yes : no */
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), no, yes);
}

static inline vf vf_where_positive(vf x, vf yes) /* x > 0 ? yes : 0 */
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ), yes);
}

/* Sums each of 16 vectors: lane k is the sum of x[k]. A transposition that adds as it goes. */
static inline vf vf_sums(const vf x[VF_WIDTH])
{
    vf half[8], quarter[4];
    for (int k = 0; k < 8; k++) { /* 128-bit lanes: two of x[a], two of x[a + 4] */
        const vf p = x[k < 4 ? k : k + 4];
        const vf q = x[k < 4 ? k + 4 : k + 8];
        half[k] = vf_add(_mm512_shuffle_f32x4(p, q, 0x88), _mm512_shuffle_f32x4(p, q, 0xDD));
    }
    for (int k = 0; k < 4; k++) /* 128-bit lanes: x[k], x[k + 4], x[k + 8], x[k + 12] */
        quarter[k] = vf_add(_mm512_shuffle_f32x4(half[k], half[k + 4], 0x88),
            _mm512_shuffle_f32x4(half[k], half[k + 4], 0xDD));
    const vf a =
        vf_add(_mm512_unpacklo_ps(quarter[0], quarter[1]), _mm512_unpackhi_ps(quarter[0], quarter[1]));
    const vf b =
        vf_add(_mm512_unpacklo_ps(quarter[2], quarter[3]), _mm512_unpackhi_ps(quarter[2], quarter[3]));
    return vf_add(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE));
}

/* Repeats the four numbers at p in every 128-bit lane. */
static inline vf vf_load_four(const float *p)
{
    return _mm512_broadcast_f32x4(_mm_loadu_ps(p));
}

/* Transposes the 4x4 matrix of 128-bit lanes. */
static inline void vf_transpose_fours(vf x[VF_WIDTH / 4])
{
    const vf a = _mm512_shuffle_f32x4(x[0], x[1], 0x44);
    const vf b = _mm512_shuffle_f32x4(x[0], x[1], 0xEE);
    const vf c = _mm512_shuffle_f32x4(x[2], x[3], 0x44);
    const vf d = _mm512_shuffle_f32x4(x[2], x[3], 0xEE);
    x[0] = _mm512_shuffle_f32x4(a, c, 0x88);
    x[1] = _mm512_shuffle_f32x4(a, c, 0xDD);
    x[2] = _mm512_shuffle_f32x4(b, d, 0x88);
    x[3] = _mm512_shuffle_f32x4(b, d, 0xDD);
}

/* Transposes the 4x4 matrix of numbers in every 128-bit lane. */
static inline void vf_interleave(vf x[4])
{
    const vf a = _mm512_unpacklo_ps(x[0], x[1]);
    const vf b = _mm512_unpackhi_ps(x[0], x[1]);
    const vf c = _mm512_unpacklo_ps(x[2], x[3]);
    const vf d = _mm512_unpackhi_ps(x[2], x[3]);
    x[0] = _mm512_shuffle_ps(a, c, 0x44);
    x[1] = _mm512_shuffle_ps(a, c, 0xEE);
    x[2] = _mm512_shuffle_ps(b, d, 0x44);
    x[3] = _mm512_shuffle_ps(b, d, 0xEE);
}

/* Lane 4 k + l: the sum of the four numbers in 128-bit lane l of x[k], for k < count <= 4, a constant. */
static inline vf vf_sums_of_fours(const vf *x, size_t count)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    vf a, b;
    if (count == 1) {
        a = vf_add(x[0], _mm512_shuffle_ps(x[0], x[0], 0x4E));
        return _mm512_permutexvar_ps(order, vf_add(a, _mm512_shuffle_ps(a, a, 0xB1)));
    }
    a = vf_add(_mm512_unpacklo_ps(x[0], x[1]), _mm512_unpackhi_ps(x[0], x[1]));
    if (count == 2)
        return _mm512_permutexvar_ps(order, vf_add(a, _mm512_shuffle_ps(a, a, 0x4E)));
    b = vf_add(_mm512_unpacklo_ps(x[2], x[count - 1]), _mm512_unpackhi_ps(x[2], x[count - 1]));
    return _mm512_permutexvar_ps(order, vf_add(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE)));
}

/* Number v of each 128-bit lane: the sum ((0 + 1) + (2 + 3)) of the four there of x[v], v < count. count is a
 * constant: 4; 2, where numbers 2 and 3 repeat the first two; or 1, where all repeat the first. */
static inline vf vf_sums_in_fours(const vf *x, size_t count)
{
    vf a, b;
    if (count == 1) {
        a = vf_add(x[0], _mm512_shuffle_ps(x[0], x[0], 0xB1));
        return vf_add(a, _mm512_shuffle_ps(a, a, 0x4E));
    }
    a = vf_add(_mm512_shuffle_ps(x[0], x[1], 0x88), _mm512_shuffle_ps(x[0], x[1], 0xDD));
    b = a;
    if (count == 4)
        b = vf_add(_mm512_shuffle_ps(x[2], x[3], 0x88), _mm512_shuffle_ps(x[2], x[3], 0xDD));
    return vf_add(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xDD));
}

/* Gathers the first numbers of the 128-bit lanes side by side in the first lane. */
static inline vf vf_firsts_of_fours(vf x)
{
    return _mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12), x);
}

/* Sums the first `count` numbers, 1, 2 or 4, a constant, of 128-bit lanes 0 .. 3, which x[0] holds here:
 * lanes first, (0 + 2) + (1 + 3), then numbers the same way. */
static inline float vf_sum_of_lanes(const vf *x, size_t count)
{
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(x[0]), _mm512_extractf32x8_ps(x[0], 1));
    const __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    const __m128 pair = count == 4 ? _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter)) : quarter;
    return _mm_cvtss_f32(count == 1 ? pair : _mm_add_ss(pair, _mm_movehdup_ps(pair)));
}

static inline float vf_sum(vf x)
{
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    const __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    const __m128 pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
}

static inline float vf_largest(vf x) /* the largest of its lanes */
{
    const __m256 half = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    const __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    const __m128 pair = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
}

static inline vd vd_zero(void)
{
    return _mm512_setzero_pd();
}

static inline vd vd_set1(double x)
{
    return _mm512_set1_pd(x);
}

static inline vd vd_load(const double *p)
{
    return _mm512_loadu_pd(p);
}

static inline void vd_store(double *p, vd x)
{
    _mm512_storeu_pd(p, x);
}

static inline vd vd_low(vf x)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}

static inline vd vd_high(vf x)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}

static inline vd vd_add(vd a, vd b)
{
    return _mm512_add_pd(a, b);
}

static inline vd vd_sub(vd a, vd b)
{
    return _mm512_sub_pd(a, b);
}

static inline vd vd_mul(vd a, vd b)
{
    return _mm512_mul_pd(a, b);
}

static inline vd vd_fma(vd a, vd b, vd c) /* a b + c */
{
    return _mm512_fmadd_pd(a, b, c);
}

static inline double vd_sum(vd x)
{
    const __m256d half = _mm256_add_pd(_mm512_castpd512_pd256(x), _mm512_extractf64x4_pd(x, 1));
    const __m128d pair = _mm_add_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
    return _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair)));
}

static inline vu vu_set1(uint32_t x)
{
    return _mm512_set1_epi32((int)x);
}

static inline vu vu_load(const uint32_t *p)
{
    return _mm512_loadu_si512(p);
}

static inline vu vu_bits(vf x)
{
    return _mm512_castps_si512(x);
}

/* 32 signed bytes as words of 16 bits; four of them, repeated. */
static inline vu vu_widen_bytes(const int8_t *p)
{
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

static inline vu vu_widen_four_bytes(int32_t four)
{
    return _mm512_cvtepi8_epi16(_mm256_set1_epi32(four));
}

/* Multiplies signed words of 16 bits, and adds the products of neighbours. */
static inline vu vu_add_products(vu a, vu b)
{
    return _mm512_madd_epi16(a, b);
}

/* Adds neighbours of 32 bits: first those of a, then those of b. */
static inline vu vu_add_neighbours(vu a, vu b)
{
    const __m256i low = _mm512_cvtepi64_epi32(_mm512_add_epi32(a, _mm512_srli_epi64(a, 32)));
    const __m256i high = _mm512_cvtepi64_epi32(_mm512_add_epi32(b, _mm512_srli_epi64(b, 32)));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

static inline vf vf_from_signed(vu x) /* of signed words */
{
    return _mm512_cvtepi32_ps(x);
}

static inline vf vf_of_bits(vu x)
{
    return _mm512_castsi512_ps(x);
}

static inline vf vf_low_bf16(vu words) /* the low halves of pairs of bf16 */
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
}

static inline vf vf_high_bf16(vu words)
{
    return _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32((int)0xffff0000)));
}

static inline vf vf_shifted_bf16(
    vu words, vu shift) /* low halves where shift is 16, high ones where it is 0 */
{
    return vf_high_bf16(_mm512_sllv_epi32(words, shift));
}

static inline vu vu_add(vu a, vu b)
{
    return _mm512_add_epi32(a, b);
}

static inline vu vu_xor3(vu a, vu b, vu c)
{
    return _mm512_ternarylogic_epi32(a, b, c, 0x96);
}

/* Multiplies 32-bit lanes to 64-bit products, as their low and high words. */
static inline vu vu_multiply(vu a, vu b, vu *high_out)
{
    const vu even = _mm512_mul_epu32(a, b);
    const vu odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), b);
    *high_out = _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd);
    return _mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32));
}

/* Numbers the lanes such that, after vu_interleave, the four words of block k are at 4 k .. 4 k + 3. */
static inline vu vu_block_numbers(void)
{
    return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
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
    const __mmask16 kept = _mm512_cmpge_epu32_mask(word, threshold);
    _mm_storeu_si128((__m128i *)(void *)bytes_out, _mm_maskz_set1_epi8(kept, 1));
    return _mm512_maskz_mov_ps(kept, x);
}

static inline vf vf_keep_bytes(const uint8_t *bytes, vf x) /* lanes whose byte is not zero */
{
    const __m128i mask = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    return _mm512_maskz_mov_ps(_mm_test_epi8_mask(mask, mask), x);
}

#include "kernel/simd/simd_math.h"

#endif
