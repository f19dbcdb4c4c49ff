/* Half precision as arrays store it. */
#ifndef PH_DATA_FLOAT16_H
#define PH_DATA_FLOAT16_H

#include <math.h>
#include <stdint.h>

/* The value of the 16 bits of an IEEE 754 binary16, which any float holds exactly. */
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

#endif
