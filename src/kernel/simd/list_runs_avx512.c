/* Lists runs sixteen slots at a time: their starts are a running sum of lengths, in four steps, and the slots
 * with a length are moved together. One slot at a time takes five times as long. */
#include <immintrin.h>

#include "kernel/kernel_list.h"

enum { LANES = 16 };

/* Adds all lower lanes to each lane. */
static inline __m512i running_sum(__m512i x)
{
    const __m512i zero = _mm512_setzero_si512();
    x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, LANES - 1));
    x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, LANES - 2));
    x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, LANES - 4));
    return _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, LANES - 8));
}

static inline __mmask16 first_lanes(unsigned count)
{
    return (__mmask16)((1U << count) - 1);
}

size_t ph__list_runs_avx512(
    uint32_t range, size_t count, uint32_t base, uint32_t *lengths, uint32_t *unique, uint32_t *starts)
{
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i before = _mm512_setzero_si512();
    size_t runs = 0;
    (void)count;
    for (uint32_t slot = 0; slot < range; slot += LANES) {
        const __mmask16 is_there = first_lanes(range - slot < LANES ? range - slot : LANES);
        const __m512i length = _mm512_maskz_loadu_epi32(is_there, lengths + slot);
        const __mmask16 is_run = _mm512_test_epi32_mask(length, length);
        const unsigned num_runs = (unsigned)__builtin_popcount(is_run);
        const __m512i sum = running_sum(length);
        const __m512i start = _mm512_add_epi32(before, _mm512_sub_epi32(sum, length));
        const __m512i value = _mm512_add_epi32(lanes, _mm512_set1_epi32((int)(base + slot)));
        _mm512_mask_storeu_epi32(lengths + slot, is_there, start);
        _mm512_mask_storeu_epi32(
            unique + runs, first_lanes(num_runs), _mm512_maskz_compress_epi32(is_run, value));
        _mm512_mask_storeu_epi32(
            starts + runs, first_lanes(num_runs), _mm512_maskz_compress_epi32(is_run, start));
        before = _mm512_add_epi32(before, _mm512_permutexvar_epi32(_mm512_set1_epi32(LANES - 1), sum));
        runs += num_runs;
    }
    return runs;
}
