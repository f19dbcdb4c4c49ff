/* Lists of the neighbours that an aggregation reads: each node's sample, ready for the embedding_bag kernel,
 * whose table is the matrix of the nodes' rows. The list_neighbours kernel lists a block of nodes in the
 * first cache; the block is then pooled at once. The lists are the same on every ISA. */
#ifndef PH_KERNEL_NEIGHBOUR_LIST_H
#define PH_KERNEL_NEIGHBOUR_LIST_H

#include <math.h>
#include <stdbool.h>

#include "base/sizes.h"
#include "phloem/kernel.h"
#include "phloem/tensor.h"

struct ph__neighbours {
    const uint32_t *offsets; /* (num_nodes + 1) of each node's neighbours */
    const int64_t *ids;      /* of the neighbours */
    size_t num_nodes;        /* ids are less */
    const ph_real *weights;  /* of edges; NULL: all are one */
    const ph_real *roots;    /* (num_nodes) 1 / sqrt(d), d at least 1; SYMMETRIC only */
    struct ph_sampling sampling;
    enum ph_normalisation normalisation;
    unsigned bias;
};

/* Memory for a list of some nodes. */
struct ph__neighbour_list {
    uint32_t *offsets; /* (nodes + 1), from 0 */
    uint32_t *slots;   /* (num_slots) the chosen ids */
    size_t
        num_slots; /* as many as the nodes have neighbours, at least; those behind the list are undefined */
    ph_real *weights; /* (num_slots) or NULL, where ph__has_list_weights is false */
    ph_real *scales;  /* (nodes) factor of each node's sum */
};

static inline bool ph__has_list_weights(const struct ph__neighbours *neighbours)
{
    return neighbours->weights != NULL || neighbours->normalisation == PH_NORMALISE_SYMMETRIC;
}

/* Returns the number of neighbours chosen from d. */
static inline size_t ph__sample_size(const struct ph_sampling *sampling, size_t d)
{
    const double rounding = 1e-9; /* .07 of 100 neighbours are 7, although .07 is a bit more as a double */
    if (sampling->strategy != PH_SAMPLING_RATE)
        return sampling->width > 0 ? ph__min(d, sampling->width) : d;
    return ph__min(d, (size_t)fmax(ceil(sampling->rate * (double)d - rounding), 1));
}

/* Returns the factor of a node's sum of c of d neighbours. */
static inline ph_real ph__list_scale(const struct ph__neighbours *neighbours, size_t node, size_t d, size_t c)
{
    if (neighbours->normalisation == PH_NORMALISE_MEAN)
        return d > 0 ? 1 / (ph_real)(c + neighbours->bias) : 0;
    const ph_real share = c < d ? (ph_real)d / (ph_real)c : 1;
    return neighbours->normalisation == PH_NORMALISE_SYMMETRIC ? share * neighbours->roots[node] : share;
}

/* Returns p mod d for the prime p of STRIDE, which does not divide d > 0: else every place would be 0. d has
 * two of the primes at most. */
enum { PH_LEAST_STRIDE = 577, PH_LARGEST_STRIDE = 2579 /* of these primes */ };
uint32_t ph__neighbour_stride(uint32_t seed, size_t d);
/* Writes the places o(s) of the c chosen of d neighbours, where c > 0. */
void ph__place_neighbours(const struct ph_sampling *sampling, size_t d, size_t c, uint32_t *places);

#endif
