/* What numbers become on their way between ranks, by the formats' definitions in double arithmetic. */
#ifndef PH_WIRE_ORACLE_H
#define PH_WIRE_ORACLE_H

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "comm/wire/wire_format.h"

/* The nearest number of `precision` bits whose exponent is at least `least`; infinity where it would be above
 * `most`. */
static inline float wire_oracle_round(float x, int precision, int least, int most)
{
    if (x == 0 || !isfinite(x))
        return x;
    const int exponent = ilogb((double)x) > least ? ilogb((double)x) : least;
    const double unit = ldexp(1, exponent - precision + 1);
    const double nearest = rint((double)x / unit) * unit;
    return fabs(nearest) >= ldexp(1, most + 1) ? copysignf(INFINITY, x) : (float)nearest;
}

static inline void wire_oracle_levels(size_t n, const float *x, float *out)
{
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = isfinite(x[i]) && !isnan(largest) ? fmax(largest, fabs((double)x[i])) : NAN;
    const float scale = (float)(largest / 127);
    for (size_t i = 0; i < n; i++) {
        if (scale >= 0x1p-126F)
            out[i] = (float)((int)rint((double)(float)((double)x[i] / (double)scale)) * (double)scale);
        else
            out[i] = isnan(scale) ? NAN : 0;
    }
}

/* (rows, columns), there and back. */
static inline void wire_oracle(
    enum ph_wire_format wire, size_t rows, size_t columns, const float *x, float *out)
{
    for (size_t i = 0; i < rows * columns; i++) {
        out[i] = x[i];
        if (wire == PH_WIRE_FP16)
            out[i] = wire_oracle_round(x[i], 11, -14, 15);
        else if (wire == PH_WIRE_BF16)
            out[i] = wire_oracle_round(x[i], 8, -126, 127);
    }
    for (size_t row = 0; wire == PH_WIRE_INT8 && row < rows; row++)
        wire_oracle_levels(columns, x + row * columns, out + row * columns);
}

/* A rank's numbers: of such different sizes that the order of a sum shows. */
static inline void wire_oracle_numbers(size_t rank, uint64_t salt, size_t n, float *out)
{
    struct ph__rng_sequence random = {.key = {.seed = 7, .step = salt, .stream = rank}};
    for (size_t i = 0; i < n; i++) {
        const double size = ldexp(1, (int)ph__rng_below(&random, 9) - 4);
        out[i] = (float)(size * (ph__rng_next_uniform(&random) - .5));
    }
}

/* NaN is NaN; all other numbers have the same bits. */
static inline bool wire_oracle_is_same(size_t n, const float *a, const float *b)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

#endif
