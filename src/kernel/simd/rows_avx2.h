/* Numbers of a table's rows (tensor/row_format.h) as vectors of 8 floats. The same operations as in
 * rows_avx512.h, which explains each. */
#ifndef PH_KERNEL_ROWS_AVX2_H
#define PH_KERNEL_ROWS_AVX2_H

#include <string.h>

#include "kernel/simd/simd_avx2.h"

/* Loads the first n < 8 words: pairs by a masked load, and the last of an odd number by itself. */
static inline __m128i load_words(const unsigned char *p, size_t n)
{
    const __m128i lanes = _mm_setr_epi32(0, 1, 2, 3), pairs = _mm_set1_epi32((int)(n / 2));
    const __m128i is_last = n % 2 != 0 ? _mm_cmpeq_epi32(lanes, pairs) : _mm_setzero_si128();
    uint16_t last;
    memcpy(&last, p + 2 * (n - 1), sizeof last);
    return _mm_or_si128(_mm_maskload_epi32((const int *)(const void *)p, _mm_cmpgt_epi32(pairs, lanes)),
        _mm_and_si128(is_last, _mm_set1_epi32(last)));
}

static inline vf vf_of_bfloats(__m128i words)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16));
}

static inline vf vf_load_halves(const unsigned char *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

static inline vf vf_load_first_halves(const unsigned char *p, size_t n)
{
    return _mm256_cvtph_ps(load_words(p, n));
}

static inline vw vw_halves(vf x)
{
    return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vf vf_load_bfloats(const unsigned char *p)
{
    return vf_of_bfloats(_mm_loadu_si128((const __m128i *)(const void *)p));
}

static inline vf vf_load_first_bfloats(const unsigned char *p, size_t n)
{
    return vf_of_bfloats(load_words(p, n));
}

static inline vf vf_load_bytes(const unsigned char *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}

static inline vf vf_load_first_bytes(
    const unsigned char *p, size_t n) /* other bytes are the row's scale and offset */
{
    (void)n;
    return vf_load_bytes(p);
}

static inline vf vf_load_nibbles(const unsigned char *p)
{
    int word;
    memcpy(&word, p, sizeof word);
    const __m256i shifted =
        _mm256_srlv_epi32(_mm256_set1_epi32(word), _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    return _mm256_cvtepi32_ps(_mm256_and_si256(shifted, _mm256_set1_epi32(15)));
}

static inline vf vf_load_first_nibbles(const unsigned char *p, size_t n) /* other bytes as above */
{
    (void)n;
    return vf_load_nibbles(p);
}

static inline vf vf_load_signed_bytes(const int8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}

static inline void vf_store_signed_bytes(int8_t *p, vf x)
{
    const __m256i whole = _mm256_cvtps_epi32(x);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packs_epi16(words, words));
}

/* ---- words of trainable rows ---- */

static inline vu vu_load_words(const uint16_t *p)
{
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}

static inline vu vu_load_signed_words(const uint16_t *p)
{
    return _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}

static inline vu vu_load_first_signed_words(const uint16_t *p, size_t n)
{
    return _mm256_cvtepi16_epi32(load_words((const unsigned char *)p, n));
}

static inline void vu_store_words(uint16_t *p, vu x)
{
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    _mm_storeu_si128((__m128i *)(void *)p, words);
}

static inline void vu_store_first_words(uint16_t *p, size_t n, vu x)
{
    uint16_t words[VF_WIDTH];
    vu_store_words(words, x);
    for (size_t i = 0; i < n; i++)
        p[i] = words[i];
}

static inline vu vu_and(vu a, vu b)
{
    return _mm256_and_si256(a, b);
}

static inline vu vu_or(vu a, vu b)
{
    return _mm256_or_si256(a, b);
}

static inline vu vu_truncated(vf x) /* to signed words */
{
    return _mm256_cvttps_epi32(x);
}

static inline vu vu_sub(vu a, vu b)
{
    return _mm256_sub_epi32(a, b);
}

static inline vu vu_less(vu a, vu b)
{
    return _mm256_min_epu32(a, b);
}

static inline vu vu_more(vu a, vu b)
{
    return _mm256_max_epu32(a, b);
}

static inline vu vu_left(vu a, int count)
{
    return _mm256_slli_epi32(a, count);
}

static inline vu vu_right(vu a, int count)
{
    return _mm256_srli_epi32(a, count);
}

static inline vu vu_right_by(vu a, vu count)
{
    return _mm256_srlv_epi32(a, count);
}

static inline vu vu_where_nan(vf x, vu yes, vu no)
{
    const __m256 is_nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    return _mm256_blendv_epi8(no, yes, _mm256_castps_si256(is_nan));
}

/* ---- ids of 64 bits ---- */

enum { VI_WIDTH = 8 };

/* Stores the lower halves of the first n <= VI_WIDTH ids, and VI_WIDTH - n zeros; returns the ids' bits
 * joined to those of `bits`, in lanes of 64. */
static inline vu vu_narrow_ids(const int64_t *ids, size_t n, uint32_t *slots, vu bits)
{
    const __m256i count = _mm256_set1_epi64x((long long)n);
    const __m256i is_low = _mm256_cmpgt_epi64(count, _mm256_setr_epi64x(0, 1, 2, 3));
    const __m256i is_high = _mm256_cmpgt_epi64(count, _mm256_setr_epi64x(4, 5, 6, 7));
    const vu low = _mm256_maskload_epi64((const long long *)ids, is_low);
    const vu high = _mm256_maskload_epi64((const long long *)(ids + 4), is_high);
    const __m256 both = _mm256_shuffle_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), 0x88);
    _mm256_storeu_si256((__m256i *)(void *)slots, _mm256_permute4x64_epi64(_mm256_castps_si256(both), 0xD8));
    return _mm256_or_si256(bits, _mm256_or_si256(low, high));
}

/* ---- Philox in lanes of 64 bits ---- */

enum { VU_BLOCKS = 4 };

static inline vu vu_wide(uint64_t x)
{
    return _mm256_set1_epi64x((long long)x);
}

static inline vu vu_wide_add(vu a, vu b)
{
    return _mm256_add_epi64(a, b);
}

static inline vu vu_wide_multiply(vu a, vu b)
{
    return _mm256_mul_epu32(a, b);
}

static inline vu vu_wide_high(vu a)
{
    return _mm256_srli_epi64(a, 32);
}

static inline size_t vu_wide_number(size_t lane)
{
    return lane % 2 * (VU_BLOCKS / 2) + lane / 2;
}

static inline vu vu_load_first(const uint32_t *p, size_t n)
{
    return _mm256_maskload_epi32((const int *)(const void *)p, vf_first(n));
}

static inline vu vu_widen_lanes(vu x, vu index)
{
    return _mm256_cvtepu32_epi64(_mm256_castsi256_si128(_mm256_permutevar8x32_epi32(x, index)));
}

static inline void vu_store_blocks(void *p, const vu word[4])
{
    const vu low = _mm256_blend_epi32(word[0], _mm256_slli_epi64(word[1], 32), 0xAA);
    const vu high = _mm256_blend_epi32(word[2], _mm256_slli_epi64(word[3], 32), 0xAA);
    _mm256_storeu_si256(p, _mm256_unpacklo_epi64(low, high));
    _mm256_storeu_si256((__m256i *)p + 1, _mm256_unpackhi_epi64(low, high));
}

#endif
