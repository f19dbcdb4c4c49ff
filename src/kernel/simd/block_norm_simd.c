/* Block norm: a block stays in the first cache from its sums to its result. */
#include "kernel/simd/hard_swish.h"

#define SUMS 4 /* side by side, to hide the latency of fma */

PH_INLINE vf total(const vf sums[SUMS])
{
    return vf_add(vf_add(sums[0], sums[1]), vf_add(sums[2], sums[3]));
}

/* Returns 1 / sqrt(mean square + epsilon) of a block in every lane. */
PH_INLINE vf scale_of(size_t n, const float *x)
{
    vf sums[SUMS] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    size_t j = 0;
    for (; j + SUMS * VF_WIDTH <= n; j += SUMS * VF_WIDTH)
        for (size_t k = 0; k < SUMS; k++) {
            const vf at = vf_load(x + j + k * VF_WIDTH);
            sums[k] = vf_fma(at, at, sums[k]);
        }
    for (; j < n; j += VF_WIDTH) {
        const vf at = vf_load_mask(x + j, vf_first(n - j < VF_WIDTH ? n - j : VF_WIDTH));
        sums[0] = vf_fma(at, at, sums[0]);
    }
    const float mean = vf_sum(total(sums)) / (float)n;
    return vf_div(vf_set1(1), vf_sqrt(vf_set1(mean + (float)PH_NORM_EPSILON)));
}

PH_INLINE vf result(vf x, vf scale, bool is_swished)
{
    const vf xhat = vf_mul(x, scale);
    return is_swished ? vf_hard_swish(xhat) : xhat;
}

PH_INLINE void block_forward(size_t n, bool is_swished, const float *x, float *y)
{
    const vf scale = scale_of(n, x);
    size_t j = 0;
    for (; j + VF_WIDTH <= n; j += VF_WIDTH)
        vf_store(y + j, result(vf_load(x + j), scale, is_swished));
    const vmask tail = vf_first(n - j);
    if (j < n)
        vf_store_mask(y + j, tail, result(vf_load_mask(x + j, tail), scale, is_swished));
}

/* Returns dy times the slope of hard swish at xhat, or dy. */
PH_INLINE vf gradient_at(vf xhat, vf dy, bool is_swished)
{
    return is_swished ? vf_mul(dy, vf_hard_swish_slope(xhat)) : dy;
}

/* Returns the mean of g xhat over a block in every lane, and writes g. */
PH_INLINE vf mean_product(size_t n, bool is_swished, const float *x, const float *dy, vf scale, float *g_out)
{
    vf sums[SUMS] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    size_t j = 0;
    for (; j + SUMS * VF_WIDTH <= n; j += SUMS * VF_WIDTH)
        for (size_t k = 0; k < SUMS; k++) {
            const size_t i = j + k * VF_WIDTH;
            const vf xhat = vf_mul(vf_load(x + i), scale);
            const vf g = gradient_at(xhat, vf_load(dy + i), is_swished);
            sums[k] = vf_fma(g, xhat, sums[k]);
            vf_store(g_out + i, g);
        }
    for (; j < n; j += VF_WIDTH) {
        const vmask mask = vf_first(n - j < VF_WIDTH ? n - j : VF_WIDTH);
        const vf xhat = vf_mul(vf_load_mask(x + j, mask), scale);
        const vf g = gradient_at(xhat, vf_load_mask(dy + j, mask), is_swished);
        sums[0] = vf_fma(g, xhat, sums[0]);
        vf_store_mask(g_out + j, mask, g);
    }
    return vf_set1(vf_sum(total(sums)) / (float)n);
}

/* dx = scale (g - xhat mean of g xhat) */
PH_INLINE void block_backward(size_t n, bool is_swished, const float *x, const float *dy, float *dx)
{
    const vf scale = scale_of(n, x), mean = mean_product(n, is_swished, x, dy, scale, dx);
    size_t j = 0;
    for (; j + VF_WIDTH <= n; j += VF_WIDTH) {
        const vf xhat = vf_mul(vf_load(x + j), scale);
        vf_store(dx + j, vf_mul(scale, vf_fnma(xhat, mean, vf_load(dx + j))));
    }
    const vmask tail = vf_first(n - j);
    if (j < n) {
        const vf xhat = vf_mul(vf_load_mask(x + j, tail), scale);
        vf_store_mask(dx + j, tail, vf_mul(scale, vf_fnma(xhat, mean, vf_load_mask(dx + j, tail))));
    }
}

PH_INLINE size_t block_at(size_t n, size_t first)
{
    return n - first < PH_NORM_BLOCK ? n - first : PH_NORM_BLOCK;
}

/* Norms by a loop of the flag's own, without a branch inside. */
void PH_SIMD(block_norm)(size_t rows, size_t n, bool is_swished, const float *x, float *y)
{
    for (size_t r = 0; r < rows; r++, x += n, y += n)
        for (size_t j = 0; j < n; j += PH_NORM_BLOCK)
            if (is_swished)
                block_forward(block_at(n, j), true, x + j, y + j);
            else
                block_forward(block_at(n, j), false, x + j, y + j);
}

void PH_SIMD(block_norm_backward)(
    size_t rows, size_t n, bool is_swished, const float *x, const float *dy, float *dx)
{
    for (size_t r = 0; r < rows; r++, x += n, dy += n, dx += n)
        for (size_t j = 0; j < n; j += PH_NORM_BLOCK)
            if (is_swished)
                block_backward(block_at(n, j), true, x + j, dy + j, dx + j);
            else
                block_backward(block_at(n, j), false, x + j, dy + j, dx + j);
}
