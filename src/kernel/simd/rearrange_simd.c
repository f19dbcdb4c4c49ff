/* Transposition and interchange of dimensions. A matrix is transposed by squares of VF_WIDTH numbers a side
 * in registers: fours of rows are transposed within 128-bit lanes, then the lanes among each other. */
#include "kernel/simd/simd.h"

enum { FOURS = VF_WIDTH / 4 };

/* Transposes x (rows, columns) at `from`, of a matrix with `width` columns, to (columns, rows) at `to`, of
 * one with `height` columns; rows and columns are at most VF_WIDTH. */
static void transpose_square(
    size_t rows, size_t columns, const float *from, size_t width, float *to, size_t height)
{
    const vmask in = vf_first(columns), out = vf_first(rows);
    vf x[4][FOURS]; /* [number of a four][four] */
    PH_UNROLL
    for (size_t f = 0; f < FOURS; f++) {
        vf four[4];
        PH_UNROLL
        for (size_t r = 0; r < 4; r++)
            four[r] = 4 * f + r < rows ? vf_load_mask(from + (4 * f + r) * width, in) : vf_zero();
        vf_interleave(four);
        PH_UNROLL
        for (size_t r = 0; r < 4; r++)
            x[r][f] = four[r];
    }
    PH_UNROLL
    for (size_t r = 0; r < 4; r++)
        vf_transpose_fours(x[r]);
    PH_UNROLL
    for (size_t c = 0; c < VF_WIDTH; c++)
        if (c < columns)
            vf_store_mask(to + c * height, out, x[c % 4][c / 4]);
}

static size_t at_most(size_t n)
{
    return n < VF_WIDTH ? n : VF_WIDTH;
}

/* y_ji = x_ij */
void PH_SIMD(transpose)(size_t count, size_t rows, size_t columns, const float *x, float *y)
{
    for (size_t m = 0; m < count; m++, x += rows * columns, y += rows * columns)
        for (size_t j = 0; j < columns; j += VF_WIDTH)
            for (size_t i = 0; i < rows; i += VF_WIDTH)
                transpose_square(at_most(rows - i), at_most(columns - j), x + i * columns + j, columns,
                    y + j * rows + i, rows);
}

PH_INLINE void copy_row(size_t n, vmask tail, const float *from, float *to)
{
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vf_store(to + i, vf_load(from + i));
    if (i < n)
        vf_store_mask(to + i, tail, vf_load_mask(from + i, tail));
}

/* y_ji: = x_ij: */
void PH_SIMD(interchange)(size_t a, size_t b, size_t n, const float *x, float *y)
{
    const vmask tail = vf_first(n % VF_WIDTH);
    for (size_t j = 0; j < b; j++)
        for (size_t i = 0; i < a; i++)
            copy_row(n, tail, x + (i * b + j) * n, y + (j * a + i) * n);
}
