/* Second-order factorization machine (Rendle 2010, eq. 5), the specification. */
#include "kernel/kernel_list.h"

/* out_b = 1/2 sum_d ((sum_f x_fd)^2 - sum_f x_fd^2) */
void ph__fm_forward_ref(size_t count, size_t num_fields, size_t dim, const ph_real *x, ph_real *out)
{
    for (size_t b = 0; b < count; b++) {
        const ph_real *sample = x + b * num_fields * dim; /* (F,D) */
        ph_real total = 0;
        for (size_t d = 0; d < dim; d++) {
            ph_real sum = 0;
            ph_real squares = 0;
            for (size_t f = 0; f < num_fields; f++) {
                const ph_real value = sample[f * dim + d];
                sum += value;
                squares += value * value;
            }
            total += sum * sum - squares;
        }
        out[b] = (ph_real)0.5 * total;
    }
}

/* dx_fd = g_b (sum_f' x_f'd - x_fd) */
void ph__fm_backward_ref(
    size_t count, size_t num_fields, size_t dim, const ph_real *x, const ph_real *grad, ph_real *dx)
{
    for (size_t b = 0; b < count; b++) {
        const size_t start = b * num_fields * dim;
        for (size_t d = 0; d < dim; d++) {
            ph_real sum = 0;
            for (size_t f = 0; f < num_fields; f++)
                sum += x[start + f * dim + d];
            for (size_t f = 0; f < num_fields; f++)
                dx[start + f * dim + d] = grad[b] * (sum - x[start + f * dim + d]);
        }
    }
}
