/* Numbers of eight bits, emulated: to probe what products of them would lose, not to be fast.
 *
 *           sign exponent mantissa  bias  largest  smallest normal, subnormal
 *   E4M3       1        4        3     7      448   2^-6, 2^-9; no infinity, one NaN of each sign
 *   E5M2       1        5        2    15    57344   2^-14, 2^-16
 *
 * Conversion rounds to the nearest, ties to even, and saturates: what is larger, infinity too, becomes the
 * largest. Source: OCP 8-bit floating point (OFP8), revision 1.0. */
#ifndef PH_TENSOR_FLOAT8_H
#define PH_TENSOR_FLOAT8_H

#include <math.h>
#include <stdint.h>

struct ph__float8_format {
    int mantissa_bits, bias;
    float largest;
    uint8_t nan;
};

static const struct ph__float8_format ph__e4m3 = {3, 7, 448, 0x7f}, ph__e5m2 = {2, 15, 57344, 0x7f};

static inline uint8_t ph__float8_from_float(const struct ph__float8_format *format, float x)
{
    const uint8_t sign = signbit(x) ? 0x80 : 0;
    const int least = 1 - format->bias;
    if (isnan(x))
        return sign | format->nan;
    const double magnitude = fmin(fabs((double)x), (double)format->largest);
    int exponent = least;
    if (magnitude > 0)
        exponent = ilogb(magnitude) > least ? ilogb(magnitude) : least;
    /* In units of the last place: 2^mantissa_bits at least, unless subnormal. A carry moves the exponent. */
    const int units = (int)nearbyint(ldexp(magnitude, format->mantissa_bits - exponent));
    return (uint8_t)(sign | (units + ((exponent - least) << format->mantissa_bits)));
}

static inline float ph__float_from_float8(const struct ph__float8_format *format, uint8_t code)
{
    const int mantissa = code & ((1 << format->mantissa_bits) - 1);
    const int biased = (code & 0x7f) >> format->mantissa_bits;
    const int units = biased > 0 ? mantissa + (1 << format->mantissa_bits) : mantissa;
    const int exponent = (biased > 0 ? biased : 1) - format->bias - format->mantissa_bits;
    float magnitude = (float)ldexp((double)units, exponent);
    if (magnitude > format->largest) /* codes beyond the largest are NaN, but for E5M2's infinity */
        magnitude = format == &ph__e5m2 && mantissa == 0 ? INFINITY : NAN;
    return (code & 0x80) != 0 ? -magnitude : magnitude;
}

/* Returns the number of the format that is nearest. */
static inline float ph__float8_round(const struct ph__float8_format *format, float x)
{
    return ph__float_from_float8(format, ph__float8_from_float(format, x));
}

#endif
