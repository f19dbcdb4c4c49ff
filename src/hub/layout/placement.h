/* Where core threads run, and which network interface each of them serves.
 *
 * A chunk belongs to one core thread for ever (spread.h); here it is decided, once, to which processor that
 * thread is pinned, on which NUMA node its memory belongs, and to which interface its workers are told to
 * connect, so that as few bytes as possible cross from node to node:
 *
 *     chunk -> core thread -> processor -> NUMA node -> interface
 *
 * The interface is an address that the hub tells each worker over TCP: the worker's connection to that core
 * thread goes there (protocol.h, client_links.c). Nothing is bound to a device: what the hub sends leaves by
 * the interface that the system's routes name, which is the same where each interface has a network of its
 * own.
 *
 * Deciding is apart from looking: ph__machine_detect says what there is, ph__placement_plan is a pure
 * function of it. A server does both before it starts threads. Source: Luo et al., 1805.07891. */
#ifndef PH_HUB_PLACEMENT_H
#define PH_HUB_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/link/socket.h"
#include "phloem/status.h"

#define PH_NOWHERE UINT32_MAX /* no processor, core, node or interface, or not known which */

/* ---- the machine ---- */

/* A processing unit: what a thread can be pinned to. Those of one core share its caches and arithmetic (SMT).
 */
struct ph__machine_unit {
    uint32_t processor; /* number by which the system knows it */
    uint32_t core;      /* number that is unique in the machine */
    uint32_t node;      /* NUMA node, by the system's number */
};

enum ph__machine_family { PH_IPV4, PH_IPV6, PH_NUM_FAMILIES };

struct ph__machine_interface {
    char name[32];
    uint32_t node; /* that it is attached to, by the system's number; PH_NOWHERE for virtual ones */
    bool is_loopback;
    bool is_indirect;    /* a bridge or a tunnel: bytes come to it by way of others, or from this host */
    uint32_t speed_mbit; /* per second; 0: not known */
    char hosts[PH_NUM_FAMILIES][PH_HOST_BYTES]; /* an address in digits of each family; "": it has none */
};

/* What this process may use, in any order. */
struct ph__machine {
    struct ph__machine_unit *units;
    size_t num_units;
    struct ph__machine_interface *interfaces;
    size_t num_interfaces;
};

/* The units in the calling thread's affinity mask, and the interfaces that are up and have an address that is
 * not link-local, the loopback among them. Takes some ten milliseconds. PH_ERROR_BUG naming hwloc when it
 * cannot tell; PH_ERROR_MEMORY. */
ph_status ph__machine_detect(struct ph__machine *machine_out);
void ph__machine_fini(struct ph__machine *machine); /* zero-initialised is fine */

/* Keeps the interfaces that a hub can choose between which listens at all IPv4 addresses, or has_ipv6: at all
 * addresses. They have one of these, and are not the loopback; bridges and tunnels only where there is
 * nothing else; and of these the fastest, for a slow one beside it, say for management, would hold up the
 * rest. Where there is only one, none is kept. */
void ph__machine_keep_choice(struct ph__machine *machine, bool has_ipv6);
/* ... which listens at one address. */
void ph__machine_forget_interfaces(struct ph__machine *machine);

/* ---- the plan ---- */

struct ph__thread_place {
    uint32_t processor, core; /* PH_NOWHERE where threads are not pinned */
    uint32_t node;            /* PH_NOWHERE where they are not pinned and there are several */
    uint32_t interface; /* into the machine's, by ph__machine_keep_choice; PH_NOWHERE where it has none */
};

struct ph__placement {
    bool is_pinned;
    size_t num_threads;
    struct ph__thread_place *threads; /* (num_threads) */
};

/* Threads take a unit each: first one of every core and then the cores' others, each time in turn over the
 * nodes, so that few threads on a large machine have caches and memory to themselves. Where there are more
 * threads than units none is pinned: the system's scheduler then shares the units out better than anything
 * decided beforehand.
 *
 * A thread's interface is one on its own node, else one of no node, else one of another node; among equals,
 * the one with the fewest threads so far. PH_ERROR_MEMORY. The placement does not refer to the machine. */
ph_status ph__placement_plan(
    const struct ph__machine *machine, size_t num_threads, struct ph__placement *placement_out);
void ph__placement_fini(struct ph__placement *placement); /* zero-initialised is fine */

/* Pins the calling thread to that processor. PH_ERROR_USAGE naming it when the system refuses. */
ph_status ph__placement_pin_self(uint32_t processor);

/* ---- in words ---- */

enum { PH_THREAD_PLACE_TEXT_BYTES = 160 };

/* "processor 3, core 1, node 0, interface eth0", without the last where none was chosen, for the machine that
 * the placement was planned for. Returns `text`. */
const char *ph__thread_place_text(const struct ph__machine *machine, const struct ph__placement *placement,
    size_t thread, char text[PH_THREAD_PLACE_TEXT_BYTES]);

#endif
