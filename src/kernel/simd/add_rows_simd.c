/* Column sums: the sums of a block of columns stay in registers while all rows pass. Each column adds its
 * rows in order, as ref does, so the bits are the same on every ISA. */
#include "kernel/simd/simd.h"

enum { VECTORS = 8 };

/* Sums `vectors` whole vectors of columns, or one masked vector; vectors and has_mask are constants. */
PH_INLINE void add_columns(
    size_t rows, size_t stride, const float *x, float *y, size_t vectors, int has_mask, vmask mask)
{
    vf sum[VECTORS];
    PH_UNROLL
    for (size_t v = 0; v < vectors; v++)
        sum[v] = has_mask ? vf_load_mask(y, mask) : vf_load(y + v * VF_WIDTH);
    for (size_t r = 0; r < rows; r++, x += stride) {
        PH_UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[v] = vf_add(sum[v], has_mask ? vf_load_mask(x, mask) : vf_load(x + v * VF_WIDTH));
    }
    PH_UNROLL
    for (size_t v = 0; v < vectors; v++) {
        if (has_mask)
            vf_store_mask(y, mask, sum[v]);
        else
            vf_store(y + v * VF_WIDTH, sum[v]);
    }
}

/* y_j += sum_r x_rj */
void PH_SIMD(add_rows)(size_t rows, size_t n, const float *x, float *y)
{
    size_t j = 0;
    for (; j + VECTORS * VF_WIDTH <= n; j += VECTORS * VF_WIDTH)
        add_columns(rows, n, x + j, y + j, VECTORS, 0, vf_first(0));
    for (; j + VF_WIDTH <= n; j += VF_WIDTH)
        add_columns(rows, n, x + j, y + j, 1, 0, vf_first(0));
    if (j < n)
        add_columns(rows, n, x + j, y + j, 1, 1, vf_first(n - j));
}
