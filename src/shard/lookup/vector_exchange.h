/* The operators of a lookup that is spread over ranks.
 *
 *   exchange_vectors_start   the vectors that this rank's shards have for the global batch go to whose
 * samples they are exchange_vectors_wait    what has come is put together: (B,F,D), as the lookup of the
 * whole table gives it exchange_gradients_start the mirror: each rank's gradient goes to whose shards made
 * the vectors exchange_gradients_wait  one lookup's gradient, (G, count, width)
 *
 * A lookup item by item has the same, but that exchange_items_wait (item_exchange.h) stands for
 * exchange_vectors_wait, and that the rows which ranks have for each other are counted by the requests
 * (block_rows.h).
 *
 * Start and wait are two nodes joined by a ticket, a host scalar, so that what stands between them computes
 * meanwhile. Both have effects: a rank without shards takes part as well. Blocks whose rows are cut are added
 * in the order of the ranks; where bags are pooled to means, cut rows travel as sums and the one who asks
 * divides. */
#ifndef PH_SHARD_VECTOR_EXCHANGE_H
#define PH_SHARD_VECTOR_EXCHANGE_H

#include "op/operator.h"
#include "shard/sharding.h"

extern const struct ph__op ph__op_exchange_vectors_start;
extern const struct ph__op ph__op_exchange_vectors_wait;
extern const struct ph__op ph__op_exchange_gradients_start;
extern const struct ph__op ph__op_replicated_gradient;

/* All have a pointer to their exchange as attributes. */
struct ph__exchange_attributes {
    struct ph__vector_exchange *exchange;
    size_t lookup; /* of exchange_gradients_wait: which of this rank's blocks */
};

static inline const struct ph__vector_exchange *ph__exchange_of(const struct ph__call *call)
{
    return ((const struct ph__exchange_attributes *)call->attributes)->exchange;
}

/* start: inputs are the own lookups, (G, count, width) each, or the own lookup of items, (R, width). Outputs:
 */
enum { PH_EXCHANGE_IN_FLIGHT, PH_EXCHANGE_TICKET, PH_EXCHANGE_SENT, PH_EXCHANGE_OUTPUTS };
/* wait: the outputs of start, then: */
enum {
    PH_EXCHANGE_IDS = PH_EXCHANGE_OUTPUTS, /* the batch's own, for means and items; 0: no block wants them */
    PH_EXCHANGE_REPLICAS,                  /* (B, features, D) of tables that every rank has; 0: none */
    PH_EXCHANGE_LOOKUPS                    /* start's inputs, which stay until then */
};

/* For the gradient rules: starts the way back of dy, whose first output is the gradient of what was in
 * flight; and, of that, adds the wait for one own lookup's gradient, which on a rank without lookups is a
 * wait alone. */
ph_value ph__gradient_start(
    struct ph_builder *builder, const struct ph__exchange_attributes *attributes, ph_value dy, ph_value ids);
ph_value ph__gradient_wait(
    struct ph_builder *builder, const struct ph__exchange_attributes *attributes, ph_value sent);

/* Where a block that this rank gives to itself stands as it is, among its lookups (own_count): of what stays
 * here nothing is copied before it is put together. NULL: the block is another rank's, or has the wire
 * format. */
const ph_real *ph__own_vectors(
    const struct ph__vector_exchange *exchange, size_t block, const struct ph__operand *lookups);

/* 1 / the length of a sample's bag of the batch's own ids; of an empty one 0. */
ph_real ph__mean_factor(const struct ph__operand *ids, size_t num_samples, size_t sample, size_t feature);

#endif
