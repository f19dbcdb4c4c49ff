/* Lookups item by item, spread over ranks: assembles the vector of each item of one feature's bags, (I, dim),
 * from the blocks that ranks have for them.
 *
 * Where rows are cut, an item's columns come from the one rank whose rows hold its id: row k of a block is
 * for the k-th of this rank's items there. Requests list ids in the order of the items, so both ends know
 * which item a row is for. Nothing is summed: forward, each number is the one that a lookup of the whole
 * table gives. */
#ifndef PH_SHARD_ITEM_EXCHANGE_H
#define PH_SHARD_ITEM_EXCHANGE_H

#include "shard/lookup/vector_exchange.h"

/* exchange_vectors_wait for items: the same inputs, with the feature's bags as ids. */
extern const struct ph__op ph__op_exchange_items_wait;

/* Rows of each block that the items of a chunk have. */
struct ph__item_places {
    const struct ph__vector_exchange *exchange;
    const int64_t *ids; /* (num_items) */
    size_t num_items;
    uint32_t *begins; /* (chunks + 1, num_blocks): the chunk's first row in the block */
};

/* Returns the bytes of begins, aligned. */
size_t ph__item_places_bytes(const struct ph__vector_exchange *exchange, size_t num_items);
/* begins: as many bytes; borrowed, like the bags, while the places are used. */
void ph__find_item_places(const struct ph_backend *backend, const struct ph__vector_exchange *exchange,
    const struct ph__operand *bags, void *begins, struct ph__item_places *places_out);

/* Cuts dy (I, dim) into vectors_out (rows, width), the gradient of the rows of block number `block`. */
void ph__cut_items(const struct ph_backend *backend, const struct ph__item_places *places, size_t block,
    const ph_real *dy, ph_real *vectors_out);

#endif
