/* Lists of chosen neighbours, the specification. */
#include "kernel/kernel_list.h"
#include "kernel/neighbour_list.h"

/* Turns the places of a node's chosen neighbours into their ids and weights; returns false for an id that is
 * not a node's. */
static bool look_up(
    const struct ph__neighbours *neighbours, size_t begin, size_t count, uint32_t *slots, ph_real *weights)
{
    for (size_t s = 0; s < count; s++) {
        const size_t item = begin + slots[s];
        if ((uint64_t)neighbours->ids[item] >= neighbours->num_nodes)
            return false;
        slots[s] = (uint32_t)neighbours->ids[item];
        if (weights == NULL)
            continue;
        weights[s] = neighbours->weights != NULL ? neighbours->weights[item] : 1;
        if (neighbours->normalisation == PH_NORMALISE_SYMMETRIC)
            weights[s] *= neighbours->roots[slots[s]];
    }
    return true;
}

bool ph__list_neighbours_ref(
    const struct ph__neighbours *neighbours, size_t first, size_t last, const struct ph__neighbour_list *list)
{
    size_t used = 0;
    for (size_t node = first; node < last; node++) {
        const size_t begin = neighbours->offsets[node], d = neighbours->offsets[node + 1] - begin;
        const size_t c = ph__sample_size(&neighbours->sampling, d);
        list->offsets[node - first] = (uint32_t)used;
        list->scales[node - first] = ph__list_scale(neighbours, node, d, c);
        if (c > 0)
            ph__place_neighbours(&neighbours->sampling, d, c, list->slots + used);
        if (!look_up(neighbours, begin, c, list->slots + used,
                list->weights != NULL ? list->weights + used : NULL))
            return false;
        used += c;
    }
    list->offsets[last - first] = (uint32_t)used;
    return true;
}
