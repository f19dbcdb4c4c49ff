/* The routes of a cluster whose links are known. For fabric_read.c. */
#ifndef PH_PLAN_FABRIC_ROUTES_H
#define PH_PLAN_FABRIC_ROUTES_H

#include "plan/fabric/fabric.h"

/* A way from one host, or group, to another, as a probe measures it. */
struct ph__fabric_measured {
    int64_t from, to;
    double gbits_per_s, latency_us; /* latency_us: of hosts alone */
};

/* Makes the links of measured pairs and trunks (struct ph__fabric_measured) between the groups.
 * PH_ERROR_CONFIG: a pair is missing, or there twice, or is none of the file's hosts. */
ph_status ph__fabric_measure(struct ph__fabric *fabric, const char *path, const struct ph__record_list *pairs,
    const struct ph__record_list *trunks);

/* Gives the route between two different hosts of a measured fabric, as ph__fabric_route does. */
size_t ph__fabric_measured_route(
    const struct ph__fabric *fabric, size_t from, size_t to, uint32_t links_out[PH_FABRIC_MAX_HOPS]);

/* Orders the links, each of which has its opposite, by the node that they come from, and finds the distances
 * to all hosts. PH_ERROR_CONFIG: two hosts of the file `path` have no way between them. */
ph_status ph__fabric_find_routes(struct ph__fabric *fabric, const char *path);

/* Gives the bytes a second that each of the first num_hosts hosts sends while each sends as much to each
 * other one and the busiest link is full; NaN for one host. A node splits flows evenly among links of equal
 * routes, as ECMP does with many flows. PH_ERROR_MEMORY. */
ph_status ph__fabric_all_to_all(const struct ph__fabric *fabric, size_t num_hosts, double *bytes_per_s_out);

#endif
