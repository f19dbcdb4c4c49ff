/* Numbers in one byte each, and back, the specification. */
#include <string.h>

#include "kernel/int8_scale.h"
#include "kernel/kernel_list.h"

/* Returns the largest magnitude, or NaN where a number is not finite. */
static ph_real largest_of(size_t n, const ph_real *x)
{
    ph_real largest = 0;
    for (size_t i = 0; i < n; i++) {
        const ph_real magnitude = (ph_real)fabs((double)x[i]);
        if (!isfinite(magnitude))
            return NAN;
        if (magnitude > largest)
            largest = magnitude;
    }
    return largest;
}

float ph__int8_narrow_ref(size_t n, const ph_real *x, int8_t *y)
{
    const float scale = ph__int8_scale(largest_of(n, x));
    if (!(scale > 0)) {
        memset(y, 0, n);
        return scale;
    }
    for (size_t i = 0; i < n; i++)
        y[i] = (int8_t)lrint((double)(x[i] / scale));
    return scale;
}

void ph__int8_widen_ref(size_t n, const int8_t *x, float scale, ph_real *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (ph_real)((float)x[i] * scale);
}
