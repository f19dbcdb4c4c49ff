/* The distribution of one program over ranks by a plan: what src/graph/distribution.h asks for.
 *
 * It also orders nodes so that ranks compute while what they exchange is on its way. */
#ifndef PH_SHARD_PLAN_DISTRIBUTION_H
#define PH_SHARD_PLAN_DISTRIBUTION_H

#include "shard/sharding.h"

/* Creates one for each program: it knows what that program exchanges. PH_ERROR_MEMORY. */
ph_status ph__distribution_create(
    const struct ph__distribution_options *options, struct ph_distribution **distribution_out);
void ph__distribution_destroy(struct ph_distribution *distribution); /* after the program's workspaces */

/* Creates a distribution's context. PH_ERROR_MEMORY. */
ph_status ph__sharding_create(
    const struct ph__distribution_options *options, struct ph__sharding **sharding_out);
void ph__sharding_destroy(struct ph__sharding *sharding);

#endif
