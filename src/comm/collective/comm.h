/* Inside of communicators: exchanges between ranks that run while the caller computes.
 *
 * A caller starts an operation, polls to move it on, and waits for it by its ticket. Nothing here starts a
 * thread: the executor polls between two operators, and waiting is polling. All collectives are exchanges of
 * messages and, where they sum, additions in the order of the ranks, so that every rank gets the same bits in
 * every run.
 *
 * A *channel* tells operations apart. Two operations in flight between the same ranks at once have different
 * channels, and all ranks that take part start the operations of one channel in the same order. Ranks that
 * take no part in an operation do not start it.
 *
 * A ticket is a whole number of up to 53 bits: a double holds it exactly, so that a program may carry it
 * among its scalars.
 *
 * Memory given to an operation is borrowed until the operation has been waited for. A failed operation keeps
 * it until the process ends, since a message may still arrive. After a failure every call returns the same
 * status and text. */
#ifndef PH_COMM_COMM_H
#define PH_COMM_COMM_H

#include "base/thread/stop.h"
#include "comm/wire/transport.h"
#include "comm/wire/wire_format.h"
#include "phloem/comm.h"

#define PH_COMM_MAX_CHANNELS 8192u

/* The ranks that take part in a collective, ascending; own: this rank's place among them. Borrowed while in
 * flight. */
struct ph__group {
    size_t size, own;
    const uint32_t *ranks;
};
/* Creates a communicator on all ranks of the transport, as ph_comm_create does. The transport is copied,
 * taken over and closed with the communicator. Until a watch is attached, the end of another rank is noticed
 * only by timeout. */
ph_status ph__comm_create_on(
    const struct ph__transport *transport, const struct ph_comm_options *options, struct ph_comm **comm_out);

/* Returns all ranks; valid until the communicator is destroyed. */
const struct ph__group *ph__comm_world(const struct ph_comm *comm);
/* ph__comm_host returns the ranks of this rank's host; ph__comm_peers, on each host, the rank with the same
 * place there as this one. Hosts are equal in size. */
const struct ph__group *ph__comm_host(const struct ph_comm *comm);
const struct ph__group *ph__comm_peers(const struct ph_comm *comm);

/* Identifies an operation: failed waits and traces name `what`. Borrowed while in flight. */
struct ph__comm_call {
    uint32_t channel; /* < PH_COMM_MAX_CHANNELS */
    const char *what; /* "embedding.table: pooled vectors" */
};

/* One message of any number of bytes. Several for one rank are received in the order in which they are sent.
 * A rank may receive its own message at the address it sends from: nothing is copied then. */
struct ph__message {
    size_t rank; /* in the world; may be this rank */
    void *data;  /* not written by a send */
    uint64_t bytes;
};

/* All that this rank sends and receives; both lists are read during the call alone. */
struct ph__exchange {
    const struct ph__message *sends, *receives;
    size_t num_sends, num_receives;
};
ph_status ph__comm_exchange_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__exchange *exchange, uint64_t *ticket_out);

/* Replaces data (rows, columns) by the sum of all members' data, added in their order unless another
 * collective than exchange is chosen: comm_collectives.h. Every contribution and the sum go through the wire
 * format. staging: ph__comm_staging_bytes of memory, aligned to PH_ALIGNMENT and
 * in use until the sum is there; NULL: memory that the channel keeps. */
ph_status ph__comm_all_reduce_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, enum ph_wire_format wire, size_t rows, size_t columns, ph_real *data,
    void *staging, uint64_t *ticket_out);
size_t ph__comm_staging_bytes(const struct ph_comm *comm, const struct ph__group *group,
    enum ph_wire_format wire, size_t rows, size_t columns);
/* data (sum of rows_of, columns): sets sum_out (rows_of[own], columns) to the sum of all members' parts for
 * this one, added as in ph__comm_all_reduce_start. Every contribution goes through the wire format. */
ph_status ph__comm_reduce_scatter_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, enum ph_wire_format wire, const size_t *rows_of, size_t columns,
    const ph_real *data, ph_real *sum_out, uint64_t *ticket_out);
/* Fills all_out with the members' bytes, one behind the other; bytes_of by member, borrowed during the call
 * alone. */
ph_status ph__comm_all_gather_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, const void *data, const uint64_t *bytes_of, void *all_out,
    uint64_t *ticket_out);
/* Sends the root's data to all other members. */
ph_status ph__comm_broadcast_start(struct ph_comm *comm, const struct ph__comm_call *call,
    const struct ph__group *group, size_t root, void *data, uint64_t bytes, uint64_t *ticket_out);

/* Moves everything in flight on as far as it goes without waiting. Cheap when nothing is in flight. */
ph_status ph__comm_progress(struct ph_comm *comm);
/* Returns when the operation is done, at once when it has been waited for before. PH_ERROR_PEER naming the
 * rank and the operation when a rank has ended or timeout_seconds have passed; the status with which another
 * rank has failed (ph_comm_fail). */
