/* Placement of core threads on processors and network interfaces.
 *
 * A chunk belongs to one core thread for ever (spread.h). The placement decides, once, the processor to which
 * that thread is pinned, the NUMA node of its memory, and the interface to which its workers connect, so that
 * as few bytes as possible cross between nodes:
 *
 *     chunk -> core thread -> processor -> NUMA node -> interface
 *
 * The interface is an address that the hub tells each worker over TCP: the worker's connection to that core
 * thread goes there (protocol.h, client_links.c). Nothing is bound to a device: what the hub sends leaves by
 * the interface that the system's routes name, which is the same where each interface has a network of its
 * own.
 *
 * ph__machine_detect describes the machine, and ph__placement_plan is a pure function of that. A server calls
 * both before it starts threads. Source: Luo et al., 1805.07891. */
#ifndef PH_HUB_PLACEMENT_H
#define PH_HUB_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/link/socket.h"
#include "phloem/status.h"

#define PH_NOWHERE UINT32_MAX /* no processor, core, node or interface, or an unknown one */

/* ---- the machine ---- */

/* Processing unit, to which a thread can be pinned. Units of a core share its caches and arithmetic (SMT). */
struct ph__machine_unit {
    uint32_t processor; /* the system's number */
    uint32_t core;      /* unique in the machine */
    uint32_t node;      /* NUMA node, by the system's number */
};

enum ph__machine_family { PH_IPV4, PH_IPV6, PH_NUM_FAMILIES };

struct ph__machine_interface {
    char name[32];
    uint32_t node; /* node to which it is attached, by the system's number; PH_NOWHERE for virtual ones */
    bool is_loopback;
    bool is_indirect;    /* bridge or tunnel: its bytes go through other interfaces, or stay on this host */
    uint32_t speed_mbit; /* megabits per second; 0: unknown */
    char hosts[PH_NUM_FAMILIES][PH_HOST_BYTES]; /* a numeric address of each family; "": none */
};

/* Units and interfaces that this process may use, in any order. */
struct ph__machine {
    struct ph__machine_unit *units;
    size_t num_units;
    struct ph__machine_interface *interfaces;
    size_t num_interfaces;
};

/* Finds the units in the calling thread's affinity mask, and the interfaces that are up and have an address
 * that is not link-local, the loopback included. Takes about ten milliseconds. PH_ERROR_BUG naming hwloc when
 * it fails; PH_ERROR_MEMORY. */
ph_status ph__machine_detect(struct ph__machine *machine_out);
void ph__machine_fini(struct ph__machine *machine); /* zero-initialised is fine */

/* Keeps the interfaces among which a hub can choose that listens at all IPv4 addresses, or with has_ipv6 at
 * all addresses. They have such an address and are not the loopback. Bridges and tunnels stay only where
 * there is nothing else. Of these only the fastest stay, since a slower one, say for management, would hold
 * up the rest. If one remains, none is kept. */
void ph__machine_keep_choice(struct ph__machine *machine, bool has_ipv6);
/* Keeps no interface: for a hub that listens at one address. */
void ph__machine_forget_interfaces(struct ph__machine *machine);

/* ---- the plan ---- */

struct ph__thread_place {
    uint32_t processor, core; /* PH_NOWHERE unless pinned */
    uint32_t node;            /* PH_NOWHERE unless pinned or the only one */
    uint32_t interface;       /* index into the machine's after ph__machine_keep_choice; PH_NOWHERE: none */
};

struct ph__placement {
    bool is_pinned;
    size_t num_threads;
    struct ph__thread_place *threads; /* (num_threads) */
};

/* Plans places for threads. Each thread takes a unit: first one of every core, then the cores' others, each
 * time in turn over the nodes, so that few threads on a large machine have caches and memory to themselves.
 * With more threads than units none is pinned: the system's scheduler then shares the units out better than
 * any fixed plan.
 *
 * A thread's interface is one on its own node, else one of no node, else one of another node; among equals,
 * the one with the fewest threads so far. PH_ERROR_MEMORY. The placement does not refer to the machine. */
ph_status ph__placement_plan(
    const struct ph__machine *machine, size_t num_threads, struct ph__placement *placement_out);
void ph__placement_fini(struct ph__placement *placement); /* zero-initialised is fine */

/* Pins the calling thread to the processor. PH_ERROR_USAGE naming it when the system refuses. */
ph_status ph__placement_pin_self(uint32_t processor);

/* ---- in words ---- */

enum { PH_THREAD_PLACE_TEXT_BYTES = 160 };

/* Writes "processor 3, core 1, node 0, interface eth0", without an interface if none was chosen, for the
 * machine of the plan. Returns `text`. */
const char *ph__thread_place_text(const struct ph__machine *machine, const struct ph__placement *placement,
    size_t thread, char text[PH_THREAD_PLACE_TEXT_BYTES]);

#endif
