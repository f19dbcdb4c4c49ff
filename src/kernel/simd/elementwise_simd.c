/* Elementwise arithmetic: whole vectors, then a masked tail. */
#include "kernel/simd/simd.h"

void PH_SIMD(relu)(size_t n, const float *x, float *y)
{
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vf_store(y + i, vf_max(vf_zero(), vf_load(x + i)));
    const vmask tail = vf_first(n - i);
    if (i < n)
        vf_store_mask(y + i, tail, vf_max(vf_zero(), vf_load_mask(x + i, tail)));
}

void PH_SIMD(relu_backward)(size_t n, const float *y, const float *dy, float *dx)
{
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vf_store(dx + i, vf_where_positive(vf_load(y + i), vf_load(dy + i)));
    const vmask tail = vf_first(n - i);
    if (i < n)
        vf_store_mask(dx + i, tail, vf_where_positive(vf_load_mask(y + i, tail), vf_load_mask(dy + i, tail)));
}

void PH_SIMD(add)(size_t n, const float *a, const float *b, float *y)
{
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vf_store(y + i, vf_add(vf_load(a + i), vf_load(b + i)));
    const vmask tail = vf_first(n - i);
    if (i < n)
        vf_store_mask(y + i, tail, vf_add(vf_load_mask(a + i, tail), vf_load_mask(b + i, tail)));
}

void PH_SIMD(multiply)(size_t n, const float *a, const float *b, float *y)
{
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vf_store(y + i, vf_mul(vf_load(a + i), vf_load(b + i)));
    const vmask tail = vf_first(n - i);
    if (i < n)
        vf_store_mask(y + i, tail, vf_mul(vf_load_mask(a + i, tail), vf_load_mask(b + i, tail)));
}

/* Rounds the product before the addition, as the specification does. */
void PH_SIMD(multiply_add)(size_t n, const float *a, const float *b, const float *c, float *y)
{
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vf_store(y + i, vf_add(vf_mul(vf_load(a + i), vf_load(b + i)), vf_load(c + i)));
    const vmask tail = vf_first(n - i);
    if (i < n) {
        const vf product = vf_mul(vf_load_mask(a + i, tail), vf_load_mask(b + i, tail));
        vf_store_mask(y + i, tail, vf_add(product, vf_load_mask(c + i, tail)));
    }
}

void PH_SIMD(scale)(size_t n, float factor, const float *x, float *y)
{
    const vf f = vf_set1(factor);
    size_t i = 0;
    for (; i + VF_WIDTH <= n; i += VF_WIDTH)
        vf_store(y + i, vf_mul(f, vf_load(x + i)));
    const vmask tail = vf_first(n - i);
    if (i < n)
        vf_store_mask(y + i, tail, vf_mul(f, vf_load_mask(x + i, tail)));
}
