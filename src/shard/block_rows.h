/* How many vectors the blocks of an exchange have, in the batch that is bound and at most.
 *
 * A block of pooled vectors has `count` rows for each sample. One of items has a row for each item that lies in its stream:
 * both ends know how many from the requests. */
#ifndef PH_SHARD_BLOCK_ROWS_H
#define PH_SHARD_BLOCK_ROWS_H

#include "graph/op.h"
#include "shard/sharding.h"

/* Rows of a block that this rank gets. */
size_t ph__exchange_rows(const struct ph_vector_exchange *exchange, const struct ph_block *block);
/* Where the rows that `rank` gets of an own lookup begin in it; of rank world_size: its end. */
size_t ph__own_begin(const struct ph_vector_exchange *exchange, size_t lookup, size_t rank);
/* How many those are. */
size_t ph__own_rows(const struct ph_vector_exchange *exchange, size_t lookup, size_t rank);

/* Bytes of this many rows of a block, in that wire format, aligned. */
size_t ph__block_wire_bytes(const struct ph_block *block, enum ph_wire wire, size_t rows);

/* What follows is for the extents of a call: the batch's, or capacities. */

/* Rows of the largest block that this rank gets, times their width. */
size_t ph__block_most_numbers(const struct ph_call *call, const struct ph_vector_exchange *exchange);
/* Bytes of all blocks that this rank gets. */
size_t ph__exchange_most_bytes(
    const struct ph_call *call, const struct ph_vector_exchange *exchange, enum ph_wire wire);
/* Bytes of what all ranks get of the own lookups; 0 where numbers travel as they are, which need no other place. */
size_t ph__own_most_bytes(
    const struct ph_call *call, const struct ph_vector_exchange *exchange, enum ph_wire wire);

#endif
