/* Packs weights into bytes. An output's terms lie side by side (its levels are scattered, four at a time), or
 * a panel's outputs do (four vectors of levels become one of words). */
#include <string.h>

#include "kernel/int8_scale.h"
#include "kernel/simd/int8_largest.h"

/* Returns the divisor that gives levels: 1 where all levels are to be zero, as *is_zero_out tells. */
static float divisor_of(float scale, bool *is_zero_out)
{
    *is_zero_out = !(scale > 0);
    return *is_zero_out ? 1 : scale;
}

/* Packs an output whose terms lie side by side. */
static void pack_output(const struct ph__int8_pack_args *args, const struct ph__int8_weight *to, size_t n)
{
    const size_t count = args->in_features;
    const float *from = args->weight + n * count;
    int8_t *levels = to->levels + ph__int8_place(count, n), bytes[VF_WIDTH];
    bool is_zero;
    to->scales[n] = ph__int8_scale(largest_of(count, from));
    const vf divisor = vf_set1(divisor_of(to->scales[n], &is_zero));
    for (size_t k = 0; k < count && !is_zero; k += VF_WIDTH) {
        const size_t left = count - k < VF_WIDTH ? count - k : VF_WIDTH;
        vf_store_signed_bytes(bytes, vf_div(vf_load_mask(from + k, vf_first(left)), divisor));
        for (size_t t = 0; t < left; t += PH_INT8_TOGETHER)
            memcpy(levels + (k + t) * PH_INT8_PANEL, bytes + t, PH_INT8_TOGETHER);
    }
}

/* Packs a vector of outputs that lie side by side, as far as they exist. */
static void pack_vector(const struct ph__int8_pack_args *args, const struct ph__int8_weight *to, size_t n)
{
    const size_t left = args->out_features - n < VF_WIDTH ? args->out_features - n : VF_WIDTH;
    const vmask mask = vf_first(left);
    const float *from = args->weight + n;
    int8_t *levels = to->levels + ph__int8_place(args->in_features, n), bytes[PH_INT8_TOGETHER][VF_WIDTH];
    float scales[VF_WIDTH], divisors[VF_WIDTH];
    bool is_zero[VF_WIDTH];
    vu most = vu_set1(0);
    for (size_t k = 0; k < args->in_features; k++)
        most = vu_more(most, magnitudes(vf_load_mask(from + k * args->out_features, mask)));
    vf_store(scales, finite_or_infinity(most));
    for (size_t j = 0; j < VF_WIDTH; j++) {
        scales[j] = ph__int8_scale(scales[j]);
        divisors[j] = divisor_of(scales[j], &is_zero[j]);
    }
    memcpy(to->scales + n, scales, sizeof scales);
    memset(bytes, 0, sizeof bytes);
    for (size_t k = 0; k < args->in_features; k += PH_INT8_TOGETHER) {
        for (size_t t = 0; t < PH_INT8_TOGETHER; t++) {
            const vf numbers = k + t < args->in_features
                                   ? vf_load_mask(from + (k + t) * args->out_features, mask)
                                   : vf_zero();
            vf_store_signed_bytes(bytes[t], vf_div(numbers, vf_load(divisors)));
        }
        for (size_t j = 0; j < VF_WIDTH; j++)
            for (size_t t = 0; t < PH_INT8_TOGETHER; t++)
                levels[k * PH_INT8_PANEL + j * PH_INT8_TOGETHER + t] = is_zero[j] ? (int8_t)0 : bytes[t][j];
    }
}

void PH_SIMD(int8_pack)(const struct ph__int8_pack_args *args)
{
    const struct ph__int8_weight to = ph__int8_weight(args->out_features, args->in_features, args->packed);
    memset(args->packed, 0, ph__int8_packed_bytes(args->out_features, args->in_features));
    for (size_t n = 0; n < args->out_features; n += args->is_transposed ? VF_WIDTH : 1)
        (args->is_transposed ? pack_vector : pack_output)(args, &to, n);
    ph__int8_sum_levels(args->out_features, args->in_features, &to);
}
