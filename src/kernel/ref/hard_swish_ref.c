/* Hard swish (Howard et al. 2019), the specification: y = x gate(x), gate(x) = clamp(x + 3, 0, 6) / 6. */
#include "kernel/kernel_list.h"

#include <math.h>

static ph_real gate_of(ph_real x)
{
    const ph_real shifted = x + 3, positive = shifted < 0 ? 0 : shifted; /* NaN stays NaN */
    return (positive > 6 ? 6 : positive) * ((ph_real)1 / 6);
}

void ph__hard_swish_ref(size_t n, const ph_real *x, ph_real *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * gate_of(x[i]);
}

/* dx = dy (gate(x) + x / 6), the second term only where |x| < 3 */
void ph__hard_swish_backward_ref(size_t n, const ph_real *x, const ph_real *dy, ph_real *dx)
{
    for (size_t i = 0; i < n; i++) {
        const ph_real slope = fabs((double)x[i]) < 3 ? x[i] * ((ph_real)1 / 6) : 0;
        dx[i] = dy[i] * (gate_of(x[i]) + slope);
    }
}
