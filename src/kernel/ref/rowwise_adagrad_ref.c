/* Row-wise Adagrad, the specification: one accumulator per row, squares summed by blocks of columns. */
#include "kernel/kernel_list.h"

#include <math.h>

/* a b + c, rounded once */
static ph_real fused(ph_real a, ph_real b, ph_real c)
{
    return _Generic(a, float : fmaf, default : fma)(a, b, c);
}

/* g = gradient scale + l2 w; weight is read only where l2 is not 0 */
static ph_real gradient_at(
    const struct ph__optimizer_step *step, const ph_real *grad, const ph_real *weight, size_t d)
{
    const ph_real scaled = (grad != NULL ? grad[d] : 0) * step->gradient_scale;
    return step->l2 != 0 ? fused(step->l2, weight[d], scaled) : scaled;
}

/* (g_0^2 + g_1^2) + (g_2^2 + g_3^2) of the columns from `first` on; columns from `end` on count 0 */
static ph_real block_squares(const struct ph__optimizer_step *step, const ph_real *grad,
    const ph_real *weight, size_t first, size_t end)
{
    ph_real squares[PH_SQUARES_COLUMNS] = {0};
    for (size_t i = 0; i < PH_SQUARES_COLUMNS && first + i < end; i++) {
        const ph_real g = gradient_at(step, grad, weight, first + i);
        squares[i] = g * g;
    }
    return (squares[0] + squares[1]) + (squares[2] + squares[3]);
}

void ph__row_squares_ref(const struct ph__optimizer_step *step, size_t dim, const ph_real *grad,
    const ph_real *weight, ph_real *blocks_out)
{
    for (size_t first = 0; first < dim; first += PH_SQUARES_COLUMNS)
        *blocks_out++ = block_squares(step, grad, weight, first, dim);
}

/* s += mean_square;  w_d -= lr / (sqrt(s) + eps) g_d */
void ph__rowwise_adagrad_step_ref(const struct ph__optimizer_step *step, ph_real mean_square, size_t dim,
    const ph_real *grad, ph_real *weight, ph_real *s)
{
    *s += mean_square;
    const ph_real rate = step->learning_rate / ((ph_real)sqrt((double)*s) + step->epsilon);
    for (size_t d = 0; d < dim; d++)
        weight[d] = fused(-rate, gradient_at(step, grad, weight, d), weight[d]);
}

void ph__rowwise_adagrad_update_ref(
    const struct ph__optimizer_step *step, size_t dim, const ph_real *grad, ph_real *weight, ph_real *s)
{
    ph_real sums[PH_SQUARES_SUMS] = {0};
    for (size_t first = 0; first < dim; first += PH_SQUARES_COLUMNS)
        sums[first / PH_SQUARES_COLUMNS % PH_SQUARES_SUMS] += block_squares(step, grad, weight, first, dim);
    if (dim > 0)
        ph__rowwise_adagrad_step_ref(step, ph__add_square_sums(sums) / (ph_real)dim, dim, grad, weight, s);
}
