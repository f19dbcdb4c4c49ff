/* Inside of communicators: exchanges between ranks that run while the caller computes.
 *
 * An operation is started, progressed by whoever polls, and waited for by its ticket. Nothing here starts a
 * thread: the executor polls between two operators, and waiting is polling. All collectives are exchanges of
 * messages and, where they sum, additions in the order of the ranks, so that every rank has the same bits,
 * and has them each time.
 *
 * A *channel* tells operations apart: two that are in flight between the same ranks at once have different
 * ones, and those of one channel are started in the same order by all who take part. Ranks that take no part
 * in an operation do not start it.
 *
 * A ticket is a whole number of up to 53 bits: a double holds it exactly, so that a program may carry it
 * among its scalars.
 *
 * Memory that is given to an operation is borrowed until it has been waited for; an operation that has failed
 * keeps it until the process ends, since a message may still arrive. After a failure every call returns the
 * same status and text. */
#ifndef PH_COMM_COMM_H
#define PH_COMM_COMM_H

#include "base/thread/stop.h"
#include "comm/wire/wire_format.h"
#include "phloem/comm.h"

#define PH_COMM_MAX_CHANNELS 8192u

/* The ranks that take part in a collective, ascending; own: which of them this one is. Borrowed while in
 * flight. */
struct ph__group {
    size_t size, own;
    const uint32_t *ranks;
};
/* All ranks; until the communicator is destroyed. */
const struct ph__group *ph__comm_world(const struct ph_comm *comm);
/* The ranks of this rank's host, and those of all hosts that have its place there; hosts are equal in size.
 */
const struct ph__group *ph__comm_host(const struct ph_comm *comm);
const struct ph__group *ph__comm_peers(const struct ph_comm *comm);

/* Which operation it is: `what` is named when a wait for it fails, and in traces. Borrowed while in flight.
 */
struct ph__comm_call {
    uint32_t channel; /* < PH_COMM_MAX_CHANNELS */
    const char *what; /* "embedding.table: pooled vectors" */
};

/* One message; any number of bytes. Several for one rank are received in the order in which they are sent.
 * What a rank sends to itself it may receive where it is: then nothing is copied. */
struct ph__message {
    size_t rank; /* of the world; this one, too */
    void *data;  /* not written where it is sent */
    uint64_t bytes;
};

/* What this rank sends and receives; both lists are read during the call alone. */
struct ph__exchange {
    const struct ph__message *sends, *receives;
    size_t num_sends, num_receives;
};
ph_status ph__comm_exchange_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__exchange *exchange, uint64_t *ticket_out);

/* data (rows, columns) becomes the sum of all members' data, added in their order, every contribution and the
 * sum having gone through the wire format. */
ph_status ph__comm_all_reduce_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, enum ph_wire_format wire, size_t rows, size_t columns, ph_real *data,
    uint64_t *ticket_out);
/* data (sum of rows_of, columns): sum_out (rows_of[own], columns) becomes the sum of all members' parts for
 * this one, every contribution having gone through the wire format. */
ph_status ph__comm_reduce_scatter_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, enum ph_wire_format wire, const size_t *rows_of, size_t columns,
    const ph_real *data, ph_real *sum_out, uint64_t *ticket_out);
/* all_out: the members' bytes, one behind the other; bytes_of by member, borrowed during the call alone. */
ph_status ph__comm_all_gather_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, const void *data, const uint64_t *bytes_of, void *all_out,
    uint64_t *ticket_out);
/* The root's data to all other members. */
ph_status ph__comm_broadcast_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, size_t root, void *data, uint64_t bytes, uint64_t *ticket_out);

/* Moves everything in flight on as far as it goes without waiting. Cheap when nothing is. */
ph_status ph__comm_progress(struct ph_comm *comm);
/* Returns when the operation is done: PH_ERROR_PEER when a rank has ended or timeout_seconds have passed,
 * naming the rank and the operation; what another rank has failed with (ph_comm_fail). One that has been
 * waited for may be again. */
