/* The loss of the labels, a mean over the samples that this rank has, becomes the mean over the global batch. */
#ifndef PH_SHARD_GLOBAL_LOSS_H
#define PH_SHARD_GLOBAL_LOSS_H

#include "op/operator.h"
#include "shard/sharding.h"

extern const struct ph_op ph__op_global_mean;
extern const struct ph_op ph__op_global_mean_backward;

/* The pass: behind each loss of the graph so far comes a mean over ranks. Errors stick to the builder. */
void ph__share_losses(struct ph_sharding *sharding, struct ph_builder *builder);

#endif
