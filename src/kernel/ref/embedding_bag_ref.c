/* Pooled embedding lookup, the specification. */
#include "kernel/kernel_list.h"

#include <string.h>

#include "tensor/float16.h"
#include "tensor/row_format.h"

static float joined_number(const unsigned char *row, size_t d, uint16_t low)
{
    uint16_t high;
    memcpy(&high, row + d * sizeof high, sizeof high);
    return ph__join_float(high, low);
}

/* out += weight * the row of this slot */
static void add_row(const struct ph__embedding_bag_args *args, uint32_t slot, ph_real weight, ph_real *out)
{
    const size_t dim = args->dim;
    if (args->format == PH_ROWS_FP32) {
        const ph_real *row = (const ph_real *)args->table + (size_t)slot * dim;
        for (size_t d = 0; d < dim; d++)
            out[d] += weight * row[d];
        return;
    }
    const unsigned char *row =
        (const unsigned char *)args->table + (size_t)slot * ph__row_bytes(args->format, dim);
    for (size_t d = 0; d < dim; d++)
        out[d] +=
            weight * (args->low != NULL ? (ph_real)joined_number(row, d, args->low[(size_t)slot * dim + d])
                                        : ph__row_number(args->format, dim, row, d));
}

static void pool_bag(const struct ph__embedding_bag_args *args, size_t bag, size_t sample, ph_real *out)
{
    const size_t dim = args->dim;
    const size_t first = args->offsets[bag];
    const size_t last = args->offsets[bag + 1];

    memset(out, 0, dim * sizeof *out);
    for (size_t j = first; j < last; j++)
        add_row(args, args->slots[j], args->weights != NULL ? args->weights[j] : 1, out);
    if (args->scales != NULL || (args->is_mean && last > first)) {
        const ph_real scale = args->scales != NULL ? args->scales[sample] : 1 / (ph_real)(last - first);
        for (size_t d = 0; d < dim; d++)
            out[d] *= scale;
    }
}

/* out_i = scale_i sum_j w_j table[slot_j] */
void ph__embedding_bag_ref(const struct ph__embedding_bag_args *args)
{
    for (size_t s = 0; s < args->num_samples; s++)
        for (size_t f = 0; f < args->num_features; f++)
            pool_bag(args, f * args->feature_stride + s, s, args->out + s * args->out_stride + f * args->dim);
}
