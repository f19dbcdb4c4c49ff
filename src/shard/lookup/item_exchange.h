/* Lookups item by item, spread over ranks: the vector of each item of one feature's bags, (I, dim), out of
 * the blocks that ranks have for them.
 *
 * Of rows that are cut an item's columns come from the one rank in whose rows its id lies: row k of a block
 * is the k-th of this rank's items there. Requests list ids in the order of the items, so that both ends know
 * which one it is. Nothing is summed: forward, each number is the one that a lookup of the whole table gives.
 */
#ifndef PH_SHARD_ITEM_EXCHANGE_H
#define PH_SHARD_ITEM_EXCHANGE_H

#include "shard/lookup/vector_exchange.h"

/* exchange_vectors_wait of items: its inputs, whose ids are the feature's bags. */
extern const struct ph__op ph__op_exchange_items_wait;

/* Which rows of each block the items of a chunk have. */
struct ph__item_places {
    const struct ph__vector_exchange *exchange;
    const int64_t *ids; /* (num_items) */
    size_t num_items;
    uint32_t *begins; /* (chunks + 1, num_blocks): the chunk's first row of the block */
};

/* Bytes of begins, aligned. */
size_t ph__item_places_bytes(const struct ph__vector_exchange *exchange, size_t num_items);
/* begins: that many bytes, borrowed with the bags while places are used. */
void ph__find_item_places(const struct ph_backend *backend, const struct ph__vector_exchange *exchange,
    const struct ph__operand *bags, void *begins, struct ph__item_places *places_out);

/* dy (I, dim): vectors_out becomes what belongs to the rows of block number `block`, (rows, width). */
void ph__cut_items(const struct ph_backend *backend, const struct ph__item_places *places, size_t block,
    const ph_real *dy, ph_real *vectors_out);

#endif
