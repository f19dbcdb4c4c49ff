/* Counts the vectors in the blocks of an exchange: in the bound batch, and at most.
 *
 * A block of pooled vectors has `count` rows for each sample. A block of items has a row for each item that
 * lies in its stream: both ends know the number from the requests. A rank's *peers* are the ranks with its
 * place on all hosts, itself included. */
#ifndef PH_SHARD_BLOCK_ROWS_H
#define PH_SHARD_BLOCK_ROWS_H

#include "base/memory/memory.h"
#include "graph/op.h"
#include "shard/sharding.h"

bool ph__is_peer(const struct ph__sharding *sharding, size_t rank);
/* Counts the samples of the peers before `rank`; for rank world_size, of all peers. */
size_t ph__peer_samples_before(const struct ph__sharding *sharding, size_t rank);
/* Bounds the samples of all peers of any rank, in a global batch of at most num_samples. */
size_t ph__peer_samples_most(const struct ph__sharding *sharding, size_t num_samples);

/* Counts the rows of a block that this rank gets. */
size_t ph__exchange_rows(const struct ph__vector_exchange *exchange, const struct ph__block *block);
/* Returns true when `rank` gets an own block: blocks of a host go to peers alone. */
bool ph__own_goes_to(const struct ph__vector_exchange *exchange, size_t lookup, size_t rank);
/* Returns the first row of an own block that `rank` gets; for rank world_size, the number of rows. */
size_t ph__own_begin(const struct ph__vector_exchange *exchange, size_t lookup, size_t rank);
/* Counts the rows of an own block that `rank` gets; 0 where it gets none. */
size_t ph__own_rows(const struct ph__vector_exchange *exchange, size_t lookup, size_t rank);

/* Returns the bytes of `rows` rows of a block in that wire format, aligned. */
size_t ph__block_wire_bytes(const struct ph__block *block, enum ph_wire_format wire, size_t rows);

/* Bytes that align a run of rows to a cache line, and its scales to a float. */
#define PH_RUN_BYTES (PH_ALIGNMENT + sizeof(float))

/* The functions below use the extents of a call: the batch's, or capacities. */

/* Bounds the numbers of the largest block that this rank gets: rows times width. */
size_t ph__block_most_numbers(const struct ph__call *call, const struct ph__vector_exchange *exchange);
/* Bounds the bytes of all blocks that this rank gets. */
size_t ph__exchange_most_bytes(
    const struct ph__call *call, const struct ph__vector_exchange *exchange, enum ph_wire_format wire);
/* Bounds the rows of an own block. */
size_t ph__own_most_rows(
    const struct ph__call *call, const struct ph__vector_exchange *exchange, size_t lookup);
/* Bounds the bytes of the own lookups for all ranks; 0 for fp32, which is sent in place. */
size_t ph__own_most_bytes(
    const struct ph__call *call, const struct ph__vector_exchange *exchange, enum ph_wire_format wire);

#endif
