/* The oracle of matrix products: element (i,j), by strides, in double. */
#ifndef PH_TEST_STRIDED_SUM_H
#define PH_TEST_STRIDED_SUM_H

#include <math.h>
#include <stddef.h>

#include "phloem/tensor.h"

struct strided {
    const ph_real *base;
    size_t outer, inner; /* strides: of the kept index, of the summed one */
};

/* size: the sum of the terms' magnitudes, by which rounding grows */
static inline double sum_of_products(
    struct strided a, size_t i, struct strided b, size_t j, size_t n, double *size_out)
{
    double sum = 0, size = 0;
    for (size_t l = 0; l < n; l++) {
        const double term =
            (double)a.base[i * a.outer + l * a.inner] * (double)b.base[j * b.outer + l * b.inner];
        sum += term;
        size += fabs(term);
    }
    *size_out = size;
    return sum;
}

#endif
