/* Divides features into towers of equal sizes: the tower partitioner of Disaggregated Multi-Tower (Luo et
 * al., arXiv 2403.00877).
 *
 *     similarity I (F,F) of features, in [0,1]
 *       └─ distance D_ij: 1 - I_ij makes coherent towers, of similar features; I_ij diverse ones
 *            └─ features dealt to the towers at random, then exchanged in pairs while that lessens the sum of
 *               D over the pairs within towers; of many starts the best one counts
 *
 * The paper is said to place the features in the plane, at distances near D, and to cluster the points. A
 * plane cannot hold such distances: the test shows how many planted groups each way finds. Exchanges that
 * began with clusters of the plane ended no better than those from random starts.
 *
 * All is one thread's arithmetic in a fixed order on numbers that a fixed seed draws: the same matrix gives
 * the same towers. */
#ifndef PH_PLAN_TOWER_PARTITION_H
#define PH_PLAN_TOWER_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

enum ph__tower_kind { PH_TOWERS_COHERENT, PH_TOWERS_DIVERSE };

/* Finds each feature's tower: tower_of_out (num_features), in [0, num_towers). similarity (num_features,
 * num_features) is symmetric and finite; its diagonal is not read. Sizes differ by at most one; towers are
 * numbered by their first features. 0 < num_towers <= num_features. PH_ERROR_MEMORY. */
ph_status ph__tower_partition(size_t num_features, const double *similarity, size_t num_towers,
    enum ph__tower_kind kind, uint32_t *tower_of_out);

#endif
