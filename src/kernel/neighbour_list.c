/* The sampling rules of phloem/kernel.h, node by node. A rule writes the places o(s) of the chosen neighbours
 * where their ids will stand. */
#include "kernel/neighbour_list.h"

#include <math.h>

#include "base/sizes.h"

bool ph__has_list_weights(const struct ph__neighbours *neighbours)
{
    return neighbours->weights != NULL || neighbours->normalisation == PH_NORMALISE_SYMMETRIC;
}

size_t ph__sample_size(const struct ph_sampling *sampling, size_t d)
{
    enum { ROUNDING = 1000000000 }; /* a share of .07 of 100 neighbours is 7, although .07 is a bit more */
    if (sampling->strategy != PH_SAMPLING_RATE)
        return sampling->width > 0 ? ph__min(d, sampling->width) : d;
    const double share = ceil(sampling->rate * (double)d - 1.0 / ROUNDING);
    return ph__min(d, (size_t)fmax(share, 1));
}

/* ---- places of c < d neighbours ---- */

/* Returns p mod d, where p does not divide d: else every place would be 0. d has two of the primes at
 * most. */
static size_t stride_of(uint32_t seed, size_t d)
{
    static const uint32_t primes[] = {577, 769, 983, 1193, 1429, 1619, 1871, 2089, 2339, 2579};
    enum { NUM_PRIMES = sizeof primes / sizeof *primes };
    size_t i = seed % NUM_PRIMES;
    while (d % primes[i] == 0)
        i = (i + 1) % NUM_PRIMES;
    return primes[i] % d;
}

static void place_by_stride(uint32_t seed, size_t d, size_t c, uint32_t *places)
{
    const size_t stride = stride_of(seed, d);
    size_t at = 0;
    for (size_t s = 0; s < c; s++) {
        places[s] = (uint32_t)at;
        at += stride;
        at -= at >= d ? d : 0;
    }
}

static void place_by_residue(uint32_t seed, size_t d, size_t c, uint32_t *places)
{
    enum { PRIME = 21767 };
    const uint32_t offset = seed % PRIME;
    for (size_t s = 0; s < c; s++) {
        const uint32_t root = (uint32_t)(s % PRIME), q = (root * root + offset) % PRIME;
        places[s] = (s <= PRIME / 2 ? q : PRIME - q) % (uint32_t)d;
    }
}

static void place_by_runs(size_t d, size_t c, uint32_t *places)
{
    const size_t ratio = ph__divide_up(d, c);
    const size_t num_runs = ph__min(c, ratio <= 2 ? 4 : ratio <= 36 ? 8 : ratio <= 54 ? 16 : 32);
    for (size_t run = 0, s = 0; run < num_runs; run++) {
        const size_t length = c / num_runs + (run < c % num_runs);
        const size_t start = 1429 * run % (d - length + 1);
        for (size_t i = 0; i < length; i++)
            places[s++] = (uint32_t)(start + i);
    }
}

static void place_evenly(size_t d, size_t c, uint32_t *places)
{
    const size_t step = d / c, rest = d % c;
    for (size_t s = 0, at = 0, carry = 0; s < c; s++) {
        places[s] = (uint32_t)at;
        carry += rest;
        at += step + (carry >= c);
        carry -= carry >= c ? c : 0;
    }
}

static void place_first(size_t c, uint32_t *places)
{
    for (size_t s = 0; s < c; s++)
        places[s] = (uint32_t)s;
}

static void place(const struct ph_sampling *sampling, size_t d, size_t c, uint32_t *places)
{
    switch (c < d ? sampling->strategy : PH_SAMPLING_BUCKET) {
    case PH_SAMPLING_BUCKET:
        place_first(c, places);
        break;
    case PH_SAMPLING_STRIDE:
    case PH_SAMPLING_RATE:
        place_by_stride(sampling->seed, d, c, places);
        break;
    case PH_SAMPLING_RESIDUE:
        place_by_residue(sampling->seed, d, c, places);
        break;
    case PH_SAMPLING_AES:
        place_by_runs(d, c, places);
        break;
    case PH_SAMPLING_EVEN:
        place_evenly(d, c, places);
        break;
    }
}

