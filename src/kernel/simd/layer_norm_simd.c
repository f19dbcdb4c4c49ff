/* Layer norm, row by row: a row stays in the first cache while it is read for mean, variance and result. */
#include "kernel/simd/simd.h"

/* Returns the mean of a row of n whose lanes sum up to `sum`. */
PH_INLINE vf row_mean(vf sum, size_t n)
{
    return vf_set1(vf_sum(sum) / (float)n);
}

/* sum_j (x_j - origin); the row's first number as origin keeps a mean far from 0 exact. */
PH_INLINE vf sum_of_row(size_t n, const float *x, vf origin)
{
    vf sum = vf_zero();
    size_t j = 0;
    for (; j + VF_WIDTH <= n; j += VF_WIDTH)
        sum = vf_add(sum, vf_sub(vf_load(x + j), origin));
    const vmask tail = vf_first(n - j);
    return vf_add(sum, vf_keep_lanes(tail, vf_sub(vf_load_mask(x + j, tail), origin)));
}

/* sum_j (x_j - origin - offset)^2 */
PH_INLINE vf squares_of_row(size_t n, const float *x, vf origin, vf offset)
{
    vf sum = vf_zero();
    size_t j = 0;
    for (; j + VF_WIDTH <= n; j += VF_WIDTH) {
        const vf centred = vf_sub(vf_sub(vf_load(x + j), origin), offset);
        sum = vf_fma(centred, centred, sum);
    }
    const vmask tail = vf_first(n - j);
    const vf centred = vf_keep_lanes(tail, vf_sub(vf_sub(vf_load_mask(x + j, tail), origin), offset));
    return vf_fma(centred, centred, sum);
}

/* y = (x - mean) inv_std gamma + beta */
void PH_SIMD(layer_norm)(size_t rows, size_t n, const float *x, const float *gamma, const float *beta,
    double epsilon, float *y, float *statistics)
{
    for (size_t r = 0; r < rows; r++, x += n, y += n) {
        const vf origin = vf_set1(x[0]);
        const vf offset = row_mean(sum_of_row(n, x, origin), n);
        const vf variance = row_mean(squares_of_row(n, x, origin, offset), n);
        const vf inv_std = vf_div(vf_set1(1), vf_sqrt(vf_add(variance, vf_set1((float)epsilon))));
        if (statistics != NULL) {
            vf_store_mask(statistics + 2 * r, vf_first(1), vf_add(origin, offset));
            vf_store_mask(statistics + 2 * r + 1, vf_first(1), inv_std);
        }
        for (size_t j = 0; j < n; j += VF_WIDTH) {
            const vmask mask = vf_first(n - j < VF_WIDTH ? n - j : VF_WIDTH);
            const vf centred = vf_sub(vf_sub(vf_load_mask(x + j, mask), origin), offset);
            const vf factor = vf_mul(inv_std, vf_load_mask(gamma + j, mask));
            vf_store_mask(y + j, mask, vf_fma(centred, factor, vf_load_mask(beta + j, mask)));
        }
    }
}

/* A vector of a row's numbers in backward; lanes beyond the row are 0 in g. */
struct gradient {
    vf xhat, dy, g; /* (x - mean) inv_std, dy, dy gamma */
};

PH_INLINE struct gradient gradient_at(
    const float *x, const float *dy, const float *gamma, const float *statistics, vmask mask)
{
    const vf mean = vf_set1(statistics[0]), inv_std = vf_set1(statistics[1]);
    const vf gradient = vf_load_mask(dy, mask);
    return (struct gradient){.xhat = vf_mul(vf_sub(vf_load_mask(x, mask), mean), inv_std),
        .dy = gradient,
        .g = vf_mul(gradient, vf_load_mask(gamma, mask))};
}

/* dx = inv_std (g - mean of g - xhat mean of g xhat);  d_gamma += dy xhat,  d_beta += dy */
void PH_SIMD(layer_norm_backward)(size_t rows, size_t n, const float *x, const float *dy,
    const float *statistics, const float *gamma, float *dx, float *d_gamma, float *d_beta)
{
    for (size_t r = 0; r < rows; r++, x += n, dy += n, dx += n, statistics += 2) {
        vf sum = vf_zero(), weighted = vf_zero();
        for (size_t j = 0; j < n; j += VF_WIDTH) {
            const vmask mask = vf_first(n - j < VF_WIDTH ? n - j : VF_WIDTH);
            const struct gradient at = gradient_at(x + j, dy + j, gamma + j, statistics, mask);
            sum = vf_add(sum, at.g);
            weighted = vf_fma(at.g, at.xhat, weighted);
            vf_store_mask(d_gamma + j, mask, vf_fma(at.dy, at.xhat, vf_load_mask(d_gamma + j, mask)));
            vf_store_mask(d_beta + j, mask, vf_add(at.dy, vf_load_mask(d_beta + j, mask)));
        }
        const vf shift = row_mean(sum, n), slope = row_mean(weighted, n), inv_std = vf_set1(statistics[1]);
        for (size_t j = 0; j < n; j += VF_WIDTH) {
            const vmask mask = vf_first(n - j < VF_WIDTH ? n - j : VF_WIDTH);
            const struct gradient at = gradient_at(x + j, dy + j, gamma + j, statistics, mask);
            const vf centred = vf_fnma(at.xhat, slope, vf_sub(at.g, shift));
            vf_store_mask(dx + j, mask, vf_mul(inv_std, centred));
        }
    }
}
