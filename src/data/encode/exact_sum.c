#include "data/encode/exact_sum.h"

#include <math.h>
#include <stddef.h>

#define LEAST_EXPONENT (-352) /* of the unit of digit 0: a multiple of 32, not above 2 * (-148 - 24) */
#define DIGIT_BITS 32
#define MAX_ADDITIONS (UINT32_C(1) << 28)
#define MAX_DIGIT (INT64_C(1) << 62) /* so many additions of less than 2^33 stay below it */
#define MAX_LAST_DIGIT (INT64_C(1) << 32)

/* Brings every digit but the last into [0, 2^32). */
static void carry(struct ph__exact_sum *sum)
{
    for (size_t i = 0; i + 1 < PH_EXACT_SUM_DIGITS; i++) {
        int64_t low = sum->digits[i] & (int64_t)UINT32_MAX;
        sum->digits[i + 1] += (sum->digits[i] - low) / ((int64_t)1 << DIGIT_BITS);
        sum->digits[i] = low;
    }
    sum->num_additions = 0;
}

/* Adds sign * mantissa * 2^exponent, mantissa below 2^48. */
static void add(struct ph__exact_sum *sum, uint64_t mantissa, int exponent, int sign)
{
    unsigned shift = (unsigned)(exponent - LEAST_EXPONENT);
    size_t digit = shift / DIGIT_BITS;
    unsigned bits = shift % DIGIT_BITS;
    uint64_t low = (mantissa & UINT32_MAX) << bits, high = (mantissa >> DIGIT_BITS) << bits;
    sum->digits[digit] += sign * (int64_t)(low & UINT32_MAX);
    sum->digits[digit + 1] += sign * (int64_t)((low >> DIGIT_BITS) + (high & UINT32_MAX));
    sum->digits[digit + 2] += sign * (int64_t)(high >> DIGIT_BITS);
    if (++sum->num_additions == MAX_ADDITIONS)
        carry(sum);
}

/* A finite float as mantissa (24 bits) and the exponent of its last bit. */
static uint64_t split(float number, int *exponent_out)
{
    int exponent;
    float fraction = frexpf(fabsf(number), &exponent);
    *exponent_out = exponent - 24;
    return (uint64_t)ldexpf(fraction, 24);
}

void ph__exact_sum_add(struct ph__exact_sum *sum, float number)
{
    int exponent;
    uint64_t mantissa = split(number, &exponent);
    if (mantissa != 0)
        add(sum, mantissa, exponent, number < 0 ? -1 : 1);
}

void ph__exact_sum_add_square(struct ph__exact_sum *sum, float number)
{
    int exponent;
    uint64_t mantissa = split(number, &exponent);
    if (mantissa != 0)
        add(sum, mantissa * mantissa, 2 * exponent, 1);
}

void ph__exact_sum_merge(struct ph__exact_sum *sum, const struct ph__exact_sum *other)
{
    struct ph__exact_sum carried = *other;
    carry(&carried);
    carry(sum);
    for (size_t i = 0; i < PH_EXACT_SUM_DIGITS; i++)
        sum->digits[i] += carried.digits[i];
    sum->num_additions = 2;
}

bool ph__exact_sum_is_sound(const struct ph__exact_sum *sum)
{
    const size_t last = PH_EXACT_SUM_DIGITS - 1;
    for (size_t i = 0; i < last; i++)
        if (sum->digits[i] < -MAX_DIGIT || sum->digits[i] > MAX_DIGIT)
            return false;
    return sum->digits[last] >= -MAX_LAST_DIGIT && sum->digits[last] <= MAX_LAST_DIGIT &&
           sum->num_additions < MAX_ADDITIONS;
}

long double ph__exact_sum_value(const struct ph__exact_sum *sum)
{
    struct ph__exact_sum carried = *sum;
    carry(&carried);
    long double value = 0;
    for (size_t i = PH_EXACT_SUM_DIGITS; i-- > 0;)
        value += ldexpl((long double)carried.digits[i], (int)i * DIGIT_BITS + LEAST_EXPONENT);
    return value;
}