ph_status ph__comm_wait(struct ph_comm *comm, uint64_t ticket);
/* Start and wait in one, on no channel. Whichever, in the same order on all ranks that take part. Of the
 * caller's memory nothing is borrowed beyond the call, also where that fails: this is what to use where
 * memory does not outlive a failure and a copy costs nothing. */
ph_status ph__comm_barrier(struct ph_comm *comm);
/* all_out (world, size): every rank's `size` bytes. */
ph_status ph__comm_gather_once(
    struct ph_comm *comm, const char *what, const void *own, size_t size, void *all_out);
/* The same of bytes_of[rank] bytes of each rank, one behind the other. */
ph_status ph__comm_gather_varied_once(
    struct ph_comm *comm, const char *what, const void *own, const uint64_t *bytes_of, void *all_out);
/* The same for rank 0 alone; all_out of the others is not looked at. */
ph_status ph__comm_collect_once(
    struct ph_comm *comm, const char *what, const void *own, const uint64_t *bytes_of, void *all_out);
/* The root's data, to all ranks. */
ph_status ph__comm_broadcast_once(
    struct ph_comm *comm, const char *what, size_t root, void *data, size_t bytes);
/* From one rank to another one: only these two take part. Nothing of data is written where it is sent. */
ph_status ph__comm_pass_once(
    struct ph_comm *comm, const char *what, size_t from, size_t to, void *data, size_t bytes);
/* Replaces counts (count), as many on all ranks, by their sums over the ranks; alone (comm NULL) they stay.
 * After PH_ERROR_MEMORY or an error of ph__comm_wait, numbers that did not arrive are unchanged. */
ph_status ph__comm_sum_once(struct ph_comm *comm, size_t count, uint64_t *counts);
/* The same for bits: sets each that any rank has set. */
ph_status ph__comm_unite_once(struct ph_comm *comm, size_t num_words, uint64_t *words);

/* PH_ERROR_CONFIG on all ranks unless all give the same text, which is lines "name=value\n" and no name
 * twice: "train.epochs differs between ranks 0 ('3') and 2 ('4')", of the lowest rank that differs and the
 * first such line. Once, of the job. */
ph_status ph__comm_agree(struct ph_comm *comm, const char *text);

/* Each rank gives what it has come to, with the text of the last error: PH_OK where all give that. Else all
 * ranks have the status and the text of the lowest that does not, and the communicator goes on: they may try
 * something else together. */
ph_status ph__comm_share(struct ph_comm *comm, ph_status status);
/* The largest of the numbers that the ranks give, on all of them: of signals, one that any rank has got. */
ph_status ph__comm_largest(struct ph_comm *comm, int number, int *largest_out);

/* ---- work that ranks wait for, however long it takes: comm_work.c ---- */

/* A rank that works tells the others now and then that it goes on, so that nobody takes it for one that
 * hangs: the work calls ph__meanwhile several times within timeout_seconds, which is cheap; that fails when
 * no rank needs the work any more. */
typedef ph_status ph__comm_work(void *context, const struct ph__meanwhile *meanwhile);
/* Lets the first rank do the work. A failure of it ends the job of all. */
ph_status ph__comm_work_by_first(struct ph_comm *comm, ph__comm_work *work, void *context);
/* Lets each rank do its own work; all return the status of the lowest rank that fails, and the job goes on.
 * comm NULL: alone. */
ph_status ph__comm_work_by_all(struct ph_comm *comm, ph__comm_work *work, void *context);

/* Takes the text of each rank, in their order, on the first rank; it ends with a NUL behind its `size` bytes
 * and is borrowed. */
typedef ph_status ph__comm_text_reader(void *context, size_t rank, const char *text, size_t size);
/* Sends this rank's text to the first rank's reader. `what` is the same on all ranks, and named in errors.
 * However many ranks there are, none waits longer than one text takes. A failure of the reader ends the job
 * of all. PH_ERROR_MEMORY; errors of ph__comm_wait. */
ph_status ph__comm_read_texts(struct ph_comm *comm, const char *what, const char *text, size_t size,
    ph__comm_text_reader *reader, void *context);

