/* Lists of the neighbours that an aggregation reads: each node's sample, ready for the embedding_bag kernel,
 * whose table is the matrix of the nodes' rows. Sampling and checking stand here alone, so the lists are the
 * same on every ISA; a block of nodes is listed in the first cache, and pooled at once. */
#ifndef PH_KERNEL_NEIGHBOUR_LIST_H
#define PH_KERNEL_NEIGHBOUR_LIST_H

#include <stdbool.h>

#include "phloem/kernel.h"
#include "phloem/tensor.h"

struct ph__neighbours {
    const uint32_t *offsets; /* (num_nodes + 1) of each node's neighbours */
    const int64_t *ids;      /* of the neighbours */
    size_t num_nodes;        /* ids are less */
    const ph_real *weights;  /* of edges; NULL: all are one */
    const ph_real *roots;    /* (num_nodes) of ph__degree_roots; SYMMETRIC only */
    struct ph_sampling sampling;
    enum ph_normalisation normalisation;
    unsigned bias;
};

struct ph__neighbour_list {
    uint32_t *offsets; /* (nodes + 1), from 0 */
    uint32_t *slots;   /* the chosen ids */
    ph_real *weights;  /* of each slot; NULL where ph__has_list_weights is false */
    ph_real *scales;   /* (nodes) factor of each node's sum */
};

bool ph__has_list_weights(const struct ph__neighbours *neighbours);
/* Returns the number of neighbours chosen from d. */
size_t ph__sample_size(const struct ph_sampling *sampling, size_t d);
/* Lists the chosen neighbours of nodes [first, last). The list has room for as many slots as the nodes have
 * neighbours. Returns false when a chosen id is not a node's: the list is then not to be read. */
bool ph__list_neighbours(const struct ph__neighbours *neighbours, size_t first, size_t last,
    const struct ph__neighbour_list *list);
/* roots_out[i] = 1 / sqrt(d_i) of nodes [first, last); d_i at least 1. */
void ph__degree_roots(const uint32_t *offsets, size_t first, size_t last, ph_real *roots_out);

#endif
