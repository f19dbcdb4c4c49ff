/* Towers that follow the topology: the layers of a tower run on the host that has its tables, for the samples
 * of all ranks. With H hosts of L ranks, rank (h,j) computes the towers of host h for its *peers*, the ranks
 * (g,j) of all hosts g: P samples, about H times its own.
 *
 *   own lookups            ids of the global batch in this rank's rows of the tower's tables
 *   host_sums_start/wait   inside the host: (P,F,N), partial sums of cut rows added in rank order
 *   the tower's layers     on the P samples: (P,vectors,D)
 *   exchange_vectors_…     between peers: each gets the vectors of its own samples, (B,vectors,D)
 *
 * Only the last step crosses hosts, with vectors D numbers a sample in place of F N. Ranks of other hosts
 * have neither the layers nor their parameters. The way back is the mirror, by the operators' gradient rules.
 * The gradients of a tower's parameters are then summed over the ranks of its host, in their order
 * (dense/gradient_reduce.c).
 *
 * Towers to which the plan gives no host run as any other layers do, on every rank for its own samples.
 *
 * Source: Luo et al. 2024 (Disaggregated Multi-Tower, arXiv 2403.00877). */
#ifndef PH_SHARD_TOWER_PASS_H
#define PH_SHARD_TOWER_PASS_H

#include "shard/sharding.h"

/* Lists in sharding->towers the plan's towers. Called before lookups are spread (lookup/shard_lookups.c),
 * which then exchange the vectors of a tower inside its host. Errors stick to the builder. */
void ph__find_towers(struct ph__sharding *sharding, struct ph_builder *builder);

/* Moves the towers' layers between the two exchanges, behind the first `front` nodes, and takes them away on
 * ranks of other hosts. Called when lookups have been spread. Errors stick to the builder. */
void ph__place_towers(struct ph__sharding *sharding, struct ph_builder *builder, size_t front);

#endif
