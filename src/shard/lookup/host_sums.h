/* Lookups of tables whose rows are cut over the ranks of one host: the host adds up their vectors, so that
 * one sum crosses to each other host, not one partial for each owner.
 *
 *   host_sums_start        each owner's vectors for a rank's samples go to the rank of this host that has
 *                          that rank's place
 *   host_sums_wait         adds up the partials in the order of ranks: (P, count, width) for each block of
 *                          the host, P the samples of this rank's *peers*, which have its place on all hosts
 *   host_gradients_start   the mirror: the gradient of a sum goes to all of the host's owners
 *   host_gradients_wait    one lookup's gradient, (G, count, width)
 *
 * exchange_vectors_start sends the sums of host_sums_wait to the peers (vector_exchange.h). All ranks of the
 * host take part, also those without rows. Both ways numbers travel in the same formats as between hosts.
 * Source: the table-row-wise scheme of Mudigere et al. 2022 (arXiv 2104.05158, section 4.2). */
#ifndef PH_SHARD_HOST_SUMS_H
#define PH_SHARD_HOST_SUMS_H

#include "op/operator.h"
#include "shard/sharding.h"

extern const struct ph__op ph__op_host_sums_start;
extern const struct ph__op ph__op_host_sums_wait;
extern const struct ph__op ph__op_host_gradients_start;

/* The vectors of a block of which some rank of this host has rows. */
struct ph__host_partial {
    uint32_t rank;
    uint32_t block; /* index among the host's blocks */
    uint32_t count;
    const uint32_t *pieces; /* (count) indices into the block's pieces, in the order of the owner's lookup */
    const bool *is_added;   /* (count) an earlier partial has the piece too: rows are cut */
    bool sets_all;          /* it has all of the block's pieces, in their order, and is the first that has */
};

/* The host's blocks: of the exchange's own ones, or the input of a tower's layers (tower/tower_pass.h). The
 * own_count partials from own_first on are this rank's, each made by one local lookup. */
struct ph__host_sums {
    const struct ph__vector_exchange *exchange;
    uint32_t channel; /* for vectors; the next channel is for gradients */
    const char *what, *what_gradient;
    const struct ph__block *blocks;
    size_t num_blocks;
    struct ph__host_partial *partials; /* by rank and then by block */
    size_t num_partials, own_first, own_count;
    ph_value in_flight; /* own lookups' vectors */
};

/* Attributes of all four operators. */
struct ph__host_attributes {
    const struct ph__host_sums *sums;
    size_t partial; /* host_gradients_wait: index among this rank's partials */
};

static inline const struct ph__host_sums *ph__host_sums_of(const struct ph__call *call)
{
    return ((const struct ph__host_attributes *)call->attributes)->sums;
}

static inline const struct ph__sharding *ph__host_sharding(const struct ph__call *call)
{
    return ph__host_sums_of(call)->exchange->sharding;
}

/* start: inputs are the own lookups. wait: inputs are start's outputs and then start's inputs, which stay
 * until then. Start's outputs: */
enum { PH_HOST_IN_FLIGHT, PH_HOST_TICKET, PH_HOST_SENT, PH_HOST_OUTPUTS };

/* Serve the gradient rules. ph__host_gradient_start starts the way back of dy (num_blocks), the sums'
 * gradients, and returns the gradient of the value that was in flight. ph__host_gradient_wait takes that
 * gradient and adds the wait for one own lookup's; on a rank without lookups it only waits. */
ph_value ph__host_gradient_start(
    struct ph_builder *builder, const struct ph__host_attributes *attributes, const ph_value *dy);
ph_value ph__host_gradient_wait(
    struct ph_builder *builder, const struct ph__host_attributes *attributes, ph_value sent);

/* Returns the rank of this host that has the place of `rank`. */
size_t ph__host_rank_for(const struct ph__sharding *sharding, size_t rank);
/* Counts the rows of a partial sum, in the bound batch, for the samples of one rank. */
size_t ph__host_partial_rows(
    const struct ph__host_sums *sums, const struct ph__host_partial *partial, size_t sample_rank);
/* Bounds the bytes of all partials for this rank's peers, for the extents of the call. */
size_t ph__host_most_bytes(
    const struct ph__call *call, const struct ph__host_sums *sums, enum ph_wire_format wire);
/* Bounds the bytes of this rank's partials for all samples; 0 for fp32, which is sent in place. */
size_t ph__host_own_most_bytes(
    const struct ph__call *call, const struct ph__host_sums *sums, enum ph_wire_format wire);
/* Returns the numbers of the largest partial for `num_samples` samples. */
size_t ph__host_partial_most_numbers(const struct ph__host_sums *sums, size_t num_samples);

#endif
