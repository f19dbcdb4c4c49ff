/* Numbers of a table's rows (tensor/row_format.h) as vectors of 16 floats.
 *
 * vf_load_halves, _bfloats, _bytes, _nibbles: VF_WIDTH numbers from p on. vf_load_first_...: the first n of
 * them, 0 < n < VF_WIDTH, at the end of a row's numbers; the other lanes are unspecified but finite, and
 * nothing beyond the row is read. */
#ifndef PH_KERNEL_ROWS_AVX512_H
#define PH_KERNEL_ROWS_AVX512_H

#include <string.h>

#include "kernel/simd/simd_avx512.h"

static inline __m256i load_words(const unsigned char *p, size_t n)
{
    return _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), p);
}

static inline vf vf_of_bfloats(__m256i words)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
}

static inline vf vf_of_nibbles(__m128i eight) /* of 8 bytes */
{
    const __m512i half = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const __m512i shift = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    const __m512i words = _mm512_permutexvar_epi32(half, _mm512_castsi128_si512(eight));
    return _mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srlv_epi32(words, shift), _mm512_set1_epi32(15)));
}

static inline vf vf_load_halves(const unsigned char *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

static inline vf vf_load_first_halves(const unsigned char *p, size_t n)
{
    return _mm512_cvtph_ps(load_words(p, n));
}

/* Rounds to nearest even; NaN stays NaN. */
static inline vw vw_halves(vf x)
{
    return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vf vf_load_bfloats(const unsigned char *p)
{
    return vf_of_bfloats(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

static inline vf vf_load_first_bfloats(const unsigned char *p, size_t n)
{
    return vf_of_bfloats(load_words(p, n));
}

static inline vf vf_load_bytes(const unsigned char *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}

static inline vf vf_load_first_bytes(const unsigned char *p, size_t n)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1), p)));
}

static inline vf vf_load_nibbles(const unsigned char *p)
{
    return vf_of_nibbles(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

static inline vf vf_load_first_nibbles(const unsigned char *p, size_t n)
{
    return vf_of_nibbles(_mm_maskz_loadu_epi8((__mmask16)((1u << ((n + 1) / 2)) - 1), p));
}

/* Load and store numbers in signed bytes; a store rounds to the nearest even integer of -127 .. 127. */
static inline vf vf_load_signed_bytes(const int8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}

static inline void vf_store_signed_bytes(int8_t *p, vf x)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x)));
}

/* ---- words of trainable rows: 16 bits in lanes of 32 ---- */

static inline vu vu_load_words(const uint16_t *p)
{
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

static inline vu vu_load_signed_words(const uint16_t *p)
{
    return _mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

/* Loads the first n words, 0 < n < VF_WIDTH; touches nothing beyond them. */
static inline vu vu_load_first_signed_words(const uint16_t *p, size_t n)
{
    return _mm512_cvtepi16_epi32(load_words((const unsigned char *)p, n));
}

/* Stores lanes, each below 2^16, as words. */
static inline void vu_store_words(uint16_t *p, vu x)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(x));
}

static inline void vu_store_first_words(uint16_t *p, size_t n, vu x)
{
    _mm256_mask_storeu_epi16(p, (__mmask16)((1u << n) - 1), _mm512_cvtepi32_epi16(x));
}

static inline vu vu_and(vu a, vu b)
{
    return _mm512_and_si512(a, b);
}

static inline vu vu_or(vu a, vu b)
{
    return _mm512_or_si512(a, b);
}

static inline vu vu_truncated(vf x) /* to signed words */
{
    return _mm512_cvttps_epi32(x);
}

static inline vu vu_sub(vu a, vu b)
{
    return _mm512_sub_epi32(a, b);
}

static inline vu vu_less(vu a, vu b) /* the smaller one of each lane */
{
    return _mm512_min_epu32(a, b);
}

static inline vu vu_more(vu a, vu b)
{
    return _mm512_max_epu32(a, b);
}

static inline vu vu_left(vu a, int count) /* shifted; count is a constant */
{
    return _mm512_slli_epi32(a, (unsigned)count);
}

static inline vu vu_right(vu a, int count)
{
    return _mm512_srli_epi32(a, (unsigned)count);
}

static inline vu vu_right_by(vu a, vu count) /* 0 for counts of 32 and more */
{
    return _mm512_srlv_epi32(a, count);
}

static inline vu vu_where_nan(vf x, vu yes, vu no)
{
    return _mm512_mask_mov_epi32(no, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), yes);
}

/* ---- ids of 64 bits ---- */

enum { VI_WIDTH = 8 };

/* Stores the lower halves of the first n <= VI_WIDTH ids, and VI_WIDTH - n zeros; returns the ids' bits
 * joined to those of `bits`, in lanes of 64. */
static inline vu vu_narrow_ids(const int64_t *ids, size_t n, uint32_t *slots, vu bits)
{
    const vu wide = _mm512_maskz_loadu_epi64((__mmask8)((1u << n) - 1), ids);
    _mm256_storeu_si256((__m256i *)(void *)slots, _mm512_cvtepi64_epi32(wide));
    return _mm512_or_si512(bits, wide);
}

/* ---- Philox in lanes of 64 bits, whose lower halves count ---- */

enum { VU_BLOCKS = 8 }; /* of four words each */

static inline vu vu_wide(uint64_t x) /* x in every lane */
{
    return _mm512_set1_epi64((long long)x);
}

static inline vu vu_wide_add(vu a, vu b)
{
    return _mm512_add_epi64(a, b);
}

static inline vu vu_wide_multiply(vu a, vu b) /* multiplies the lower halves */
{
    return _mm512_mul_epu32(a, b);
}

static inline vu vu_wide_high(vu a) /* moves the upper half to the lower one */
{
    return _mm512_srli_epi64(a, 32);
}

/* Returns the block of a lane, such that vu_store_blocks puts block k at words 4 k .. 4 k + 3. */
static inline size_t vu_wide_number(size_t lane)
{
    return lane % 2 * (VU_BLOCKS / 2) + lane / 2;
}

static inline vu vu_load_first(const uint32_t *p, size_t n) /* the first n <= VF_WIDTH, then zeros */
{
    return _mm512_maskz_loadu_epi32(vf_first(n), p);
}

/* Widens lanes: wide lane l is lane index_l of x, for the first VU_BLOCKS lanes of index. */
static inline vu vu_widen_lanes(vu x, vu index)
{
    return _mm512_cvtepu32_epi64(_mm512_castsi512_si256(_mm512_permutexvar_epi32(index, x)));
}

static inline void vu_store_blocks(void *p, const vu word[4])
{
    const vu low = _mm512_mask_blend_epi32(0xAAAA, word[0], _mm512_slli_epi64(word[1], 32));
    const vu high = _mm512_mask_blend_epi32(0xAAAA, word[2], _mm512_slli_epi64(word[3], 32));
    _mm512_storeu_si512(p, _mm512_unpacklo_epi64(low, high));
    _mm512_storeu_si512((char *)p + 64, _mm512_unpackhi_epi64(low, high));
}

#endif