ph_status ph__comm_wait(struct ph_comm *comm, uint64_t ticket);
/* Meets all ranks. This and the functions below start and wait in one, on no channel; all ranks that take
 * part call them in the same order. They borrow the caller's memory during the call alone, also when they
 * fail: use them where memory does not outlive a failure and a copy costs nothing. */
ph_status ph__comm_barrier(struct ph_comm *comm);
/* Fills all_out (world, size) with every rank's `size` bytes. */
ph_status ph__comm_gather_once(
    struct ph_comm *comm, const char *what, const void *own, size_t size, void *all_out);
/* Fills all_out with bytes_of[rank] bytes of each rank, one behind the other. */
ph_status ph__comm_gather_varied_once(
    struct ph_comm *comm, const char *what, const void *own, const uint64_t *bytes_of, void *all_out);
/* Gathers bytes_of[rank] bytes of each rank on rank 0 alone; the other ranks' all_out is not read. */
ph_status ph__comm_collect_once(
    struct ph_comm *comm, const char *what, const void *own, const uint64_t *bytes_of, void *all_out);
/* Sends the root's data to all ranks. */
ph_status ph__comm_broadcast_once(
    struct ph_comm *comm, const char *what, size_t root, void *data, size_t bytes);
/* Sends data from one rank to another; only these two take part. The sender's data are not written. */
ph_status ph__comm_pass_once(
    struct ph_comm *comm, const char *what, size_t from, size_t to, void *data, size_t bytes);
/* Replaces counts (count), as many on all ranks, by their sums over the ranks; comm NULL leaves them as they
 * are. After PH_ERROR_MEMORY or an error of ph__comm_wait, numbers that did not arrive are unchanged. */
ph_status ph__comm_sum_once(struct ph_comm *comm, size_t count, uint64_t *counts);
/* Sets each bit that any rank has set; otherwise as ph__comm_sum_once. */
ph_status ph__comm_unite_once(struct ph_comm *comm, size_t num_words, uint64_t *words);

/* Compares the ranks' texts, which are lines "name=value\n" with each name once. Called once a job.
 * PH_ERROR_CONFIG on all ranks unless all texts are the same: "train.epochs differs between ranks 0 ('3') and
 * 2 ('4')", for the lowest rank that differs and the first such line. */
ph_status ph__comm_agree(struct ph_comm *comm, const char *text);

/* Shares each rank's status, with the text of the last error. Returns PH_OK where all give PH_OK; else all
 * ranks get the status and text of the lowest rank that failed. The communicator goes on: the ranks may try
 * something else together. */
ph_status ph__comm_share(struct ph_comm *comm, ph_status status);
/* Sets *largest_out on all ranks to the largest number that any rank gives, such as a signal that one has
 * got. */
ph_status ph__comm_largest(struct ph_comm *comm, int number, int *largest_out);

/* ---- work that ranks wait for, however long it takes: comm_work.c ---- */

/* Work that the other ranks wait for. It calls ph__meanwhile, which is cheap, several times within
 * timeout_seconds: the others learn that this rank goes on and do not take it for hung. ph__meanwhile fails
 * when no rank needs the work any more. */
typedef ph_status ph__comm_work(void *context, const struct ph__meanwhile *meanwhile);
/* Lets the first rank do the work. A failure of the work ends the job on all ranks. */
ph_status ph__comm_work_by_first(struct ph_comm *comm, ph__comm_work *work, void *context);
/* Lets each rank do its own work; all return the status of the lowest rank that fails, and the job goes on.
 * comm NULL: alone. */
ph_status ph__comm_work_by_all(struct ph_comm *comm, ph__comm_work *work, void *context);

/* Takes each rank's text, in the order of the ranks, on the first rank. The text is borrowed and ends with a
 * NUL behind its `size` bytes. */
typedef ph_status ph__comm_text_reader(void *context, size_t rank, const char *text, size_t size);
/* Sends this rank's text to the first rank's reader. `what` is the same on all ranks, and named in errors. No
 * rank waits longer than one text takes, however many ranks there are. A failure of the reader ends the job
 * on all ranks. PH_ERROR_MEMORY; errors of ph__comm_wait. */
ph_status ph__comm_read_texts(struct ph_comm *comm, const char *what, const char *text, size_t size,
    ph__comm_text_reader *reader, void *context);

/* ---- simulation (sim/): sums of absent numbers, and traces ---- */

enum ph__wire_work { PH_WIRE_PACKS, PH_WIRE_UNPACKS, PH_WIRE_ADDS };

