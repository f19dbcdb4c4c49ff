/* Row-wise Adagrad, the specification: one accumulator a row. */
#include "kernel/kernel_list.h"

#include <math.h>

/* s += mean_d g_d^2;  w_d -= lr g_d / (sqrt(s) + eps) */
void ph__rowwise_adagrad_update_ref(
    const struct ph_optimizer_step *step, size_t dim, const ph_real *grad, ph_real *weight, ph_real *s)
{
    ph_real sum = 0;
    for (size_t d = 0; d < dim; d++) {
        const ph_real g = (grad != NULL ? grad[d] : 0) * step->gradient_scale + step->l2 * weight[d];
        sum += g * g;
    }
    if (dim > 0)
        *s += sum / (ph_real)dim;
    const ph_real divisor = (ph_real)sqrt((double)*s) + step->epsilon;
    for (size_t d = 0; d < dim; d++) {
        const ph_real g = (grad != NULL ? grad[d] : 0) * step->gradient_scale + step->l2 * weight[d];
        weight[d] -= step->learning_rate * g / divisor;
    }
}
