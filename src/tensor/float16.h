/* The two 16-bit floats: half (IEEE 754 binary16, as arrays and rows store it) and bfloat16 (the upper half
 * of a float). */
#ifndef PH_TENSOR_FLOAT16_H
#define PH_TENSOR_FLOAT16_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t ph__float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Returns the value of a half's 16 bits, which any float holds exactly. */
static inline float ph__float_from_half(uint16_t half)
{
    int exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
    float magnitude;
    if (exponent == 0x1f)
        magnitude = fraction != 0 ? NAN : INFINITY;
    else if (exponent == 0)
        magnitude = ldexpf((float)fraction, -24);
    else
        magnitude = ldexpf((float)(fraction | 0x400), exponent - 25);
    return half >> 15 != 0 ? -magnitude : magnitude;
}

/* Divides value by 2^shift, to the nearest integer, to the even one of two; shift in [1, 31], and no carry
 * out of 32 bits. */
static inline uint32_t ph__shift_to_even(uint32_t value, uint32_t shift)
{
    return (value + ((1u << (shift - 1)) - 1) + (value >> shift & 1)) >> shift;
}

/* Returns the nearest half, the even one of two; from 65520 on infinity. NaN stays NaN. Ignores the caller's
 * rounding mode. */
static inline uint16_t ph__half_from_float(float x)
{
    const uint32_t bits = ph__float_bits(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    const uint32_t exponent = magnitude >> 23;
    uint32_t half;
    if (magnitude > 0x7f800000)
        half = 0x7e00;
    else if (exponent > 127 + 15)
        half = 0x7c00;
    else if (exponent >= 127 - 14)
        half = ph__shift_to_even(magnitude - ((127u - 15) << 23), 13);
    else if (exponent >= 127 - 25) /* a multiple of 2^-24 */
        half = ph__shift_to_even((magnitude & 0x7fffff) | 0x800000, 126 - exponent);
    else
        half = 0;
    return (uint16_t)(sign | half);
}

static inline float ph__float_from_bfloat(uint16_t bfloat)
{
    const uint32_t bits = (uint32_t)bfloat << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns the nearest bfloat16, the even one of two; beyond the largest infinity. NaN stays NaN. */
static inline uint16_t ph__bfloat_from_float(float x)
{
    const uint32_t bits = ph__float_bits(x);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)ph__shift_to_even(bits, 16);
}

/* ---- rounded at random ---- */

/* Returns one of the two neighbours of x: the one further from zero with a probability equal to the part of
 * their distance that would be cut off, so that for random uniform in [0, 2^16) the mean is x. Beyond the
 * largest comes infinity. NaN stays NaN. Integers only, so that a vector of them has the same bits. */
static inline uint16_t ph__bfloat_by_chance(float x, uint32_t random)
{
    const uint32_t bits = ph__float_bits(x);
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : (bits + random) >> 16);
}

/* Rounds to a half in the same way; the part more than 2^-16 below a multiple of the least half, 2^-24, is
 * cut off. */
static inline uint16_t ph__half_by_chance(float x, uint32_t random)
{
    const uint32_t bits = ph__float_bits(x), sign = bits >> 16 & 0x8000, exponent = bits >> 23 & 0xff;
    const uint32_t base = exponent > 113 ? exponent : 113; /* exponent of the least normal half */
    const uint32_t significand = ((bits & 0x7fffff) | 0x800000) << 3;
    const uint32_t units = (base - exponent < 32 ? significand >> (base - exponent) : 0) + random;
    const uint32_t half = ((base - 113) << 10) + (units >> 16);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    return (uint16_t)(sign | (half < 0x7c00 ? half : 0x7c00));
}

/* ---- in two halves ---- */

/* Splits the bits of x into (high << 16) + low, low with its sign: so high is a rounded bfloat16, the one
 * further from zero of two equally near, and both together are exact. A NaN stays NaN, but loses its other
 * bits. */
static inline uint16_t ph__split_float(float x, uint16_t *low_out)
{
    uint32_t bits = ph__float_bits(x);
    if ((bits & 0x7fffffff) > 0x7f800000)
        bits = 0x7fc00000;
    *low_out = (uint16_t)bits;
    return (uint16_t)((bits + 0x8000) >> 16);
}

static inline float ph__join_float(uint16_t high, uint16_t low)
{
    const uint32_t bits = ((uint32_t)high << 16) + (uint32_t)(int16_t)low;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
