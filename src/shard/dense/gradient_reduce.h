/* Gradients of parameters that every rank has become those of the global batch.
 *
 * Dense ones are reduced in buckets, in the order in which the backward pass makes them: a bucket starts behind the node that
 * makes its last gradient and is waited for at the end of the entry, or later (wait_late.h), so that its sum is made while
 * what stands before is differentiated. The communicator makes it, or a reducer in its place (gradient_push.h). Sparse ones,
 * of tables that every rank has, are gathered: the rows of all ranks are merged in the order of the ranks. */
#ifndef PH_SHARD_GRADIENT_REDUCE_H
#define PH_SHARD_GRADIENT_REDUCE_H

#include "shard/sharding.h"

/* parameters and gradients (count); a gradient of 0 stays 0. Tables of which this rank has shards keep theirs. Errors stick
 * to the builder. */
void ph__reduce_gradients(struct ph_sharding *sharding, struct ph_builder *builder, size_t count,
    const ph_value *parameters, ph_value *gradients);

/* Whether a node waits for a bucket's sums. */
bool ph__is_gradient_wait(const struct ph_node *node);

#endif
