/* Batch norms whose batch is the global one. */
#ifndef PH_SHARD_SYNC_BATCH_NORM_H
#define PH_SHARD_SYNC_BATCH_NORM_H

#include "op/operator.h"
#include "shard/sharding.h"

extern const struct ph_op ph__op_sync_batch_norm;
extern const struct ph_op ph__op_sync_batch_norm_backward;

/* The pass over what mixes samples, losses aside (global_loss.h): each batch norm that learns becomes one over all ranks.
 * Errors stick to the builder: PH_ERROR_CONFIG for an operator that mixes samples otherwise. */
void ph__sync_batch_norms(struct ph_sharding *sharding, struct ph_builder *builder);

#endif
