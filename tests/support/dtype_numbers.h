/* Numbers of an array of any dtype, one by one. Needs only the C library and src/tensor, so that programs
 * without cmocka can use it, too. */
#ifndef PH_TEST_DTYPE_NUMBERS_H
#define PH_TEST_DTYPE_NUMBERS_H

#include "phloem/tensor.h"
#include "tensor/float16.h"

static inline float dtype_number(const void *array, enum ph_dtype dtype, size_t i)
{
    const uint16_t *words = array;
    if (dtype == PH_F32)
        return ((const float *)array)[i];
    return dtype == PH_F16 ? ph__float_from_half(words[i]) : ph__float_from_bfloat(words[i]);
}

static inline void dtype_number_set(void *array, enum ph_dtype dtype, size_t i, float number)
{
    uint16_t *words = array;
    if (dtype == PH_F32)
        ((float *)array)[i] = number;
    else
        words[i] = dtype == PH_F16 ? ph__half_from_float(number) : ph__bfloat_from_float(number);
}

#endif
