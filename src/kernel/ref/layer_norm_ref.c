/* Layer norm (Ba, Kiros and Hinton 2016), the specification. A row's sums are double. */
#include "kernel/kernel_list.h"

#include <math.h>

/* y = (x - mean) inv_std gamma + beta */
void ph__layer_norm_ref(size_t rows, size_t n, const ph_real *x, const ph_real *gamma, const ph_real *beta,
    double epsilon, ph_real *y, ph_real *statistics)
{
    for (size_t r = 0; r < rows; r++) {
        const ph_real *row = x + r * n;
        double sum = 0, squares = 0;
        for (size_t j = 0; j < n; j++)
            sum += (double)row[j];
        const double mean = sum / (double)n;
        for (size_t j = 0; j < n; j++)
            squares += ((double)row[j] - mean) * ((double)row[j] - mean);
        const double inv_std = 1 / sqrt(squares / (double)n + epsilon);
        for (size_t j = 0; j < n; j++)
            y[r * n + j] = (ph_real)(((double)row[j] - mean) * inv_std * (double)gamma[j] + (double)beta[j]);
        if (statistics != NULL) {
            statistics[2 * r] = (ph_real)mean;
            statistics[2 * r + 1] = (ph_real)inv_std;
        }
    }
}

/* g = dy gamma,  dx = inv_std (g - mean of g - xhat mean of g xhat),  xhat = (x - mean) inv_std */
void ph__layer_norm_backward_ref(size_t rows, size_t n, const ph_real *x, const ph_real *dy,
    const ph_real *statistics, const ph_real *gamma, ph_real *dx, ph_real *d_gamma, ph_real *d_beta)
{
    for (size_t r = 0; r < rows; r++) {
        const ph_real *value = x + r * n, *gradient = dy + r * n;
        const ph_real mean = statistics[2 * r], inv_std = statistics[2 * r + 1];
        double sum = 0, weighted = 0;
        for (size_t j = 0; j < n; j++) {
            const ph_real xhat = (value[j] - mean) * inv_std;
            sum += (double)(gradient[j] * gamma[j]);
            weighted += (double)(gradient[j] * gamma[j] * xhat);
            d_gamma[j] += gradient[j] * xhat;
            d_beta[j] += gradient[j];
        }
        const ph_real shift = (ph_real)(sum / (double)n), slope = (ph_real)(weighted / (double)n);
        for (size_t j = 0; j < n; j++) {
            const ph_real xhat = (value[j] - mean) * inv_std;
            dx[r * n + j] = inv_std * (gradient[j] * gamma[j] - shift - xhat * slope);
        }
    }
}