/* What this rank has sent and waited for since it was created, for reports. */
struct ph__comm_counters {
    const uint64_t *sent_bytes;    /* by rank: payload, this one's own 0 */
    const uint64_t *sent_messages; /* by rank */
    double waited_seconds;         /* in ph__comm_wait: communication that nothing overlapped */
    uint64_t num_operations;
};
struct ph__comm_counters ph__comm_counters(const struct ph_comm *comm);

/* For reports: "Open MPI 4.1.4"; and which of the hosts this rank is on. */
const char *ph__comm_transport(const struct ph_comm *comm);
size_t ph__comm_own_host(const struct ph_comm *comm);

/* Neighbours share a machine and its memory, even where hosts are emulated. Whether two ranks are; how many
 * this one has, it too; and the name of a rank's machine, which another one may have as well. */
bool ph__comm_are_neighbours(const struct ph_comm *comm, size_t a, size_t b);
size_t ph__comm_num_neighbours(const struct ph_comm *comm);
const char *ph__comm_machine_name(const struct ph_comm *comm, size_t rank);

/* ---- profiles ---- */

/* What a rank's operations cost while somebody profiles them: what they were about, what they sent, how long
 * the rank waited for them with nothing else to do, and when each was in flight.
 *
 * A profile is attached to the communicator for as long as what it does is of interest; operations that are
 * started then are profiled until they have been waited for. Nothing is allocated but for what an operation
 * is about for the first time. */

/* All operations with one `what`. */
struct ph__comm_topic {
    const char *what; /* the profile's own copy */
    uint64_t num_operations, sent_bytes;
    uint64_t waited_ns; /* in ph__comm_wait: what nothing overlapped */
};

/* One operation. It was found done when the rank polled or waited, no earlier; times are of ph__clock_ns. */
struct ph__comm_flight {
    uint64_t started_ns, done_ns;
    uint64_t wait_ns, waited_ns; /* when the rank began to wait for it, and for how long it did */
    uint64_t sent_bytes, received_bytes;
    uint32_t topic, num_messages; /* messages: those sent, and those received */
};

/* A start of an operation, or a call of ph__comm_progress, that took long enough to be seen in a picture. */
struct ph__comm_poll {
    uint64_t began_ns, duration_ns;
};

struct ph__comm_profile {
    struct ph_comm *comm;
    size_t world_size;
    uint64_t *sent_bytes; /* (world_size) by rank: payload, this one's own 0 */
    uint64_t waited_ns;
    uint64_t polled_ns; /* to start operations, and in ph__comm_progress while some were in flight */
    uint64_t other_since_ns, other_polled_ns; /* when the wait for somebody else began, and polled_ns then */
    struct ph__comm_topic *topics;
    size_t num_topics, topics_capacity;
    struct ph__comm_flight *flights; /* the first max_flights that were waited for, in that order */
    size_t num_flights, max_flights;
    struct ph__comm_poll *polls; /* the first max_flights of them */
    size_t num_polls;
    uint64_t num_dropped; /* flights and polls without room */
};

/* max_flights 0: none is kept, and no poll. The communicator is borrowed. PH_ERROR_MEMORY. */
ph_status ph__comm_profile_create(
    struct ph_comm *comm, size_t max_flights, struct ph__comm_profile **profile_out);
/* Ends it, too. NULL is fine. */
void ph__comm_profile_destroy(struct ph__comm_profile *profile);

/* From now on the profile counts, or it does not. One at a time does for a communicator. */
void ph__comm_profile_begin(struct ph__comm_profile *profile);
void ph__comm_profile_end(struct ph__comm_profile *profile);

/* Around a wait for an operation that somebody else carries out, such as a hub, into the profile that counts
 * now, if one does. Its bytes are on no link between ranks. PH_ERROR_MEMORY. */
struct ph__comm_other {
    const char *what;
    uint64_t started_ns, sent_bytes, received_bytes;
};
void ph__comm_profile_wait_begin(struct ph_comm *comm);
ph_status ph__comm_profile_wait_end(struct ph_comm *comm, const struct ph__comm_other *other);

#endif
