/* Groups hosts by locality: hosts that reach each other well are in one group, as those of a rack.
 *
 * The distance of two hosts is the logarithm of what a byte takes between them, the mean of both directions.
 * Average linkage joins the two nearest groups again and again, each join at a greater distance than the one
 * before. The joins stop before the widest step between two of these distances. Where no step is a ratio of
 * PH_HOST_GROUPS_RATIO or more, the latencies decide in the same way, and where those are alike, too, all
 * hosts are one group.
 *
 * Source: agglomerative clustering by average linkage (UPGMA; Sokal and Michener, 1958). O(hosts^3): a second
 * for a thousand. Pure. */
#ifndef PH_PLAN_HOST_GROUPS_H
#define PH_PLAN_HOST_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

#define PH_HOST_GROUPS_RATIO 1.5

/* (num_hosts, num_hosts) from a host, to a host. A number that is not finite and above 0 is not known: a
 * distance is then that of the other direction, and groups are as far apart as their known pairs. Borrowed.
 */
struct ph__host_distances {
    size_t num_hosts;
    const double *ns_per_byte, *latency_ns; /* NULL: not known of any pair */
};

/* Fills groups_out (num_hosts) with numbers from 0, in the order of the groups' first hosts.
 * PH_ERROR_MEMORY. */
ph_status ph__host_groups_find(
    const struct ph__host_distances *measured, uint32_t *groups_out, size_t *num_groups_out);

#endif
