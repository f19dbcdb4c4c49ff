/* How evenly a model's chunks are spread over servers and their core threads by a way to partition, and one
 * that does it wrong. */
#ifndef PH_BENCH_CHUNK_BALANCE_H
#define PH_BENCH_CHUNK_BALANCE_H

#include <stddef.h>
#include <stdint.h>

#include "model_shapes.h"
#include "phloem/status.h"

/* As ph__partition. */
typedef ph_status (*partition_function)(
    size_t num_items, const size_t *sizes, size_t num_bins, uint32_t *bins_out, size_t *loads_out);

/* A wrong one, to be told from the right one: it takes the items largest first, but adds to the load of the
 * bin that it puts the i-th largest into the size of the i-th item as they were given. Public code of the
 * Parameter Hub does so. */
ph_status unsorted_greedy(
    size_t num_items, const size_t *sizes, size_t num_bins, uint32_t *bins_out, size_t *loads_out);

/* Bytes of the model's chunks in fp32, in the layout's order; *sizes_out is the caller's to free. */
ph_status chunk_sizes(
    const struct model_shapes *shapes, size_t chunk_bytes, size_t **sizes_out, size_t *num_chunks_out);

/* Where a core has so many chunks' worth on average, the balance is held to 1.02: the largest load exceeds
 * the mean by about a chunk (spread.h), so that with fewer of them nothing could promise that. */
enum { BALANCE_CHUNKS_PER_CORE = 50 };

struct chunk_balance {
    double servers, cores;  /* the largest load over the mean: of the servers, of all servers' cores */
    double chunks_per_core; /* the mean load of a core over the largest chunk */
};

/* Chunks go to servers, then those of each server to its cores. */
ph_status chunk_balance(const size_t *sizes, size_t num_chunks, size_t num_servers, size_t cores_per_server,
    partition_function partition, struct chunk_balance *balance_out);

#endif
