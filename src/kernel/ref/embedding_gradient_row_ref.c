/* The gradient row of one merged slot, the specification. */
#include "kernel/kernel_list.h"

#include <string.h>

/* row = sum_e c_e grad[bag_e],  c_e = w_e / length(bag_e) */
void ph__embedding_gradient_row_ref(
    const struct ph_embedding_gradient_source *source, size_t first, size_t last, ph_real *row_out)
{
    memset(row_out, 0, source->dim * sizeof *row_out);
    for (size_t e = first; e < last; e++) {
        const size_t position = source->order[e];
        const size_t bag = source->bags[position];
        const ph_real *grad = source->grad + bag % source->num_samples * source->sample_stride +
                              bag / source->num_samples * source->feature_stride;
        ph_real coefficient = source->weights != NULL ? source->weights[position] : 1;
        if (source->lengths != NULL)
            coefficient *= 1 / (ph_real)source->lengths[bag];
        for (size_t d = 0; d < source->dim; d++)
            row_out[d] += coefficient * grad[d];
    }
}
