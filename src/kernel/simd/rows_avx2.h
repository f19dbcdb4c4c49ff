/* Numbers of a table's rows (tensor/row_format.h) as vectors of 8 floats. The same words as rows_avx512.h; each is explained
 * there. */
#ifndef PH_KERNEL_ROWS_AVX2_H
#define PH_KERNEL_ROWS_AVX2_H

#include <string.h>

#include "kernel/simd/simd_avx2.h"

/* The first n < 8 words, by pairs as loads can be masked, and the last of an odd number by itself. */
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
    const unsigned char *p, size_t n) /* others are the row's scale and offset */
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

static inline vf vf_load_first_nibbles(const unsigned char *p, size_t n) /* as bytes */
{
    (void)n;
    return vf_load_nibbles(p);
}

#endif
