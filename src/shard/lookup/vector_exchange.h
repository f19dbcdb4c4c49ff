/* Operators of a lookup that is spread over ranks.
 *
 *   exchange_vectors_start     sends the vectors that this rank's shards have for the global batch to the
 *                              ranks of the samples
 *   exchange_vectors_wait      assembles the received vectors: (B,F,D), as a lookup of the whole table does
 *   exchange_gradients_start   the mirror: each rank's gradient goes to the ranks whose shards made the
 * vectors exchange_gradients_wait    one lookup's gradient, (G, count, width)
 *
 * A lookup item by item uses the same operators, except for exchange_items_wait (item_exchange.h) in place of
 * exchange_vectors_wait; requests then count the rows that ranks have for each other (block_rows.h).
 *
 * Start and wait are two nodes joined by a ticket, a host scalar: the nodes between them compute meanwhile.
 * Both have effects: a rank without shards takes part as well. Blocks whose rows are cut are added in the
 * order of the ranks; where bags are pooled to means, cut rows travel as sums, which the asking rank divides.
 */
#ifndef PH_SHARD_VECTOR_EXCHANGE_H
#define PH_SHARD_VECTOR_EXCHANGE_H

#include "op/operator.h"
#include "shard/sharding.h"

extern const struct ph__op ph__op_exchange_vectors_start;
extern const struct ph__op ph__op_exchange_vectors_wait;
extern const struct ph__op ph__op_exchange_gradients_start;
extern const struct ph__op ph__op_replicated_gradient;

/* Attributes of all these operators. */
struct ph__exchange_attributes {
    struct ph__vector_exchange *exchange;
    size_t lookup; /* exchange_gradients_wait: index among this rank's blocks */
};

static inline const struct ph__vector_exchange *ph__exchange_of(const struct ph__call *call)
{
    return ((const struct ph__exchange_attributes *)call->attributes)->exchange;
}

/* start: inputs are the own lookups, (G, count, width) each, or of items, (R, width). Outputs: */
enum { PH_EXCHANGE_IN_FLIGHT, PH_EXCHANGE_TICKET, PH_EXCHANGE_SENT, PH_EXCHANGE_OUTPUTS };
/* wait: inputs are start's outputs, then: */
enum {
    PH_EXCHANGE_IDS = PH_EXCHANGE_OUTPUTS, /* the batch's own, for means and items; 0: not needed */
    PH_EXCHANGE_REPLICAS,                  /* (B, features, D) of tables that every rank has; 0: none */
    PH_EXCHANGE_LOOKUPS                    /* start's inputs, which stay until then */
};

/* Serve the gradient rules. ph__gradient_start starts the way back of dy, and returns the gradient of the
 * value that was in flight. ph__gradient_wait takes that gradient and adds the wait for one own lookup's; on
 * a rank without lookups it only waits. */
ph_value ph__gradient_start(
    struct ph_builder *builder, const struct ph__exchange_attributes *attributes, ph_value dy, ph_value ids);
ph_value ph__gradient_wait(
    struct ph_builder *builder, const struct ph__exchange_attributes *attributes, ph_value sent);

/* Returns where a block that this rank gives to itself lies among its lookups (own_count): it is not copied
 * before it is assembled. NULL: the block is another rank's, or has the wire format. */
const ph_real *ph__own_vectors(
    const struct ph__vector_exchange *exchange, size_t block, const struct ph__operand *lookups);

/* Returns 1 / the length of a sample's bag of the batch's own ids; 0 for an empty bag. */
ph_real ph__mean_factor(const struct ph__operand *ids, size_t num_samples, size_t sample, size_t feature);

#endif
