/* How a rank hears that another one has died or failed: a table of functions that the communicator looks at
 * while it waits.
 *
 * Behind it stands a connection beside MPI's (below), or what a test plays. The first notice that any rank
 * gives is the one that all ranks get, and it stays. All calls come from the communicator's thread; none but
 * tell and close waits, and these for about a second at most. The text of the last error is what it was
 * before. */
#ifndef PH_COMM_WATCH_H
#define PH_COMM_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/link/socket_address.h"
#include "phloem/status.h"

#define PH_NOTICE_TEXT_BYTES 512

struct ph__comm_notice {
    uint32_t rank;    /* whom it is about */
    ph_status status; /* what all ranks end with */
    bool has_died;    /* without a word; else it has told so itself */
    char text[PH_NOTICE_TEXT_BYTES];
};

struct ph__comm_watch {
    void *context; /* given to each function */
    /* Whether there is a notice; once there is, always the same. About one system call. */
    bool (*look)(void *context, struct ph__comm_notice *notice_out);
    /* This rank ends: all others hear of it, also when the process exits right after. What look gives from
     * then on may be what another rank has told before. */
    void (*tell)(void *context, const struct ph__comm_notice *notice);
    /* is_clean: the job is over, and nobody takes this rank's end for a death. */
    void (*close)(void *context, bool is_clean);
};

/* ---- the star ---- */

/* The watch of a job: a star of TCP connections, with rank 0 in the middle, over which nothing is said until
 * somebody fails.
 *
 *     rank 0      listen ── invitation, by the transport ──> all others
 *     others                          join: each connects to the first of the invitation's addresses where
 * rank 0 is rank 0      accept: until all have come
 *
 * A process that dies has its connections closed by the kernel, and a machine that vanishes no longer answers
 * keepalive probes: rank 0 hears of it in at most five seconds, and tells the others what it has heard first.
 * The end of rank 0 is heard by all. A process that hangs is neither: whoever waits for it has a timeout. And
 * rank 0 hears, and passes on, when it looks: where it does something long that polls nothing, a thread does
 * so for it (below).
 *
 * Rank 0 listens on the loopback where all ranks are on its host, else at every address of its interfaces
 * that others may reach, and only until all have come. Whoever connects proves that it knows the invitation's
 * secret, and so does rank 0 (net/authenticate.h); strangers are dropped, and those who say nothing when too
 * many of them wait. What is said later carries no tags: whoever could change it on its way could as well cut
 * the connection.
 *
 * Of the table's functions look never waits; once there is a notice it gives that one each time. tell returns
 * when rank 0 has sent back what it had heard first, or after about a second: look then gives what counts.
 * close waits as long for what was said to leave. The text of the last error is after each what it was
 * before.
 *
 * No threads, no signals. The calls of one rank come from one thread. */

#define PH_WATCH_MAX_ADDRESSES 32
#define PH_WATCH_SECRET_BYTES 32

struct ph__watch_listener; /* rank 0, until all have come */

struct ph__watch_options {
    size_t rank, world_size;
    bool is_one_host;    /* all ranks are on the host of rank 0 */
    uint32_t timeout_ms; /* until all ranks must have come */
};

/* What the transport takes to all ranks, byte by byte. It holds the secret: to be wiped by explicit_bzero. */
struct ph__watch_invitation {
    ph_status status; /* PH_OK, or why there is no watch */
    char text[PH_NOTICE_TEXT_BYTES];
    unsigned char secret[PH_WATCH_SECRET_BYTES];
    uint32_t num_addresses;
    char addresses[PH_WATCH_MAX_ADDRESSES][PH_ADDRESS_BYTES]; /* "host:port", in digits */
};

/* Rank 0, of two ranks or more. The invitation is written in any case, and must be taken to the others in any
 * case: where this has failed they join in vain, with the same status and text. PH_ERROR_PEER: there is no
 * address to listen at; PH_ERROR_MEMORY: also when the process may not have so many descriptors. */
ph_status ph__watch_listen(const struct ph__watch_options *options,
    struct ph__watch_invitation *invitation_out, struct ph__watch_listener **listener_out);
/* Where the invitation could not be taken to the others, instead of accepting. NULL is fine. */
void ph__watch_listener_destroy(struct ph__watch_listener *listener);

/* Rank 0: returns when all ranks have come; the listener is gone in any case. PH_ERROR_PEER naming a rank
 * that has not come within the time, or has ended meanwhile; those who wait in ph__watch_join get the same
 * status and text. */
ph_status ph__watch_accept(struct ph__watch_listener *listener, struct ph__comm_watch *watch_out);

/* All other ranks: returns when all ranks have come. PH_ERROR_PEER when rank 0 is at none of its addresses;
 * else what rank 0 has failed with. */
ph_status ph__watch_join(const struct ph__watch_options *options,
    const struct ph__watch_invitation *invitation, struct ph__comm_watch *watch_out);

/* ---- attendance: watch_attend.c ---- */

/* Has a thread look at the watch as well, ten times a second, until it is closed: so rank 0 passes on what it
 * hears while it does something long that looks at nothing. PH_ERROR_MEMORY: there is no such thread, and the
 * watch is what it was. */
ph_status ph__watch_attend(struct ph__comm_watch *watch);

#endif
