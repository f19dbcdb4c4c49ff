/* A cluster as a topology file describes it: its machines, the links between them, and routes.
 *
 *   version: 1
 *   kind: star             # one switch | racks | two_layer | fat_tree | list | measured
 *   hosts: 8
 *   ranks_per_host: 2
 *   host: {gbits_per_s: 25, latency_us: 5}     # a host's link, each way
 *   machine: {memory_gb: 64}                   # figures of each host; default: those of plan_cost.h
 *
 *   racks      hosts of a rack share a switch, which has `uplinks` links to one core
 *              rack: {hosts: 16, uplinks: 4, gbits_per_s: 100, latency_us: 1}
 *   two_layer  each switch of a rack has one link to each of `uplinks` spines (leaf and spine)
 *   fat_tree   pods of edge and aggregation switches, and cores: each edge switch has a link to each
 *              aggregation switch of its pod, and each of these a link to cores / aggregations of the cores
 *              fat_tree: {pods: 4, edges: 4, aggregations: 4, cores: 16, gbits_per_s: 25, latency_us: 1}
 *   list       links: [{from: h0, to: leaf, gbits_per_s: 25, latency_us: 5}, ...]; hosts are h0, h1, ...; any
 *              other name is a switch's; a link has both directions
 *   measured   pairs: [{from: 0, to: 1, gbits_per_s: 9.4, latency_us: 31}, ...], all pairs of hosts, as a
 *              probe measures one flow at a time; flows of a host share the fastest of its pairs
 *              trunks: [{from: 0, to: 1, gbits_per_s: 40}, ...], of groups: what all flows from one to the
 *              other share; flows that leave, or enter, a group share the fastest of its trunks
 *
 * nodes: [{name: 10.0.0.1, group: 0}, ...] names the hosts, and groups those of measured pairs. Hosts of
 * other kinds are of one group where they have one switch.
 *
 * slow: [{rank: 3, factor: 2}, ...] names ranks whose computations take longer, in a simulation.
 *
 * Every link has its capacity in each direction. A route has as few links as possible; among several, the
 * hash of the two ranks chooses at each switch (ECMP: RFC 2992). */
#ifndef PH_PLAN_FABRIC_H
#define PH_PLAN_FABRIC_H

#include "base/memory/arena.h"
#include "base/option/option.h"
#include "plan/plan.h"

/* One direction of a link. */
struct ph__fabric_link {
    uint32_t from, to; /* nodes: hosts by number, then switches */
    double bytes_per_ns, latency_ns;
};

/* A range of message sizes, from from_bytes to the next range, and how the network carries them. */
struct ph__fabric_sizes {
    int64_t from_bytes;
    double bandwidth, latency; /* times a link's */
};

/* Costs of a message, beside those of the links. */
struct ph__fabric_messages {
    double send_us, receive_us;   /* a rank's time for each message that it sends, or receives */
    double host_latency_us;       /* between two ranks of a host */
    int64_t eager_bytes;          /* longer messages wait until the receiver asks for them */
    struct ph__record_list sizes; /* struct ph__fabric_sizes, ascending; before the first: factors of 1 */
};

/* A rank whose computations take another time than the others'. */
struct ph__fabric_slow {
    int64_t rank;
    double factor; /* times theirs */
};

struct ph__fabric { /* zero-initialised: none */
    struct ph__arena arena;
    size_t num_hosts, ranks_per_host, num_nodes;
    struct ph__fabric_link *links; /* (num_links) by the node that they come from */
    size_t num_links;
    size_t *first_links; /* (num_nodes + 1) */
    uint16_t *hops;      /* (num_hosts, num_nodes) links from a node to a host; UINT16_MAX: no way */
    bool is_measured;    /* routes follow from the order of the links: fabric_measured.c; no hops */
    const char **names;  /* (num_hosts) "h0" unless the file says another */
    uint32_t *groups;    /* (num_hosts) below num_groups */
    size_t num_groups;
    uint64_t host_bytes; /* memory of a host; 0: not known */
    struct ph__fabric_messages messages;
    struct ph__record_list slow;     /* struct ph__fabric_slow */
    struct ph__plan_machine machine; /* the rates inside of a host; the rest depends on a job's hosts */
};

/* Reads a topology file. PH_ERROR_CONFIG names file and line, or two hosts between which there is no way. */
ph_status ph__fabric_read(const char *path, struct ph__fabric *fabric_out);
void ph__fabric_fini(struct ph__fabric *fabric);

/* Reads the figures that a planner needs of a topology file, for a job on the first of its hosts. A
 * world_size of 0 becomes that of all hosts, ranks_per_host of 0 the file's. network_bytes_per_s: what each
 * host sends while all send to all (NaN: one host); rank_bytes: a rank's share of its host. PH_ERROR_CONFIG:
 * as above, or the cluster has no such hosts; PH_ERROR_MEMORY. */
ph_status ph__fabric_machine(
    const char *path, struct ph__topology *topology, struct ph__plan_machine *machine_out);

#define PH_FABRIC_MAX_HOPS 16

/* Fills links_out with the links between the hosts of two ranks, in order. Returns how many; 0: the ranks
 * share a host. */
size_t ph__fabric_route(const struct ph__fabric *fabric, size_t from_rank, size_t to_rank,
    uint32_t links_out[PH_FABRIC_MAX_HOPS]);
/* Does the same for the first ranks of two hosts. */
size_t ph__fabric_route_of_hosts(
    const struct ph__fabric *fabric, size_t from, size_t to, uint32_t links_out[PH_FABRIC_MAX_HOPS]);

#endif
