/* Batch norm over (rows, n) (Ioffe and Szegedy 2015), the specification. Statistics are double. */
#include "kernel/kernel_list.h"

/* sum_j += sum_r (x_rj - shift_j),  squares_j += sum_r (x_rj - shift_j)^2 */
void ph__batch_norm_sums_ref(
    size_t rows, size_t n, const ph_real *x, const double *shift, double *sum, double *sum_of_squares)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t j = 0; j < n; j++) {
            const double value = (double)x[r * n + j] - (shift != NULL ? shift[j] : 0);
            sum[j] += value;
            sum_of_squares[j] += value * value;
        }
    }
}

/* y = (x - mean) inv_std gamma + beta */
void ph__batch_norm_apply_ref(size_t rows, size_t n, const ph_real *x, const ph_real *mean,
    const ph_real *inv_std, const ph_real *gamma, const ph_real *beta, ph_real *y)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < n; j++)
            y[r * n + j] = (x[r * n + j] - mean[j]) * (inv_std[j] * gamma[j]) + beta[j];
}

/* sum_dy_j += sum_r dy_rj,  sum_dy_xhat_j += sum_r dy_rj (x_rj - mean_j) inv_std_j */
void ph__batch_norm_gradient_sums_ref(size_t rows, size_t n, const ph_real *x, const ph_real *dy,
    const ph_real *mean, const ph_real *inv_std, double *sum_dy, double *sum_dy_xhat)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t j = 0; j < n; j++) {
            const double gradient = (double)dy[r * n + j];
            const double centred = (double)x[r * n + j] - (double)mean[j];
            sum_dy[j] += gradient;
            sum_dy_xhat[j] += gradient * (centred * (double)inv_std[j]);
        }
    }
}

/* dx = gamma inv_std (dy - mean_dy - xhat mean_dy_xhat),  xhat = (x - mean) inv_std */
void ph__batch_norm_backward_ref(size_t rows, size_t n, const ph_real *x, const ph_real *dy,
    const ph_real *mean, const ph_real *inv_std, const ph_real *gamma, const ph_real *mean_dy,
    const ph_real *mean_dy_xhat, ph_real *dx)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t j = 0; j < n; j++) {
            const ph_real xhat = (x[r * n + j] - mean[j]) * inv_std[j];
            dx[r * n + j] = gamma[j] * inv_std[j] * (dy[r * n + j] - mean_dy[j] - xhat * mean_dy_xhat[j]);
        }
    }
}
