/* Sums of dense gradients are waited for where they are read, behind the updates of tables, which they do not keep waiting: the
 * largest part of what computes while they are on their way. Each value stays what it is. */
#ifndef PH_SHARD_WAIT_LATE_H
#define PH_SHARD_WAIT_LATE_H

#include "graph/graph.h"

/* The builder's current entry is that of updates, and complete. Where anything before it reads the sums, a norm of all gradients,
 * they stay where they are. Errors stick to the builder. */
void ph__wait_late(struct ph_builder *builder);

#endif
