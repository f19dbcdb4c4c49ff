/* Sigmoid, the specification; exp is libm's, in double, so that the result is rounded once. */
#include "kernel/kernel_list.h"

#include <math.h>

/* y = 1 / (1 + exp(-x)); exp never overflows because its argument is never positive */
void ph__sigmoid_ref(size_t n, const ph_real *x, ph_real *y)
{
    for (size_t i = 0; i < n; i++) {
        const double e = exp(-fabs((double)x[i]));
        y[i] = (ph_real)((x[i] < 0 ? e : 1) / (1 + e));
    }
}

/* dx = dy y (1 - y) */
void ph__sigmoid_backward_ref(size_t n, const ph_real *y, const ph_real *dy, ph_real *dx)
{
    for (size_t i = 0; i < n; i++)
        dx[i] = dy[i] * (y[i] * (1 - y[i]));
}
