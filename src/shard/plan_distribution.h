/* The distribution of one program over ranks by a plan: what src/graph/distribution.h asks for. */
#ifndef PH_SHARD_PLAN_DISTRIBUTION_H
#define PH_SHARD_PLAN_DISTRIBUTION_H

#include "shard/sharding.h"

/* One for each program: it knows what that program exchanges. PH_ERROR_MEMORY. */
ph_status ph__distribution_create(
    const struct ph_distribution_options *options, struct ph_distribution **distribution_out);
void ph__distribution_destroy(struct ph_distribution *distribution); /* after the program's workspaces */

#endif