struct ph__comm_simulation { /* zero-initialised: sums are calculated */
    void *context;           /* borrowed */
    /* Called in place of arithmetic on (rows, columns) numbers in, or for, that wire format. */
    void (*work)(
        void *context, enum ph__wire_work work, enum ph_wire_format wire, size_t rows, size_t columns);
    /* NULL: none. Called when a profile begins to count, or ends. */
    void (*counts)(void *context, bool is_counting);
    /* NULL: none. Called when an operation of that channel has been waited for. */
    void (*waited)(void *context, uint32_t channel);
};
void ph__comm_simulate(struct ph_comm *comm, const struct ph__comm_simulation *simulation);
bool ph__comm_is_simulated(const struct ph_comm *comm);

/* Returns the channel of the operations whose messages have that tag. */
uint32_t ph__comm_channel_of(int tag);

/* Lets operations be counted, or not: those of an operator that is only being measured are not. */
void ph__comm_set_counting(struct ph_comm *comm, bool is_counting);

/* Counts of what this rank has sent and waited for since the communicator was created, for reports. */
struct ph__comm_counters {
    const uint64_t *sent_bytes;    /* by rank: payload; 0 for this rank */
    const uint64_t *sent_messages; /* by rank */
    double waited_seconds;         /* in ph__comm_wait: communication that no computation overlapped */
    uint64_t num_operations;
};
struct ph__comm_counters ph__comm_counters(const struct ph_comm *comm);

/* Return the transport's name, such as "Open MPI 4.1.4", and the number of this rank's host, for reports. */
const char *ph__comm_transport(const struct ph_comm *comm);
size_t ph__comm_own_host(const struct ph_comm *comm);

/* Neighbours share a machine and its memory, even where hosts are emulated. ph__comm_num_neighbours counts
 * this rank too; several ranks may have the same machine name. */
bool ph__comm_are_neighbours(const struct ph_comm *comm, size_t a, size_t b);
size_t ph__comm_num_neighbours(const struct ph_comm *comm);
const char *ph__comm_machine_name(const struct ph_comm *comm, size_t rank);

/* ---- profiles ---- */

/* A profile records what a rank's operations cost: their subjects, what they sent, how long the rank waited
 * for them with nothing else to do, and when each was in flight.
 *
 * A profile is attached to the communicator for as long as the caller wants to record. Operations started
 * then are profiled until they have been waited for. Memory is allocated only for the first operation of a
 * subject. */

/* Totals of all operations with one `what`. */
struct ph__comm_topic {
    const char *what; /* the profile's own copy */
    uint64_t num_operations, sent_bytes;
    uint64_t waited_ns; /* in ph__comm_wait: time that no computation overlapped */
};

/* One operation; times are of ph__clock_ns. done_ns is when the rank found it done by polling or waiting. */
struct ph__comm_flight {
    uint64_t started_ns, done_ns;
    uint64_t wait_ns, waited_ns; /* when the rank began to wait for the operation, and for how long */
    uint64_t sent_bytes, received_bytes;
    uint32_t topic, num_messages; /* num_messages: sent and received */
};

/* A start of an operation, or a call of ph__comm_progress, long enough to be seen in a picture. */
struct ph__comm_poll {
    uint64_t began_ns, duration_ns;
};

struct ph__comm_profile {
    struct ph_comm *comm;
    size_t world_size;
    uint64_t *sent_bytes; /* (world_size) by rank: payload; 0 for this rank */
    uint64_t waited_ns;
    uint64_t polled_ns; /* spent starting operations, and in ph__comm_progress while some were in flight */
    uint64_t other_since_ns, other_polled_ns; /* when an outside wait began, and polled_ns then */
    struct ph__comm_topic *topics;
    size_t num_topics, topics_capacity;
    struct ph__comm_flight *flights; /* the first max_flights that were waited for, in that order */
    size_t num_flights, max_flights;
    struct ph__comm_poll *polls; /* the first max_flights polls */
    size_t num_polls;
    uint64_t num_dropped;       /* flights and polls that found no room */
    uint64_t sum_bytes, sum_ns; /* the largest sum for all ranks since the owner set these to 0: how long it
                                 * was in flight */
};

/* Creates a profile that borrows the communicator. max_flights 0 keeps no flight and no poll.
 * PH_ERROR_MEMORY. */
ph_status ph__comm_profile_create(
    struct ph_comm *comm, size_t max_flights, struct ph__comm_profile **profile_out);
/* Also ends the profile. NULL is fine. */
void ph__comm_profile_destroy(struct ph__comm_profile *profile);

/* Start and stop counting. A communicator has one counting profile at a time. */
void ph__comm_profile_begin(struct ph__comm_profile *profile);
void ph__comm_profile_end(struct ph__comm_profile *profile);

/* An operation outside the communicator, such as one of a hub. The two calls below enclose the wait for it
 * and add it to the profile that counts now, if there is one. Its bytes are on no link between ranks.
 * PH_ERROR_MEMORY. */
struct ph__comm_other {
    const char *what;
    uint64_t started_ns, sent_bytes, received_bytes;
};
void ph__comm_profile_wait_begin(struct ph_comm *comm);
ph_status ph__comm_profile_wait_end(struct ph_comm *comm, const struct ph__comm_other *other);

#endif
