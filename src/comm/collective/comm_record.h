/* What a rank's operations cost while somebody records them: what they were about, what they sent, how long the rank waited for
 * them with nothing else to do, and when each was in flight.
 *
 * A record is attached to the communicator for as long as what it does is of interest; operations that are started then are
 * recorded until they have been waited for. Nothing is allocated but for what an operation is about for the first time. */
#ifndef PH_COMM_COMM_RECORD_H
#define PH_COMM_COMM_RECORD_H

#include "comm/collective/comm.h"

/* All operations with one `what`. */
struct ph_comm_topic {
    const char *what; /* the record's own copy */
    uint64_t num_operations, sent_bytes;
    uint64_t waited_ns; /* in ph__comm_wait: what nothing overlapped */
};

/* One operation. It was found done when the rank polled or waited, no earlier; times are of ph__clock_ns. */
struct ph_comm_flight {
    uint64_t started_ns, done_ns;
    uint64_t wait_ns, waited_ns; /* when the rank began to wait for it, and for how long it did */
    uint64_t sent_bytes, received_bytes;
    uint32_t topic, num_messages; /* messages: those sent, and those received */
};

/* A start of an operation, or a call of ph__comm_progress, that took long enough to be seen in a picture. */
struct ph_comm_poll {
    uint64_t began_ns, duration_ns;
};

struct ph_comm_record {
    struct ph_comm *comm;
    size_t world_size;
    uint64_t *sent_bytes; /* (world_size) by rank: payload, this one's own 0 */
    uint64_t waited_ns;
    uint64_t polled_ns; /* to start operations, and in ph__comm_progress while some were in flight */
    uint64_t other_since_ns, other_polled_ns; /* when the wait for somebody else began, and polled_ns then */
    struct ph_comm_topic *topics;
    size_t num_topics, topics_capacity;
    struct ph_comm_flight *flights; /* the first max_flights that were waited for, in that order */
    size_t num_flights, max_flights;
    struct ph_comm_poll *polls; /* the first max_flights of them */
    size_t num_polls;
    uint64_t num_dropped; /* flights and polls without room */
};

/* max_flights 0: none is kept, and no poll. The communicator is borrowed. PH_ERROR_MEMORY. */
ph_status ph__comm_record_create(
    struct ph_comm *comm, size_t max_flights, struct ph_comm_record **record_out);
/* Ends it, too. NULL is fine. */
void ph__comm_record_destroy(struct ph_comm_record *record);

/* Around a wait for an operation that somebody else carries out, such as a hub, into the record that counts now, if one does. Its
 * bytes are on no link between ranks. PH_ERROR_MEMORY. */
struct ph_comm_other {
    const char *what;
    uint64_t started_ns, sent_bytes, received_bytes;
};
void ph__comm_record_wait_begin(struct ph_comm *comm);
ph_status ph__comm_record_wait_end(struct ph_comm *comm, const struct ph_comm_other *other);

/* From now on the record counts, or it does not. One at a time does for a communicator. */
void ph__comm_record_begin(struct ph_comm_record *record);
void ph__comm_record_end(struct ph_comm_record *record);

#endif
