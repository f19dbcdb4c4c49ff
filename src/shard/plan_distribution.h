/* Distributes one program over ranks by a plan: implements src/graph/distribution.h, and orders nodes so that
 * ranks compute while their exchanges are in flight. */
#ifndef PH_SHARD_PLAN_DISTRIBUTION_H
#define PH_SHARD_PLAN_DISTRIBUTION_H

#include "shard/sharding.h"

/* Creates a distribution for one program: it keeps that program's exchanges. PH_ERROR_MEMORY. */
ph_status ph__distribution_create(
    const struct ph__distribution_options *options, struct ph_distribution **distribution_out);
void ph__distribution_destroy(struct ph_distribution *distribution); /* after the program's workspaces */

/* Creates a distribution's context. PH_ERROR_MEMORY. */
ph_status ph__sharding_create(
    const struct ph__distribution_options *options, struct ph__sharding **sharding_out);
void ph__sharding_destroy(struct ph__sharding *sharding);

#endif