/* ---- lists ---- */

static ph_real scale_of(const struct ph__neighbours *neighbours, size_t node, size_t d, size_t c)
{
    if (neighbours->normalisation == PH_NORMALISE_MEAN)
        return d > 0 ? 1 / (ph_real)(c + neighbours->bias) : 0;
    const ph_real share = c < d ? (ph_real)d / (ph_real)c : 1;
    return neighbours->normalisation == PH_NORMALISE_SYMMETRIC ? share * neighbours->roots[node] : share;
}

/* Turns places into ids, where they stand; returns the largest id, which is huge for a negative one. */
static uint64_t look_up(const int64_t *ids, size_t count, uint32_t *slots)
{
    uint64_t largest = 0;
    for (size_t s = 0; s < count; s++) {
        const uint64_t id = (uint64_t)ids[slots[s]];
        largest = id > largest ? id : largest;
        slots[s] = (uint32_t)id;
    }
    return largest;
}

static uint64_t copy_ids(const int64_t *ids, size_t count, uint32_t *slots)
{
    uint64_t largest = 0;
    for (size_t s = 0; s < count; s++) {
        const uint64_t id = (uint64_t)ids[s];
        largest = id > largest ? id : largest;
        slots[s] = (uint32_t)id;
    }
    return largest;
}

static void look_up_weights(const ph_real *weights, size_t count, const uint32_t *places, ph_real *out)
{
    for (size_t s = 0; s < count; s++)
        out[s] = weights != NULL ? weights[places[s]] : 1;
}

static void multiply_by_roots(const ph_real *roots, size_t count, const uint32_t *slots, ph_real *weights)
{
    for (size_t s = 0; s < count; s++)
        weights[s] *= roots[slots[s]];
}

/* Lists c of the d neighbours from `begin` on; returns false when one is not a node. weights may be NULL. */
static bool list_node(const struct ph__neighbours *neighbours, size_t begin, size_t d, size_t c,
    uint32_t *slots, ph_real *weights)
{
    const bool is_copy = weights == NULL && (c == d || neighbours->sampling.strategy == PH_SAMPLING_BUCKET);
    if (c == 0)
        return true;
    if (is_copy)
        return copy_ids(neighbours->ids + begin, c, slots) < neighbours->num_nodes;
    place(&neighbours->sampling, d, c, slots);
    if (weights != NULL)
        look_up_weights(neighbours->weights != NULL ? neighbours->weights + begin : NULL, c, slots, weights);
    if (look_up(neighbours->ids + begin, c, slots) >= neighbours->num_nodes)
        return false;
    if (neighbours->normalisation == PH_NORMALISE_SYMMETRIC)
        multiply_by_roots(neighbours->roots, c, slots, weights);
    return true;
}

bool ph__list_neighbours(
    const struct ph__neighbours *neighbours, size_t first, size_t last, const struct ph__neighbour_list *list)
{
    bool are_nodes = true;
    size_t used = 0;
    for (size_t node = first; node < last; node++) {
        const size_t begin = neighbours->offsets[node], d = neighbours->offsets[node + 1] - begin;
        const size_t c = ph__sample_size(&neighbours->sampling, d);
        list->offsets[node - first] = (uint32_t)used;
        list->scales[node - first] = scale_of(neighbours, node, d, c);
        are_nodes &= list_node(
            neighbours, begin, d, c, list->slots + used, list->weights != NULL ? list->weights + used : NULL);
        used += c;
    }
    list->offsets[last - first] = (uint32_t)used;
    return are_nodes;
}

void ph__degree_roots(const uint32_t *offsets, size_t first, size_t last, ph_real *roots_out)
{
    for (size_t node = first; node < last; node++)
        roots_out[node] = (ph_real)(1 / sqrt((double)ph__max(1, offsets[node + 1] - offsets[node])));
}
