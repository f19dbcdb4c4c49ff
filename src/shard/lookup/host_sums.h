/* Lookups of tables whose rows are cut over the ranks of one host: their vectors are added up inside that
 * host, so that one sum crosses to each other host, not one partial for each owner.
 *
 *   host_sums_start        each owner's vectors go to the rank of the host that has the place of who asks for
 * them host_sums_wait         the sums of what has come, in the order of ranks: (P, count, width) for each
 * block of the host, P the samples of the ranks that have this one's place on all hosts, its *peers*
 *   host_gradients_start   the mirror: the gradient of a sum goes to all of the host's owners
 *   host_gradients_wait    one lookup's gradient, (G, count, width)
 *
 * What host_sums_wait gives, exchange_vectors_start sends to the peers (vector_exchange.h). All ranks of the
 * host take part, those without rows as well. Both ways numbers travel in the same formats as between hosts.
 * Source: the table-row-wise scheme of Mudigere et al. 2022 (arXiv 2104.05158, section 4.2). */
#ifndef PH_SHARD_HOST_SUMS_H
#define PH_SHARD_HOST_SUMS_H

#include "op/operator.h"
#include "shard/sharding.h"

extern const struct ph__op ph__op_host_sums_start;
extern const struct ph__op ph__op_host_sums_wait;

/* Of a block's vectors, those that some rank of this host has rows of. */
struct ph__host_partial {
    uint32_t rank;
    uint32_t block; /* of the host's */
    uint32_t count;
    const uint32_t *pieces; /* (count) of the block, in the order of the owner's lookup */
};

/* The host's blocks, whose first partial has all of their pieces, in their order. The first own_count
 * partials from own_first on are this rank's, each made by one local lookup. */
struct ph__host_sums {
    const struct ph__vector_exchange *exchange;
    uint32_t channel; /* of vectors; the next is that of gradients */
    const char *what, *what_gradient;
    const struct ph__block *blocks; /* of the exchange: some of those that this rank gives */
    size_t num_blocks;
    const struct ph__host_partial *partials; /* by rank and then by block */
    size_t num_partials, own_first, own_count;
    ph_value in_flight; /* what its lookups give, on its way */
};

/* Attributes of all four. */
struct ph__host_attributes {
    const struct ph__host_sums *sums;
    size_t partial; /* of host_gradients_wait: which of this rank's */
};

static inline const struct ph__host_sums *ph__host_sums_of(const struct ph__call *call)
{
    return ((const struct ph__host_attributes *)call->attributes)->sums;
}

static inline const struct ph__sharding *ph__host_sharding(const struct ph__call *call)
{
    return ph__host_sums_of(call)->exchange->sharding;
}

/* start: inputs are the own lookups. wait: the outputs of start and then its inputs, which stay until then.
 * Start's: */
enum { PH_HOST_IN_FLIGHT, PH_HOST_TICKET, PH_HOST_SENT, PH_HOST_OUTPUTS };

/* For the gradient rules: starts the way back of dy (num_blocks), the sums' gradients, and returns the
 * gradient of what was in flight; and, of that, adds the wait for one own lookup's gradient, which on a rank
 * without lookups is a wait alone. */
ph_value ph__host_gradient_start(
    struct ph_builder *builder, const struct ph__host_attributes *attributes, const ph_value *dy);
ph_value ph__host_gradient_wait(
    struct ph_builder *builder, const struct ph__host_attributes *attributes, ph_value sent);

/* The rank of this host that has the place of `rank`. */
size_t ph__host_rank_for(const struct ph__sharding *sharding, size_t rank);
/* Rows of a partial sum, in the batch that is bound, for the samples of one rank. */
size_t ph__host_partial_rows(
    const struct ph__host_sums *sums, const struct ph__host_partial *partial, size_t sample_rank);
/* Bytes of what all partials have for this rank's peers, at most, for the extents of the call. */
size_t ph__host_most_bytes(
    const struct ph__call *call, const struct ph__host_sums *sums, enum ph_wire_format wire);
/* Bytes of what this rank's partials are for all samples, at most; 0 where numbers travel as they are. */
size_t ph__host_own_most_bytes(
    const struct ph__call *call, const struct ph__host_sums *sums, enum ph_wire_format wire);
/* Numbers of the largest partial for `num_samples` samples. */
size_t ph__host_partial_most_numbers(const struct ph__host_sums *sums, size_t num_samples);

#endif
