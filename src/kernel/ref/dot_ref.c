/* Pairwise dot products of a sample's vectors (the interaction of DLRM, Naumov et al. 2019), the
 * specification. */
#include "kernel/kernel_list.h"

#include <string.h>

/* Returns the index of the vector of field f of sample b in rest (kernel.h describes first and rest). */
static size_t rest_index(size_t b, size_t f, size_t num_fields, size_t dim, int has_first)
{
    return has_first ? (b * (num_fields - 1) + f - 1) * dim : (b * num_fields + f) * dim;
}

static const ph_real *field(
    const ph_real *first, const ph_real *rest, size_t b, size_t f, size_t num_fields, size_t dim)
{
    if (first != NULL && f == 0)
        return first + b * dim;
    return rest + rest_index(b, f, num_fields, dim, first != NULL);
}

/* out_b = <x_i, x_j> for j < i */
void ph__dot_forward_ref(size_t count, size_t num_fields, size_t dim, const ph_real *first,
    const ph_real *rest, ph_real *out, size_t out_stride)
{
    for (size_t b = 0; b < count; b++) {
        ph_real *pair = out + b * out_stride;
        for (size_t i = 1; i < num_fields; i++) {
            const ph_real *xi = field(first, rest, b, i, num_fields, dim);
            for (size_t j = 0; j < i; j++) {
                const ph_real *xj = field(first, rest, b, j, num_fields, dim);
                ph_real sum = 0;
                for (size_t d = 0; d < dim; d++)
                    sum += xi[d] * xj[d];
                *pair++ = sum;
            }
        }
    }
}

/* dx_i += sum_j g_ij x_j, where g_ij = g_ji is at i(i-1)/2 + j for j < i */
static void add_field_gradient(size_t b, size_t i, size_t num_fields, size_t dim, const ph_real *first,
    const ph_real *rest, const ph_real *g, ph_real *dx)
{
    for (size_t j = 0; j < num_fields; j++) {
        if (j == i)
            continue;
        const ph_real *xj = field(first, rest, b, j, num_fields, dim);
        const ph_real gij = j < i ? g[i * (i - 1) / 2 + j] : g[j * (j - 1) / 2 + i];
        for (size_t d = 0; d < dim; d++)
            dx[d] += gij * xj[d];
    }
}

void ph__dot_backward_ref(size_t count, size_t num_fields, size_t dim, const ph_real *first,
    const ph_real *rest, const ph_real *grad, size_t grad_stride, int add_to_first, ph_real *d_first,
    ph_real *d_rest)
{
    for (size_t b = 0; b < count; b++) {
        for (size_t i = 0; i < num_fields; i++) {
            const int is_first = first != NULL && i == 0;
            ph_real *dx =
                is_first ? d_first + b * dim : d_rest + rest_index(b, i, num_fields, dim, first != NULL);
            if (!is_first || !add_to_first)
                memset(dx, 0, dim * sizeof *dx);
            add_field_gradient(b, i, num_fields, dim, first, rest, grad + b * grad_stride, dx);
        }
    }
}
