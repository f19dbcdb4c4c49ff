/* The norm of all ranks' gradients, for clipping. */
#ifndef PH_SHARD_GLOBAL_NORM_H
#define PH_SHARD_GLOBAL_NORM_H

#include "op/operator.h"
#include "shard/sharding.h"

extern const struct ph_op ph__op_global_norm;

/* The pass over clip factors (op/update/op_clip_factor.c): what they are made from becomes a sum over all ranks. Gradients have been
 * reduced. Errors stick to the builder. */
void ph__share_norms(struct ph_sharding *sharding, struct ph_builder *builder);

#endif
