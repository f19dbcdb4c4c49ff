/* Balance of a model's chunks over servers and their core threads, under a given partition; and a partition
 * that is wrong. */
#ifndef PH_BENCH_CHUNK_BALANCE_H
#define PH_BENCH_CHUNK_BALANCE_H

#include <stddef.h>
#include <stdint.h>

#include "model_shapes.h"
#include "phloem/status.h"

/* A partition, like ph__partition. */
typedef ph_status (*partition_function)(
    size_t num_items, const size_t *sizes, size_t num_bins, uint32_t *bins_out, size_t *loads_out);

/* Partitions wrongly, so that a benchmark can tell the right partition from it: takes the items largest
 * first, but adds to the load of the i-th largest item's bin the size of the i-th item as given. Public code
 * of the Parameter Hub does so. */
ph_status unsorted_greedy(
    size_t num_items, const size_t *sizes, size_t num_bins, uint32_t *bins_out, size_t *loads_out);

/* Lists the bytes of the model's chunks in fp32, in the layout's order; the caller frees *sizes_out. */
ph_status chunk_sizes(
    const struct model_shapes *shapes, size_t chunk_bytes, size_t **sizes_out, size_t *num_chunks_out);

/* Chunks a core, on average, from which the balance must be 1.02 or better: the largest load exceeds the mean
 * by about a chunk (spread.h), so with fewer chunks nothing could promise that. */
enum { BALANCE_CHUNKS_PER_CORE = 50 };

struct chunk_balance {
    double servers, cores;  /* largest load over the mean: servers, and cores of all servers */
    double chunks_per_core; /* mean load of a core over the largest chunk */
};

/* Balances chunks over servers, then those of each server over its cores. */
ph_status chunk_balance(const size_t *sizes, size_t num_chunks, size_t num_servers, size_t cores_per_server,
    partition_function partition, struct chunk_balance *balance_out);

#endif
