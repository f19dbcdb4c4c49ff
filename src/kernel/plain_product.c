/* Matrix products by plain loops: the reference GEMM. Every sum has one order, given by the shape alone.
 * Loops are blocked so that numbers read again stay in the first or second cache, and written so that a
 * compiler can keep LANES sums side by side. */
#include "kernel/gemm_library.h"

#include <assert.h>
#include <string.h>

#define LANES 16
#define BLOCK 64         /* of the inner dimension, or of the rows of a column sum */
#define COLUMN_BLOCK 256 /* of the columns when B is read row by row */
#define SUM_COLUMNS 512  /* of a column sum: 2 KiB, and a stretch of memory worth prefetching */
#define DOT_COLUMNS 32   /* rows of a transposed B kept in cache */

static ph_real dot(size_t n, const ph_real *x, const ph_real *y)
{
    ph_real lanes[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lanes[j] += x[i + j] * y[i + j];
    for (size_t j = 0; i + j < n; j++)
        lanes[j] += x[i + j] * y[i + j];
    for (size_t width = LANES / 2; width > 0; width /= 2)
        for (size_t j = 0; j < width; j++)
            lanes[j] += lanes[j + width];
    return lanes[0];
}

/* c_ij = <a_i, b_j> + bias_j, where A and the transposed B both lie along the sum. */
static void product_of_dots(
    const struct ph__product *p, size_t b_stride, const struct ph__product_operands *o)
{
    const ph_real *a = o->a, *b = o->b;
    for (size_t first = 0; first < p->columns; first += DOT_COLUMNS) {
        const size_t last = first + DOT_COLUMNS < p->columns ? first + DOT_COLUMNS : p->columns;
        for (size_t i = 0; i < p->rows; i++) {
            for (size_t j = first; j < last; j++) {
                const ph_real sum = dot(p->inner, a + i * p->a_stride, b + j * b_stride);
                o->c[i * p->c_stride + j] = sum + (p->flags & PH_PRODUCT_BIAS ? o->bias[j] : 0);
            }
        }
    }
}

static void start_row(const struct ph__product *p, const ph_real *bias, size_t columns, ph_real *c)
{
    if (p->flags & PH_PRODUCT_BIAS)
        memcpy(c, bias, columns * sizeof *c);
    else
        memset(c, 0, columns * sizeof *c);
}

/* c (columns) += sum over l of a_l b_l, four rows of B at a time; a_l is at a + l * a_step. */
static void add_rows_scaled(size_t inner, size_t columns, const ph_real *a, size_t a_step, const ph_real *b,
    size_t b_stride, ph_real *c)
{
    size_t l = 0;
    for (; l + 4 <= inner; l += 4) {
        const ph_real a0 = a[l * a_step], a1 = a[(l + 1) * a_step];
        const ph_real a2 = a[(l + 2) * a_step], a3 = a[(l + 3) * a_step];
        const ph_real *b0 = b + l * b_stride, *b1 = b0 + b_stride, *b2 = b1 + b_stride, *b3 = b2 + b_stride;
        for (size_t j = 0; j < columns; j++)
            c[j] += (a0 * b0[j] + a1 * b1[j]) + (a2 * b2[j] + a3 * b3[j]);
    }
    for (; l < inner; l++) {
        const ph_real a0 = a[l * a_step];
        const ph_real *b0 = b + l * b_stride;
        for (size_t j = 0; j < columns; j++)
            c[j] += a0 * b0[j];
    }
}

/* C = sum over l of a_l b_l', B read row by row in blocks (BLOCK, COLUMN_BLOCK). */
static void product_of_rows(
    const struct ph__product *p, size_t b_stride, const struct ph__product_operands *o)
{
    const int is_transposed = (p->flags & PH_PRODUCT_A_TRANSPOSED) != 0;
    const size_t row_step = is_transposed ? 1 : p->a_stride, inner_step = is_transposed ? p->a_stride : 1;
    const ph_real *a = o->a, *b = o->b;
    for (size_t j = 0; j < p->columns; j += COLUMN_BLOCK) {
        const size_t columns = p->columns - j < COLUMN_BLOCK ? p->columns - j : COLUMN_BLOCK;
        for (size_t i = 0; i < p->rows; i++)
            start_row(p, o->bias == NULL ? NULL : o->bias + j, columns, o->c + i * p->c_stride + j);
        for (size_t l = 0; l < p->inner; l += BLOCK) {
            const size_t inner = p->inner - l < BLOCK ? p->inner - l : BLOCK;
            for (size_t i = 0; i < p->rows; i++)
                add_rows_scaled(inner, columns, a + i * row_step + l * inner_step, inner_step,
                    b + l * b_stride + j, b_stride, o->c + i * p->c_stride + j);
        }
    }
}

void ph__plain_product(const struct ph__product *product, const struct ph__product_operands *operands)
{
    const int is_transposed = (product->flags & PH_PRODUCT_B_TRANSPOSED) != 0;
    size_t b_stride = product->b_stride;
    if (product->flags & PH_PRODUCT_B_PACKED)
        b_stride = is_transposed ? product->inner : product->columns;
    if (!is_transposed) {
        product_of_rows(product, b_stride, operands);
        return;
    }
    assert(!(product->flags & PH_PRODUCT_A_TRANSPOSED));
    product_of_dots(product, b_stride, operands);
}

/* total (columns <= SUM_COLUMNS) = column sums of x, in blocks of rows whose sums stay in the first cache. */
static void sum_columns(size_t rows, size_t columns, size_t stride, const ph_real *x, ph_real *total)
{
    memset(total, 0, columns * sizeof *total);
    for (size_t first = 0; first < rows; first += BLOCK) {
        const size_t last = rows - first < BLOCK ? rows : first + BLOCK;
        ph_real block[SUM_COLUMNS];
        memcpy(block, x + first * stride, columns * sizeof *block);
        for (size_t i = first + 1; i < last; i++)
            for (size_t j = 0; j < columns; j++)
                block[j] += x[i * stride + j];
        for (size_t j = 0; j < columns; j++)
            total[j] += block[j];
    }
}

void ph__plain_column_sums(size_t rows, size_t columns, size_t stride, const ph_real *x, ph_real *sums)
{
    for (size_t j = 0; j < columns; j += SUM_COLUMNS)
        sum_columns(rows, columns - j < SUM_COLUMNS ? columns - j : SUM_COLUMNS, stride, x + j, sums + j);
}
