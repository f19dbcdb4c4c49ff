/* Pooled embedding lookup, the specification. */
#include "kernel/kernel_list.h"

#include <string.h>

static void pool_bag(const struct ph_embedding_bag_args *args, size_t bag, ph_real *out)
{
    const size_t dim = args->dim;
    const size_t first = args->offsets[bag];
    const size_t last = args->offsets[bag + 1];

    memset(out, 0, dim * sizeof *out);
    for (size_t j = first; j < last; j++) {
        const ph_real *row = args->table + (size_t)args->slots[j] * dim;
        const ph_real weight = args->weights != NULL ? args->weights[j] : 1;
        for (size_t d = 0; d < dim; d++)
            out[d] += weight * row[d];
    }
    if (args->is_mean && last > first) {
        const ph_real scale = 1 / (ph_real)(last - first);
        for (size_t d = 0; d < dim; d++)
            out[d] *= scale;
    }
}

/* out_i = scale_i sum_j w_j table[slot_j] */
void ph__embedding_bag_ref(const struct ph_embedding_bag_args *args)
{
    for (size_t s = 0; s < args->num_samples; s++)
        for (size_t f = 0; f < args->num_features; f++)
            pool_bag(args, f * args->feature_stride + s, args->out + s * args->out_stride + f * args->dim);
}
