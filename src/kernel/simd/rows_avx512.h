/* Numbers of a table's rows (tensor/row_format.h) as vectors of 16 floats.
 *
 * vf_load_halves, _bfloats, _bytes, _nibbles: VF_WIDTH numbers from p on. vf_load_first_...: the first n of them,
 * 0 < n < VF_WIDTH, at the end of a row's numbers; what the other lanes are is not said, but they are finite, and nothing
 * beyond the row is read. */
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

#endif
