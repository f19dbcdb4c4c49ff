/* Second-order factorization machine (Rendle 2010, eq. 5), over vectors of columns.
 *
 * Memory limits its speed. So up to VECTORS vectors are summed side by side, which reads a field from end to
 * end and lets no sum wait for its own last addition, while the next sample is prefetched. */
#include "kernel/simd/simd.h"

enum { VECTORS = 4 };

PH_INLINE vf load_columns(const float *p, int is_tail, vmask tail)
{
    return is_tail ? vf_load_mask(p, tail) : vf_load(p);
}

/* total + sum over vectors of ((sum_f x_fd)^2 - sum_f x_fd^2); vectors is a constant, one for a tail */
PH_INLINE vf add_pair_sums(
    vf total, size_t num_fields, size_t dim, const float *x, size_t vectors, int is_tail, vmask tail)
{
    vf sum[VECTORS], squares[VECTORS];
    PH_UNROLL
    for (size_t v = 0; v < vectors; v++)
        sum[v] = squares[v] = vf_zero();
    for (size_t f = 0; f < num_fields; f++) {
        PH_UNROLL
        for (size_t v = 0; v < vectors; v++) {
            const float *columns = x + f * dim + v * VF_WIDTH;
            const vf value = load_columns(columns, is_tail, tail);
            __builtin_prefetch(columns + num_fields * dim);
            sum[v] = vf_add(sum[v], value);
            squares[v] = vf_fma(value, value, squares[v]);
        }
    }
    PH_UNROLL
    for (size_t v = 0; v < vectors; v++)
        total = vf_add(total, vf_sub(vf_mul(sum[v], sum[v]), squares[v]));
    return total;
}

/* out_b = 1/2 sum_d ((sum_f x_fd)^2 - sum_f x_fd^2) */
void PH_SIMD(fm_forward)(size_t count, size_t num_fields, size_t dim, const float *x, float *out)
{
    const vmask tail = vf_first(dim % VF_WIDTH);
    for (size_t b = 0; b < count; b++) {
        const float *sample = x + b * num_fields * dim;
        vf total = vf_zero();
        size_t d = 0;
        for (; d + VECTORS * VF_WIDTH <= dim; d += VECTORS * VF_WIDTH)
            total = add_pair_sums(total, num_fields, dim, sample + d, VECTORS, 0, tail);
        for (; d + VF_WIDTH <= dim; d += VF_WIDTH)
            total = add_pair_sums(total, num_fields, dim, sample + d, 1, 0, tail);
        if (d < dim)
            total = add_pair_sums(total, num_fields, dim, sample + d, 1, 1, tail);
        out[b] = 0.5F * vf_sum(total);
    }
}

/* dx_fd = g (sum_f' x_f'd - x_fd) of some vectors of columns; vectors is a constant, one for a tail */
PH_INLINE void pair_gradients(size_t num_fields, size_t dim, const float *x, vf grad, float *dx,
    size_t vectors, int is_tail, vmask tail)
{
    vf sum[VECTORS];
    PH_UNROLL
    for (size_t v = 0; v < vectors; v++)
        sum[v] = vf_zero();
    for (size_t f = 0; f < num_fields; f++) {
        PH_UNROLL
        for (size_t v = 0; v < vectors; v++) {
            const float *columns = x + f * dim + v * VF_WIDTH;
            sum[v] = vf_add(sum[v], load_columns(columns, is_tail, tail));
            __builtin_prefetch(columns + num_fields * dim);
        }
    }
    for (size_t f = 0; f < num_fields; f++) {
        PH_UNROLL
        for (size_t v = 0; v < vectors; v++) {
            const size_t i = f * dim + v * VF_WIDTH;
            __builtin_prefetch(dx + i + num_fields * dim);
            const vf value = vf_mul(grad, vf_sub(sum[v], load_columns(x + i, is_tail, tail)));
            if (is_tail)
                vf_store_mask(dx + i, tail, value);
            else
                vf_store(dx + i, value);
        }
    }
}

void PH_SIMD(fm_backward)(
    size_t count, size_t num_fields, size_t dim, const float *x, const float *grad, float *dx)
{
    const vmask tail = vf_first(dim % VF_WIDTH);
    for (size_t b = 0; b < count; b++) {
        const size_t start = b * num_fields * dim;
        const vf g = vf_set1(grad[b]);
        size_t d = 0;
        for (; d + VECTORS * VF_WIDTH <= dim; d += VECTORS * VF_WIDTH)
            pair_gradients(num_fields, dim, x + start + d, g, dx + start + d, VECTORS, 0, tail);
        for (; d + VF_WIDTH <= dim; d += VF_WIDTH)
            pair_gradients(num_fields, dim, x + start + d, g, dx + start + d, 1, 0, tail);
        if (d < dim)
            pair_gradients(num_fields, dim, x + start + d, g, dx + start + d, 1, 1, tail);
    }
}
