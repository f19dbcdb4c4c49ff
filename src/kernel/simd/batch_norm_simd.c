/* Batch norm over (rows, n), row by row as they lie in memory. The double sums of the statistics add the rows
 * in order, as in ref, a few rows while they are in registers. */
#include "kernel/simd/simd.h"

#define ROWS_AT_ONCE 8

/* Columns [j, j + VF_WIDTH), or fewer, as two vectors of doubles, zero beyond n. */
struct columns {
    vd low, high;
};

PH_INLINE struct columns load_doubles(const double *p, size_t width)
{
    double buffer[VF_WIDTH] = {0};
    if (width < VF_WIDTH) {
        for (size_t k = 0; k < width; k++)
            buffer[k] = p[k];
        p = buffer;
    }
    return (struct columns){vd_load(p), vd_load(p + VD_WIDTH)};
}

PH_INLINE void store_doubles(double *p, size_t width, struct columns x)
{
    double buffer[VF_WIDTH];
    double *target = width < VF_WIDTH ? buffer : p;
    vd_store(target, x.low);
    vd_store(target + VD_WIDTH, x.high);
    for (size_t k = 0; target == buffer && k < width; k++)
        p[k] = buffer[k];
}

PH_INLINE struct columns widen(vf x)
{
    return (struct columns){vd_low(x), vd_high(x)};
}

/* sum_j += sum_r (x_rj - shift_j),  squares_j += sum_r (x_rj - shift_j)^2 */
void PH_SIMD(batch_norm_sums)(
    size_t rows, size_t n, const float *x, const double *shift, double *sum, double *sum_of_squares)
{
    for (size_t first = 0, last; first < rows; first = last) {
        last = rows - first < ROWS_AT_ONCE ? rows : first + ROWS_AT_ONCE;
        for (size_t j = 0; j < n; j += VF_WIDTH) {
            const size_t width = n - j < VF_WIDTH ? n - j : VF_WIDTH;
            const vmask mask = vf_first(width);
            const struct columns origin = shift != NULL ? load_doubles(shift + j, width) : widen(vf_zero());
            struct columns total = load_doubles(sum + j, width);
            struct columns squares = load_doubles(sum_of_squares + j, width);
            for (size_t r = first; r < last; r++) {
                const struct columns value = widen(vf_load_mask(x + r * n + j, mask));
                const vd low = vd_sub(value.low, origin.low);
                const vd high = vd_sub(value.high, origin.high);
                total.low = vd_add(total.low, low);
                total.high = vd_add(total.high, high);
                squares.low = vd_fma(low, low, squares.low);
                squares.high = vd_fma(high, high, squares.high);
            }
            store_doubles(sum + j, width, total);
            store_doubles(sum_of_squares + j, width, squares);
        }
    }
}

/* sum_dy_j += sum_r dy_rj,  sum_dy_xhat_j += sum_r dy_rj (x_rj - mean_j) inv_std_j */
void PH_SIMD(batch_norm_gradient_sums)(size_t rows, size_t n, const float *x, const float *dy,
    const float *mean, const float *inv_std, double *sum_dy, double *sum_dy_xhat)
{
    for (size_t first = 0, last; first < rows; first = last) {
        last = rows - first < ROWS_AT_ONCE ? rows : first + ROWS_AT_ONCE;
        for (size_t j = 0; j < n; j += VF_WIDTH) {
            const size_t width = n - j < VF_WIDTH ? n - j : VF_WIDTH;
            const vmask mask = vf_first(width);
            const struct columns centre = widen(vf_load_mask(mean + j, mask));
            const struct columns factor = widen(vf_load_mask(inv_std + j, mask));
            struct columns total = load_doubles(sum_dy + j, width);
            struct columns weighted = load_doubles(sum_dy_xhat + j, width);
            for (size_t r = first; r < last; r++) {
                const struct columns value = widen(vf_load_mask(x + r * n + j, mask));
                const struct columns gradient = widen(vf_load_mask(dy + r * n + j, mask));
                total.low = vd_add(total.low, gradient.low);
                total.high = vd_add(total.high, gradient.high);
                weighted.low =
                    vd_fma(gradient.low, vd_mul(vd_sub(value.low, centre.low), factor.low), weighted.low);
                weighted.high = vd_fma(
                    gradient.high, vd_mul(vd_sub(value.high, centre.high), factor.high), weighted.high);
            }
            store_doubles(sum_dy + j, width, total);
            store_doubles(sum_dy_xhat + j, width, weighted);
        }
    }
}

/* y = (x - mean) inv_std gamma + beta */
void PH_SIMD(batch_norm_apply)(size_t rows, size_t n, const float *x, const float *mean, const float *inv_std,
    const float *gamma, const float *beta, float *y)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t j = 0; j < n; j += VF_WIDTH) {
            const vmask mask = vf_first(n - j < VF_WIDTH ? n - j : VF_WIDTH);
            const vf centre = vf_load_mask(mean + j, mask);
            const vf factor = vf_mul(vf_load_mask(inv_std + j, mask), vf_load_mask(gamma + j, mask));
            const vf offset = vf_load_mask(beta + j, mask);
            const size_t i = r * n + j;
            vf_store_mask(y + i, mask, vf_fma(vf_sub(vf_load_mask(x + i, mask), centre), factor, offset));
        }
    }
}

/* dx = gamma inv_std (dy - mean_dy - xhat mean_dy_xhat),  xhat = (x - mean) inv_std */
void PH_SIMD(batch_norm_backward)(size_t rows, size_t n, const float *x, const float *dy, const float *mean,
    const float *inv_std, const float *gamma, const float *mean_dy, const float *mean_dy_xhat, float *dx)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t j = 0; j < n; j += VF_WIDTH) {
            const vmask mask = vf_first(n - j < VF_WIDTH ? n - j : VF_WIDTH);
            const vf inverse = vf_load_mask(inv_std + j, mask);
            const vf factor = vf_mul(vf_load_mask(gamma + j, mask), inverse);
            const size_t i = r * n + j;
            const vf xhat = vf_mul(vf_sub(vf_load_mask(x + i, mask), vf_load_mask(mean + j, mask)), inverse);
            const vf gradient = vf_sub(vf_load_mask(dy + i, mask), vf_load_mask(mean_dy + j, mask));
            vf_store_mask(
                dx + i, mask, vf_mul(factor, vf_fnma(xhat, vf_load_mask(mean_dy_xhat + j, mask), gradient)));
        }
    }
}
