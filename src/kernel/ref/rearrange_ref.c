/* Transposition and interchange of dimensions, the specification. */
#include <string.h>

#include "kernel/kernel_list.h"

/* y_ji = x_ij */
void ph__transpose_ref(size_t count, size_t rows, size_t columns, const ph_real *x, ph_real *y)
{
    for (size_t m = 0; m < count; m++, x += rows * columns, y += rows * columns)
        for (size_t j = 0; j < columns; j++)
            for (size_t i = 0; i < rows; i++)
                y[j * rows + i] = x[i * columns + j];
}

/* y_ji: = x_ij: */
void ph__interchange_ref(size_t a, size_t b, size_t n, const ph_real *x, ph_real *y)
{
    for (size_t j = 0; j < b; j++)
        for (size_t i = 0; i < a; i++)
            memcpy(y + (j * a + i) * n, x + (i * b + j) * n, n * sizeof *y);
}
