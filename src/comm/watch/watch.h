/* Tells a rank that another one has died or failed: a table of functions that the communicator looks at while
 * it waits.
 *
 * Behind the table is a connection beside MPI's (below), or a test's double. The first notice that any rank
 * gives reaches all ranks, and stays. All calls come from the communicator's thread. Only tell and close
 * wait, for about a second at most. The functions leave the text of the last error as it was. */
#ifndef PH_COMM_WATCH_H
#define PH_COMM_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/link/socket_address.h"
#include "phloem/status.h"

#define PH_NOTICE_TEXT_BYTES 512

struct ph__comm_notice {
    uint32_t rank;    /* subject of the notice */
    ph_status status; /* status that all ranks end with */
    bool has_died;    /* ended without a message; else the rank has told of its failure itself */
    char text[PH_NOTICE_TEXT_BYTES];
};

struct ph__comm_watch {
    void *context; /* passed to each function */
    /* Returns true when there is a notice; from then on always the same one. About one system call. */
    bool (*look)(void *context, struct ph__comm_notice *notice_out);
    /* Tells all others that this rank ends; they learn it also when the process exits right after. Afterwards
     * look may give an earlier notice of another rank instead. */
    void (*tell)(void *context, const struct ph__comm_notice *notice);
    /* is_clean: the job is over, and no rank takes this one's end for a death. */
    void (*close)(void *context, bool is_clean);
};

/* ---- the star ---- */

/* The watch of a job: a star of TCP connections with rank 0 in the middle, silent until a rank fails.
 *
 *     rank 0      listen ── invitation, by the transport ──> all others
 *     others      join: each connects to the first of the invitation's addresses where rank 0 answers
 *     rank 0      accept: until all have come
 *
 * The kernel closes the connections of a process that dies, and a machine that vanishes no longer answers
 * keepalive probes: rank 0 notices within five seconds, and sends the first such notice to the others. All
 * ranks notice the end of rank 0. A process that hangs is not noticed here: ranks that wait for it time out.
 * Rank 0 receives and passes on when it looks; during long work that polls nothing, a thread looks for it
 * (below).
 *
 * Rank 0 listens on the loopback where all ranks are on its host, else at every address of its interfaces
 * that others may reach, and only until all have come. A connecting process proves that it knows the
 * invitation's secret, and so does rank 0 (net/authenticate.h). Strangers are dropped; so are silent ones
 * when too many of them wait. Later frames carry no tags: an attacker who could change them on their way
 * could as well cut the connection.
 *
 * look never waits; once there is a notice it gives that one each time. tell returns when rank 0 has sent
 * back the first notice it got, or after about a second: look then gives the notice that counts. close waits
 * as long for pending output. Each leaves the text of the last error as it was.
 *
 * No threads, no signals. The calls of one rank come from one thread. */

#define PH_WATCH_MAX_ADDRESSES 32
#define PH_WATCH_SECRET_BYTES 32

struct ph__watch_listener; /* rank 0, until all have come */

struct ph__watch_options {
    size_t rank, world_size;
    bool is_one_host;    /* all ranks are on the host of rank 0 */
    uint32_t timeout_ms; /* time in which all ranks must come */
};

/* Bytes that the transport carries to all ranks. They hold the secret: wipe them by explicit_bzero. */
struct ph__watch_invitation {
    ph_status status; /* PH_OK, or why there is no watch */
    char text[PH_NOTICE_TEXT_BYTES];
    unsigned char secret[PH_WATCH_SECRET_BYTES];
    uint32_t num_addresses;
    char addresses[PH_WATCH_MAX_ADDRESSES][PH_ADDRESS_BYTES]; /* "host:port", in digits */
};

/* Listens on rank 0, in a world of two ranks or more. The invitation is written in any case, and must be
 * taken to the others in any case: after a failure here they fail in ph__watch_join with the same status and
 * text. PH_ERROR_PEER: there is no address to listen at; PH_ERROR_MEMORY: also when the process may not have
 * so many descriptors. */
ph_status ph__watch_listen(const struct ph__watch_options *options,
    struct ph__watch_invitation *invitation_out, struct ph__watch_listener **listener_out);
/* Ends listening, in place of ph__watch_accept, when the invitation could not be taken to the others. NULL is
 * fine. */
void ph__watch_listener_destroy(struct ph__watch_listener *listener);

/* Returns on rank 0 when all ranks have come; the listener is gone in any case. PH_ERROR_PEER naming a rank
 * that has not come in time, or has ended meanwhile; ranks that wait in ph__watch_join get the same status
 * and text. */
ph_status ph__watch_accept(struct ph__watch_listener *listener, struct ph__comm_watch *watch_out);

/* Joins the watch on all other ranks, and returns when all ranks have come. PH_ERROR_PEER when rank 0 is at
 * none of its addresses; else rank 0's failure. */
ph_status ph__watch_join(const struct ph__watch_options *options,
    const struct ph__watch_invitation *invitation, struct ph__comm_watch *watch_out);

/* ---- attendance: watch_attend.c ---- */

/* Starts a thread that looks at the watch as well, ten times a second, until it is closed: rank 0 then passes
 * notices on during long work that looks at nothing. PH_ERROR_MEMORY: no thread was started, and the watch is
 * as before. */
ph_status ph__watch_attend(struct ph__comm_watch *watch);

#endif
