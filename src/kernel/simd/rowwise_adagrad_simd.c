/* Row-wise Adagrad: one accumulator per row, so one root and one division per row. */
#include "kernel/simd/rowwise_squares.h"
#include "kernel/simd/simd.h"

/* Columns of a row: `whole` of them are in whole vectors; tail masks the lanes of the rest. */
struct row {
    size_t dim, whole;
    vmask tail;
    const float *grad;    /* NULL: zeros */
    const float *penalty; /* the weights where l2 is not 0 */
    vf gradient_scale, l2;
};

static struct row make_row(
    const struct ph__optimizer_step *step, size_t dim, const float *grad, const float *weight)
{
    return (struct row){.dim = dim,
        .whole = dim - dim % VF_WIDTH,
        .tail = vf_first(dim % VF_WIDTH),
        .grad = grad,
        .penalty = step->l2 != 0 ? weight : NULL,
        .gradient_scale = vf_set1(step->gradient_scale),
        .l2 = vf_set1(step->l2)};
}

/* Loads p's numbers in the columns from d on. is_whole, a constant, is set when these are a whole vector. */
PH_INLINE vf load(const struct row *row, const float *p, size_t d, int is_whole)
{
    return is_whole || d < row->whole ? vf_load(p + d) : vf_load_mask(p + d, row->tail);
}

/* g = gradient scale + l2 w in the columns from d on; 0 beyond the row */
PH_INLINE vf gradient_at(const struct row *row, size_t d, int is_whole)
{
    if (!is_whole && d >= row->dim)
        return vf_zero();
    const vf gradient = row->grad != NULL ? load(row, row->grad, d, is_whole) : vf_zero();
    const vf g = vf_mul(gradient, row->gradient_scale);
    return row->penalty != NULL ? vf_fma(row->l2, load(row, row->penalty, d, is_whole), g) : g;
}

/* Computes the block sums of a group of columns that has `fours` fours, a constant. */
PH_INLINE void square_group(const struct row *row, size_t d, size_t fours, int is_whole, vf sums[FOUR_BLOCKS])
{
    vf g[GROUP_VECTORS];
    PH_UNROLL
    for (size_t v = 0; v < fours * FOUR_BLOCKS; v++)
        g[v] = gradient_at(row, d + v * VF_WIDTH, is_whole);
    square_blocks(g, fours, sums);
}

/* Returns the sum of squares of a row of more than two fours. */
PH_INLINE float sum_groups(const struct row *row)
{
    const size_t group = GROUP_VECTORS * VF_WIDTH;
    vf sums[FOUR_BLOCKS], more[FOUR_BLOCKS];
    PH_UNROLL
    for (size_t p = 0; p < FOUR_BLOCKS; p++)
        sums[p] = vf_zero();
    for (size_t d = 0; d < row->dim; d += group) {
        if (d + group <= row->dim)
            square_group(row, d, FOURS, 1, more);
        else
            square_group(row, d, FOURS, 0, more);
        PH_UNROLL
        for (size_t p = 0; p < FOUR_BLOCKS; p++)
            sums[p] = vf_add(sums[p], more[p]);
    }
    return vf_sum_of_lanes(sums, FOURS);
}

static float sum_squares(const struct row *row)
{
    const size_t four = FOUR_BLOCKS * VF_WIDTH;
    vf sums[FOUR_BLOCKS];
    if (row->dim > 2 * four)
        return sum_groups(row);
    if (row->dim > four) {
        square_group(row, 0, 2, 0, sums);
        return vf_sum_of_lanes(sums, 2);
    }
    square_group(row, 0, 1, 0, sums);
    return vf_sum_of_lanes(sums, 1);
}

/* s += mean_square;  w_d -= lr / (sqrt(s) + eps) g_d */
PH_INLINE void step_columns(
    const struct ph__optimizer_step *step, float mean_square, const struct row *row, float *weight, float *s)
{
    const vf rate = rowwise_rate(step, mean_square, s);
    for (size_t d = 0; d < row->whole; d += VF_WIDTH)
        vf_store(weight + d, vf_fnma(rate, gradient_at(row, d, 1), vf_load(weight + d)));
    if (row->whole < row->dim) {
        float *last = weight + row->whole;
        vf_store_mask(
            last, row->tail, vf_fnma(rate, gradient_at(row, row->whole, 0), vf_load_mask(last, row->tail)));
    }
}

void PH_SIMD(row_squares)(const struct ph__optimizer_step *step, size_t dim, const float *grad,
    const float *weight, float *blocks_out)
{
    const struct row row = make_row(step, dim, grad, weight);
    for (size_t d = 0; d < dim; d += VF_WIDTH)
        store_blocks(
            blocks_out + d / PH_SQUARES_COLUMNS, gradient_at(&row, d, 0), d < row.whole ? VF_WIDTH : dim - d);
}

void PH_SIMD(rowwise_adagrad_step)(const struct ph__optimizer_step *step, float mean_square, size_t dim,
    const float *grad, float *weight, float *s)
{
    const struct row row = make_row(step, dim, grad, weight);
    step_columns(step, mean_square, &row, weight, s);
}

void PH_SIMD(rowwise_adagrad_update)(
    const struct ph__optimizer_step *step, size_t dim, const float *grad, float *weight, float *s)
{
    const struct row row = make_row(step, dim, grad, weight);
    if (dim > 0)
        step_columns(step, sum_squares(&row) / (float)dim, &row, weight, s);
}
