/* Backward in an order that hides what ranks wait for: whatever an exchange of gradients does not need to begin, above all the
 * gradients of weights, comes behind its start and computes while vectors are on their way. Each value stays what it is. */
#ifndef PH_SHARD_START_EARLY_H
#define PH_SHARD_START_EARLY_H

#include "graph/graph.h"

/* Of the builder's current entry, to which everything has been added that starts early. All ranks call it alike. Errors stick to the
 * builder. */
void ph__start_early(struct ph_builder *builder);

#endif
