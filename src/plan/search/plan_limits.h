/* Limits of a plan as a file gives them:
 *
 *   version: 1
 *   host_gb: 48                                            # of a host's ranks together; all may be left out
 *   ranks: [{rank: 3, gb: 4, slowness: 2}]                 # unlike the others
 *   together: [{tables: [embedding.user, embedding.ads]}]  # whole, on one rank
 *   apart: [{tables: ["embedding.item*"]}]                 # no two on one rank */
#ifndef PH_PLAN_SEARCH_PLAN_LIMITS_H
#define PH_PLAN_SEARCH_PLAN_LIMITS_H

#include "plan/search/plan_search.h"

struct ph__limits_file { /* zero-initialised: no limits */
    struct ph__arena arena;
    struct ph__plan_limits limits;
    double *slowness; /* (world_size), as of struct ph__pricing; NULL: 1 each */
};

/* Reads a file for these tables; rank_bytes: of ranks that it does not name (0: no limit). PH_ERROR_CONFIG
 * with the file: a rank beyond the world, a name or pattern that fits no table, a table in two groups that
 * lie together, fewer ranks than tables that lie apart. Call fini also after a failure. */
ph_status ph__limits_read(const char *path, const struct ph__topology *topology, uint64_t rank_bytes,
    const struct ph__table_facts *tables, size_t num_tables, struct ph__limits_file *file_out);
void ph__limits_fini(struct ph__limits_file *file);

#endif
