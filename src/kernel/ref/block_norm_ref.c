/* Block norm, the specification. A block's sums are double. */
#include "kernel/kernel_list.h"

#include <math.h>

/* Writes the normalised block and returns 1 / sqrt(mean square + epsilon). */
static double normalise(size_t n, const ph_real *x, ph_real *y)
{
    double squares = 0;
    for (size_t j = 0; j < n; j++)
        squares += (double)x[j] * (double)x[j];
    const double scale = 1 / sqrt(squares / (double)n + PH_NORM_EPSILON);
    for (size_t j = 0; j < n; j++)
        y[j] = (ph_real)((double)x[j] * scale);
    return scale;
}

static size_t block_at(size_t n, size_t first)
{
    return n - first < PH_NORM_BLOCK ? n - first : PH_NORM_BLOCK;
}

void ph__block_norm_ref(size_t rows, size_t n, bool is_swished, const ph_real *x, ph_real *y)
{
    for (size_t r = 0; r < rows; r++, x += n, y += n) {
        for (size_t j = 0; j < n; j += PH_NORM_BLOCK)
            normalise(block_at(n, j), x + j, y + j);
        if (is_swished)
            ph__hard_swish_ref(n, y, y);
    }
}

/* dx = scale (g - xhat mean of g xhat), xhat = x scale, g = dy or dy times the slope of hard swish at xhat */
static void block_backward(size_t n, bool is_swished, const ph_real *x, const ph_real *dy, ph_real *dx)
{
    ph_real xhat[PH_NORM_BLOCK], slopes[PH_NORM_BLOCK];
    const double scale = normalise(n, x, xhat);
    const ph_real *g = dy;
    double sum = 0;
    if (is_swished) {
        ph__hard_swish_backward_ref(n, xhat, dy, slopes);
        g = slopes;
    }
    for (size_t j = 0; j < n; j++)
        sum += (double)g[j] * (double)xhat[j];
    for (size_t j = 0; j < n; j++)
        dx[j] = (ph_real)(scale * ((double)g[j] - (double)xhat[j] * sum / (double)n));
}

void ph__block_norm_backward_ref(
    size_t rows, size_t n, bool is_swished, const ph_real *x, const ph_real *dy, ph_real *dx)
{
    for (size_t r = 0; r < rows; r++, x += n, dy += n, dx += n)
        for (size_t j = 0; j < n; j += PH_NORM_BLOCK)
            block_backward(block_at(n, j), is_swished, x + j, dy + j, dx + j);
}
