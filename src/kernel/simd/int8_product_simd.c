/* Products of numbers of a byte each: a block of rows x vectors of exact sums stays in registers while the
 * terms pass, four at a time.
 *
 * Processors with AVX-512's VNNI sum four products of an unsigned and a signed byte in one instruction: x is
 * shifted by 128, which the weights' offsets take back. Others widen both to 16 bits, since their instruction
 * for bytes saturates; that is about as fast as products of floats. */
#include <math.h>
#include <string.h>

#include "kernel/simd/simd.h"

enum { MOST_ROWS = 14, MOST_VECTORS = 4 };

/* Scales a vector of sums, and stores it as far as the outputs exist. */
PH_INLINE void store_outputs(const struct ph__int8_product_args *args, const struct ph__int8_weight *weight,
    size_t row, size_t column, vu sums)
{
    const size_t left = args->out_features > column ? args->out_features - column : 0;
    const vmask mask = vf_first(left < VF_WIDTH ? left : VF_WIDTH);
    const vf bias = args->bias != NULL && left > 0 ? vf_load_mask(args->bias + column, mask) : vf_zero();
    const vf scale = vf_mul(vf_set1(args->x_scales[row]), vf_load(weight->scales + column));
    const vf least = vf_set1(args->is_rectified ? 0 : -INFINITY);
    if (left > 0)
        vf_store_mask(args->y + row * args->out_features + column, mask,
            vf_max(least, vf_fma(scale, vf_from_signed(sums), bias)));
}

#define UP_TO_SIX(X, vectors) \
    X(1, vectors) X(2, vectors) X(3, vectors) X(4, vectors) X(5, vectors) X(6, vectors)

#ifdef PH_SIMD_AVX512

/* ---- four terms an instruction ---- */

#define DOT __attribute__((target("avx512vnni")))

typedef vu dot_sums, dot_levels, dot_terms;

PH_INLINE dot_sums dot_zero(void)
{
    return vu_set1(0);
}

PH_INLINE dot_levels dot_load(const int8_t *levels)
{
    return _mm512_loadu_si512(levels);
}

/* Repeats four terms, each shifted by 128. */
PH_INLINE dot_terms dot_spread(const int8_t *x)
{
    int32_t four;
    memcpy(&four, x, sizeof four);
    return _mm512_xor_si512(_mm512_set1_epi32(four), _mm512_set1_epi8(-128));
}

DOT PH_INLINE dot_sums dot_add(dot_sums sums, dot_terms x, dot_levels levels)
{
    return _mm512_dpbusd_epi32(sums, x, levels);
}

PH_INLINE vu dot_finish(dot_sums sums, const int32_t *offsets)
{
    return _mm512_sub_epi32(sums, _mm512_loadu_si512(offsets));
}

#define PH_WAY(name) dot_##name
#define PH_WAY_TARGET DOT
#define PH_WAY_ROWS 14
#define PH_WAY_BLOCKS(X) \
    UP_TO_SIX(X, 2) UP_TO_SIX(X, 4) X(7, 2) X(8, 2) X(9, 2) X(10, 2) X(11, 2) X(12, 2) X(13, 2) X(14, 2)
#define PH_WAY_VECTORS(rows) ((rows) <= 6 ? 4 : 2)
#include "kernel/simd/int8_product_way.h"

#endif

/* ---- widened ---- */

/* Halves hold the sums of two terms each of half of the outputs. */
typedef struct {
    vu low, high;
} wide_sums, wide_levels;
typedef vu wide_terms;

PH_INLINE wide_sums wide_zero(void)
{
    return (wide_sums){vu_set1(0), vu_set1(0)};
}

PH_INLINE wide_levels wide_load(const int8_t *levels)
{
    return (wide_levels){vu_widen_bytes(levels), vu_widen_bytes(levels + 2 * VF_WIDTH)};
}

PH_INLINE wide_terms wide_spread(const int8_t *x)
{
    int32_t four;
    memcpy(&four, x, sizeof four);
    return vu_widen_four_bytes(four);
}

PH_INLINE wide_sums wide_add(wide_sums sums, wide_terms x, wide_levels levels)
{
    return (wide_sums){
        vu_add(sums.low, vu_add_products(levels.low, x)), vu_add(sums.high, vu_add_products(levels.high, x))};
}

PH_INLINE vu wide_finish(wide_sums sums, const int32_t *offsets)
{
    (void)offsets; /* of terms that are shifted */
    return vu_add_neighbours(sums.low, sums.high);
}

#define PH_WAY(name) wide_##name
#define PH_WAY_TARGET
#if VF_REGISTERS == 32
#define PH_WAY_ROWS 6
#define PH_WAY_BLOCKS(X) UP_TO_SIX(X, 2)
#define PH_WAY_VECTORS(rows) 2
#else
#define PH_WAY_ROWS 5
#define PH_WAY_BLOCKS(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1)
#define PH_WAY_VECTORS(rows) 1
#endif
#include "kernel/simd/int8_product_way.h"

void PH_SIMD(int8_product)(const struct ph__int8_product_args *args)
{
#ifdef PH_SIMD_AVX512
    if (args->has_dot) {
        dot_run(args);
        return;
    }
#endif
    wide_run(args);
}
