/* The time of a sum over all ranks by each of comm/'s collectives (comm_collectives.h), on a cluster. A
 * stated model, no measurement; it only has to rank them.
 *
 * A collective is rounds one after the other. A round takes the longest of its messages by themselves
 * (latency + bytes / bandwidth, of the route between two hosts), or the fullest link (bytes of all messages
 * over it / capacity), and a rank's time for each of its messages. N ranks, in G groups of I; S bytes:
 *
 *   exchange      2 rounds in which each rank sends each other one S / N
 *   hierarchical  2 in each group alike, of S / I; 2 among the ranks of one place in each group, of S / N
 *   ring          2 (N - 1) rounds, of S / N to the next rank */
#ifndef PH_PLAN_COLLECTIVE_COST_H
#define PH_PLAN_COLLECTIVE_COST_H

#include "plan/fabric.h"

enum ph__plan_collective { PH_PLAN_EXCHANGE, PH_PLAN_HIERARCHICAL, PH_PLAN_RING, PH_PLAN_COLLECTIVE_COUNT };

/* Ranks on the first hosts of a cluster, as many on each. */
struct ph__collective_job {
    const struct ph__fabric *fabric;
    size_t num_hosts, ranks_per_host;
    const uint32_t *groups; /* (num_hosts) below num_hosts; equal in size. NULL: nothing is hierarchical */
};

/* Fills ns_out (num_sizes) with the times of sums of so many bytes. PH_ERROR_MEMORY. */
ph_status ph__collective_times(const struct ph__collective_job *job, enum ph__plan_collective kind,
    size_t num_sizes, const double *bytes, double *ns_out);

/* Sums of at least from_bytes, and the collective that takes the least time for them: among equals the first
 * of the enum. */
struct ph__collective_range {
    uint64_t from_bytes;
    enum ph__plan_collective kind;
};
enum { PH_PLAN_MOST_RANGES = 21 };
/* Fills the ranges, ascending, the first from 0 bytes. PH_ERROR_MEMORY. */
ph_status ph__collective_ranges(const struct ph__collective_job *job,
    struct ph__collective_range ranges_out[PH_PLAN_MOST_RANGES], size_t *num_ranges_out);

#endif
