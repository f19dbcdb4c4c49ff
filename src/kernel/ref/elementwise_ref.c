/* Elementwise arithmetic, the specification. Input and output may be the same array. */
#include "kernel/kernel_list.h"

void ph__relu_ref(size_t n, const ph_real *x, ph_real *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] < 0 ? 0 : x[i]; /* written so that NaN stays NaN */
}

void ph__relu_backward_ref(size_t n, const ph_real *y, const ph_real *dy, ph_real *dx)
{
    for (size_t i = 0; i < n; i++)
        dx[i] = y[i] > 0 ? dy[i] : 0;
}

void ph__add_ref(size_t n, const ph_real *a, const ph_real *b, ph_real *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

void ph__multiply_ref(size_t n, const ph_real *a, const ph_real *b, ph_real *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] * b[i];
}

void ph__multiply_add_ref(size_t n, const ph_real *a, const ph_real *b, const ph_real *c, ph_real *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] * b[i] + c[i];
}

void ph__scale_ref(size_t n, ph_real factor, const ph_real *x, ph_real *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = factor * x[i];
}

/* y_j += sum_r x_rj, row after row */
void ph__add_rows_ref(size_t rows, size_t n, const ph_real *x, ph_real *y)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < n; j++)
            y[j] += x[r * n + j];
}
