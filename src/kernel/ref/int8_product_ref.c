/* Products of numbers of a byte each, and the packing of their weights, the specification. */
#include <math.h>
#include <string.h>

#include "kernel/int8_scale.h"
#include "kernel/kernel_list.h"

/* ---- packing ---- */

static ph_real weight_at(const struct ph__int8_pack_args *args, size_t n, size_t k)
{
    return args->weight[args->is_transposed ? k * args->out_features + n : n * args->in_features + k];
}

static ph_real largest_of(const struct ph__int8_pack_args *args, size_t n)
{
    ph_real largest = 0;
    for (size_t k = 0; k < args->in_features; k++) {
        const ph_real magnitude = (ph_real)fabs((double)weight_at(args, n, k));
        if (!isfinite(magnitude))
            return NAN;
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

void ph__int8_pack_ref(const struct ph__int8_pack_args *args)
{
    const struct ph__int8_weight to = ph__int8_weight(args->out_features, args->in_features, args->packed);
    memset(args->packed, 0, ph__int8_packed_bytes(args->out_features, args->in_features));
    for (size_t n = 0; n < args->out_features; n++) {
        int8_t *levels = to.levels + ph__int8_place(args->in_features, n);
        const float scale = to.scales[n] = ph__int8_scale(largest_of(args, n));
        for (size_t k = 0; k < args->in_features && scale > 0; k++)
            levels[k / PH_INT8_TOGETHER * PH_INT8_GROUP + k % PH_INT8_TOGETHER] =
                (int8_t)lrint((double)(weight_at(args, n, k) / scale));
    }
    ph__int8_sum_levels(args->out_features, args->in_features, &to);
}

/* ---- the product ---- */

static int32_t sum_of(size_t count, const int8_t *x, const int8_t *levels)
{
    int32_t sum = 0;
    for (size_t k = 0; k < count; k++)
        sum += x[k] * levels[k / PH_INT8_TOGETHER * PH_INT8_GROUP + k % PH_INT8_TOGETHER];
    return sum;
}

void ph__int8_product_ref(const struct ph__int8_product_args *args)
{
    const struct ph__int8_weight weight =
        ph__int8_weight(args->out_features, args->in_features, args->packed);
    for (size_t r = 0; r < args->rows; r++) {
        const int8_t *x = args->x + r * ph__int8_stride(args->in_features);
        ph_real *y = args->y + r * args->out_features;
        for (size_t n = 0; n < args->out_features; n++) {
            const int32_t sum =
                sum_of(args->in_features, x, weight.levels + ph__int8_place(args->in_features, n));
            const float bias = args->bias != NULL ? (float)args->bias[n] : 0;
            y[n] = (ph_real)fmaf(args->x_scales[r] * weight.scales[n], (float)sum, bias);
        }
        if (args->is_rectified)
            ph__relu_ref(args->out_features, y, y);
    }
}
