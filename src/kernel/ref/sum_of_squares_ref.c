/* Sum of squares in double, the specification. */
#include "kernel/kernel_list.h"

/* sum_i (x_i + l2 w_i)^2; the products of two floats are exact in double */
double ph__sum_of_squares_ref(size_t n, const ph_real *x, const ph_real *w, ph_real l2)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double gradient = x != NULL ? (double)x[i] : 0;
        const double value = w != NULL ? gradient + (double)l2 * (double)w[i] : gradient;
        sum += value * value;
    }
    return sum;
}
