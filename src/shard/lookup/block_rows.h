/* How many vectors the blocks of an exchange have, in the batch that is bound and at most.
 *
 * A block of pooled vectors has `count` rows for each sample. One of items has a row for each item that lies
 * in its stream: both ends know how many from the requests. A rank's *peers* are the ranks that have its
 * place on all hosts, itself too. */
#ifndef PH_SHARD_BLOCK_ROWS_H
#define PH_SHARD_BLOCK_ROWS_H

#include "base/memory/memory.h"
#include "graph/op.h"
#include "shard/sharding.h"

bool ph__is_peer(const struct ph__sharding *sharding, size_t rank);
/* Samples of the peers before `rank`; of rank world_size: of all peers. */
size_t ph__peer_samples_before(const struct ph__sharding *sharding, size_t rank);
/* Those of all peers of any rank, at most, in a global batch of at most num_samples. */
size_t ph__peer_samples_most(const struct ph__sharding *sharding, size_t num_samples);

/* Rows of a block that this rank gets. */
size_t ph__exchange_rows(const struct ph__vector_exchange *exchange, const struct ph__block *block);
/* Whether `rank` gets a block that this rank gives: those of a host go to peers alone. */
bool ph__own_goes_to(const struct ph__vector_exchange *exchange, size_t lookup, size_t rank);
/* Where the rows that `rank` gets of it begin in what this rank has; of rank world_size: its end. */
size_t ph__own_begin(const struct ph__vector_exchange *exchange, size_t lookup, size_t rank);
/* How many those are; 0 where it gets none. */
size_t ph__own_rows(const struct ph__vector_exchange *exchange, size_t lookup, size_t rank);

/* Bytes of this many rows of a block, in that wire format, aligned. */
size_t ph__block_wire_bytes(const struct ph__block *block, enum ph_wire_format wire, size_t rows);

/* A run of rows begins on a line of its own, and its scales where a float may. */
#define PH_RUN_BYTES (PH_ALIGNMENT + sizeof(float))

/* What follows is for the extents of a call: the batch's, or capacities. */

/* Rows of the largest block that this rank gets, times their width. */
size_t ph__block_most_numbers(const struct ph__call *call, const struct ph__vector_exchange *exchange);
/* Bytes of all blocks that this rank gets. */
size_t ph__exchange_most_bytes(
    const struct ph__call *call, const struct ph__vector_exchange *exchange, enum ph_wire_format wire);
/* Rows of what this rank has for an own block. */
size_t ph__own_most_rows(
    const struct ph__call *call, const struct ph__vector_exchange *exchange, size_t lookup);
/* Bytes of what all ranks get of the own lookups; 0 where numbers travel as they are, which need no other
 * place. */
size_t ph__own_most_bytes(
    const struct ph__call *call, const struct ph__vector_exchange *exchange, enum ph_wire_format wire);

#endif
