/* Measures all ways between hosts, by their agents: latency and bandwidth of each ordered pair, then the
 * capacity that the pairs between two groups share.
 *
 *   1. echoes     of each two hosts, in rounds in which each host takes part once. Half of a round trip is
 *                 the latency in both directions.
 *   2. transfers  of each ordered pair, in such rounds. Flows of a round may share a link between switches,
 *                 but a flow that fills a link of one of its hosts is as fast as it would be alone.
 *   3. fastest    each host's fastest flow once more, alone, with nothing else under way, which shows whether
 *                 the rounds as a whole were held up.
 *   4. held up    flows slower than .8 of what both of their ends can do. They are measured alone, but of
 *                 many from one group of hosts to another only three: where all that were measured alone
 *                 agree within 10 %, the others get their value. Where they do not agree, all are measured
 *                 alone. A flow that is not held up gets what its ends can do: the rest is noise.
 *   5. trunks     for each ordered pair of groups: all members of the smaller one at once, matched one to
 *                 one. A flow alone cannot show that four flows share a link.
 *
 * N hosts in G groups take O(N) rounds, N + 3 G^2 transfers alone, and G^2 trunks; more where pairs differ.
 * The caller groups the hosts, by what is known so far, before 4 and before 5. All that is known is kept by
 * the caller, and only what is not known is measured.
 *
 * Limits: a step begins only while there is time, and its transfers stay within the bytes that are left.
 * Politeness: after each step with transfers nothing is sent for so long that a link is busy for at most
 * `share` of the time.
 *
 * Source: Cloud Collectives (arXiv 2105.14088), whose probe makes such rounds of echoes. */
#ifndef PH_COMM_PROBE_CONTROL_H
#define PH_COMM_PROBE_CONTROL_H

#include "base/memory/arena.h"
#include "base/thread/stop.h"
#include "comm/probe/probe_link.h"

struct ph__netprobe_host {
    const char *name;               /* for errors; the rest is set by ph__netprobe_open */
    const char *addresses;          /* where its agent may be, with a space between two */
    char address[PH_ADDRESS_BYTES]; /* the one of them that others reach */
    uint64_t id;                    /* of its agent */
};

/* Tells how a bandwidth was found, by letters: those of all pairs are a text. */
enum ph__netprobe_way {
    PH_NETPROBE_UNKNOWN = '.',
    PH_NETPROBE_TOGETHER = 't', /* while others were measured, too */
    PH_NETPROBE_ALONE = 'a',
    PH_NETPROBE_ALIKE = 'l', /* not measured alone, but held up, as pairs were whose value it has */
};

/* The network, as far as it is known. Matrices are (num_hosts, num_hosts) from, to; NaN: not known. */
struct ph__netprobe_result {
    size_t num_hosts, num_groups;
    uint32_t *groups;                 /* (num_hosts) */
    double *latency_ns, *ns_per_byte; /* one way */
    double *trunks;      /* (num_groups, num_groups) nanoseconds a byte; as large as the others */
    char *ways;          /* of enum ph__netprobe_way, with a NUL at the end */
    uint64_t sent_bytes; /* by all transfers of this probe */
};

/* Makes a result of which nothing is known, in the arena. PH_ERROR_MEMORY. */
ph_status ph__netprobe_result_init(
    size_t num_hosts, struct ph__arena *arena, struct ph__netprobe_result *result_out);
/* Counts the ordered pairs whose bandwidth was found in that way. */
size_t ph__netprobe_result_count(const struct ph__netprobe_result *result, enum ph__netprobe_way way);

struct ph__netprobe_options {
    struct ph__arena *arena;         /* borrowed; holds the probe */
    const struct ph__secret *secret; /* borrowed; NULL: none */
    double seconds;
    uint64_t bytes;
    double share; /* 0 < share <= 1 */
    uint32_t num_echoes;
    const volatile int *stop_signal;
    struct ph__meanwhile meanwhile; /* called between steps, at least every 20 seconds */
};

struct ph__netprobe;

/* Connects to the agents of two or more hosts. Where the first host has several addresses, this process runs
 * there. Options and hosts are borrowed, also by the functions below. PH_ERROR_PEER naming a host whose agent
 * does not answer or has another secret; PH_ERROR_USAGE: two hosts are one. */
ph_status ph__netprobe_open(const struct ph__netprobe_options *options, struct ph__netprobe_host *hosts,
    size_t num_hosts, struct ph__netprobe **probe_out);
void ph__netprobe_close(struct ph__netprobe *probe);

/* Measure what is missing: 1 to 3, then 4, which reads the groups, then 5. PH_ERROR_DATA when a limit was
 * reached before; PH_ERROR_PEER naming two hosts; a signal's status. */
ph_status ph__netprobe_rounds(struct ph__netprobe *probe, struct ph__netprobe_result *result);
ph_status ph__netprobe_held_up(struct ph__netprobe *probe, struct ph__netprobe_result *result);
ph_status ph__netprobe_trunks(struct ph__netprobe *probe, struct ph__netprobe_result *result);

#endif
