/* Scale of numbers sent in one byte each (comm/wire/wire_format.h), the same in every variant of
 * int8_narrow. */
#ifndef PH_KERNEL_INT8_SCALE_H
#define PH_KERNEL_INT8_SCALE_H

#include <float.h>
#include <math.h>

#include "phloem/tensor.h"

#define PH_INT8_MOST 127 /* levels to each side of zero */

/* Returns the value of one level where the largest magnitude is `largest`, which may be NaN or infinite. A
 * scale is never subnormal: quotients by it would leave the levels, or be infinite where subnormal numbers
 * are taken for zero. */
static inline float ph__int8_scale(ph_real largest)
{
    const float scale = (float)(largest / PH_INT8_MOST);
    if (!isfinite(scale))
        return NAN;
    return scale >= FLT_MIN ? scale : 0;
}

#endif
