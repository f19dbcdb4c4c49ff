/* Measures all ways between hosts, by their agents: latency and bandwidth of each ordered pair, then the
 * capacity that the pairs between two groups share.
 *
 * What is measured of a pair is the pair's alone, though most pairs are measured while others are, too:
 *
 *   1. echoes     in N-1 rounds with a barrier between them: in round r host i measures the way to host
 *                 (i+r+1) mod N, so that each host sends and answers one probe at a time. Half of a round
 *                 trip is the same in both directions: the lesser of the two measurements counts.
 *   2. rounds     transfers in the same N-1 rounds. A link between switches may have several of these flows,
 *                 but a flow that fills a link of one of its hosts is as fast as it would be alone.
 *   3. alone      each host's fastest flow once more, with nothing else under way, which shows whether the
 *                 rounds as a whole were held up; then, one after another, all pairs that are slower than
 *                 .8 of what both of their ends can do. The greater bandwidth counts.
 *   4. trunks     for each ordered pair of groups: all members of the smaller one at once, matched one to
 *                 one. A flow alone cannot show that four flows share a link.
 *
 * So a network that holds nobody up takes O(N) rounds, and one with slow links between racks adds a transfer
 * for each pair across. Everything known is kept by the caller, and only what is not known is measured.
 *
 * Limits: a step begins only while there is time, and its transfers stay within the bytes that are left.
 * Politeness: after each step with transfers nothing is sent for so long that a link is busy for at most
 * `share` of the time.
 *
 * Source: Cloud Collectives (arXiv 2105.14088), whose probe makes the same rounds of echoes. */
#ifndef PH_COMM_PROBE_CONTROL_H
#define PH_COMM_PROBE_CONTROL_H

#include <stdbool.h>

#include "base/thread/stop.h"
#include "comm/probe/probe_link.h"

struct ph__netprobe_host {
    const char *name;             /* for errors */
    const char *const *addresses; /* (num_addresses) where its agent may be: those of its interfaces */
    size_t num_addresses;         /* at least 1 */
    uint64_t id;                  /* of its agent; 0: not known before ph__netprobe_open */
    const char *address;          /* the one of them that others reach, from ph__netprobe_open on */
};

struct ph__netprobe_pair {
    double latency_ns, bytes_per_ns; /* one way; NaN: not measured */
    bool is_alone;                   /* bytes_per_ns was measured with nothing else under way */
};

struct ph__netprobe_result {
    size_t num_hosts, num_groups;
    struct ph__netprobe_pair *pairs; /* (num_hosts, num_hosts) from, to */
    const uint32_t *groups;          /* (num_hosts) */
    double *trunks;                  /* (num_groups, num_groups) bytes a nanosecond; NaN: not measured */
};

struct ph__netprobe_options {
    const struct ph__secret *secret; /* borrowed; NULL: none */
    double seconds;                  /* 0: no limit */
    uint64_t bytes;                  /* 0: no limit */
    double share;                    /* 0 < share <= 1 */
    uint32_t num_echoes;
    const volatile int *stop_signal;
    struct ph__meanwhile meanwhile; /* called between steps, at least every 20 seconds */
    /* Called after each step: keeps the result so far. NULL: nothing does. */
    ph_status (*save)(void *context);
    void *save_context;
};

struct ph__netprobe;

/* Connects to the agents of two or more hosts, which gives their ids and addresses. Hosts and options are
 * borrowed. PH_ERROR_PEER naming a host whose agent does not answer, has another secret, or is that of
 * another host; PH_ERROR_USAGE: two hosts are one. */
ph_status ph__netprobe_open(const struct ph__netprobe_options *options, struct ph__netprobe_host *hosts,
    size_t num_hosts, struct ph__netprobe **probe_out);
void ph__netprobe_close(struct ph__netprobe *probe); /* NULL is fine */

/* Measure what is missing of the pairs, and of the trunks. PH_ERROR_DATA when a limit was reached before all
 * was measured; PH_ERROR_PEER naming two hosts; a signal's status. */
ph_status ph__netprobe_pairs(struct ph__netprobe *probe, struct ph__netprobe_result *result);
ph_status ph__netprobe_trunks(struct ph__netprobe *probe, struct ph__netprobe_result *result);

/* Bytes sent by all transfers so far. */
uint64_t ph__netprobe_sent_bytes(const struct ph__netprobe *probe);

#endif
