/* What the files of the communicator share; no other room includes it.
 *
 *   comm.c            one rank's end: made, described, ended
 *   comm_join.c       into the job: its transport, its ranks, its watch
 *   comm_meeting.c    what ranks tell each other first
 *   comm_places.c     which ranks are on which host
 *   comm_operation.c  operations in flight: their requests, stages and memory
 *   comm_wait.c       progress and waiting
 *   comm_patience.c   how a rank passes its time until something comes
 *   comm_failure.c    how it ends when a rank fails
 *   comm_record.c     what is recorded of operations
 *   comm_exchange.c, comm_gather.c, comm_reduce.c   the operations themselves
 *   comm_once.c       those that are waited for at once
 *   comm_agree.c      what ranks have to have alike */
#ifndef PH_COMM_COMM_INSIDE_H
#define PH_COMM_COMM_INSIDE_H

#include "comm/collective/comm.h"
#include "comm/collective/comm_operation.h"
#include "comm/collective/comm_patience.h"
#include "comm/collective/comm_places.h"
#include "comm/watch/watch.h"
#include "comm/wire/transport.h"

struct ph_comm_failure {
    bool has_failed;
    bool is_alike; /* on all ranks, with nothing on its way: they leave as those that are done do */
    struct ph_comm_notice notice; /* a rank that has failed speaks for itself; else the lowest other one */
};

struct ph_comm {
    struct ph_transport transport;
    struct ph_comm_watch watch;
    bool is_watched, has_left;
    uint64_t looked_ns; /* when the watch was looked at last */
    const struct ph_kernels *kernels;
    uint64_t timeout_ns;
    size_t cut_bytes; /* the most of one message */
    struct ph_comm_places places;
    struct ph_operations operations;
    struct ph_patience patience;
    struct ph_comm_failure failure;
    struct ph_comm_record *record;        /* that counts now; NULL: none does */
    uint64_t *sent_bytes, *sent_messages; /* by rank */
    uint64_t waited_ns;
    char description[192];
};

/* ---- comm_meeting.c ---- */

/* Exchanges greetings and fills comm->places. PH_ERROR_CONFIG: the same on all ranks, and nothing is on its way then. */
ph_status ph__comm_meet(struct ph_comm *comm, const struct ph_comm_options *options);
/* "rank 3 (process 4711 on node7)" */
void ph__comm_name_rank(const struct ph_comm *comm, size_t rank, char *name_out, size_t size);

/* ---- comm_exchange.c ---- */

/* A barrier that is called so where a rank is waited for in vain. */
ph_status ph__comm_meet_for(struct ph_comm *comm, const char *what);

/* ---- comm_record.c ---- */

/* An operation begins; sends or receives a message; has been found done; has been waited for, from since_ns on. What is not
 * recorded costs no time. take: PH_ERROR_MEMORY. */
ph_status ph__record_take(struct ph_comm *comm, struct ph_operation *operation);
void ph__record_message(struct ph_operation *operation, size_t rank, bool is_send, uint64_t bytes);
void ph__record_done(struct ph_operation *operation);
void ph__record_waited(struct ph_operation *operation, uint64_t since_ns, uint64_t waited_ns);
/* An operation has been started, or all that is in flight polled, between two computations, from since_ns on. */
void ph__record_polled(struct ph_comm_record *record, uint64_t since_ns);

/* ---- comm_failure.c ---- */

/* PH_OK, or what the communicator has failed with, recorded for this thread. */
ph_status ph__comm_check(const struct ph_comm *comm);
/* Fails unless it has: with a notice of the watch that explains it, where one comes soon, else as this rank's failure. */
ph_status ph__comm_fail_here(struct ph_comm *comm, const char *format, ...) PH_PRINTF(2, 3);
/* The same for `rank`, which was waited for in vain. */
ph_status ph__comm_fail_for(struct ph_comm *comm, size_t rank, const char *text);
/* Unless it has failed: all ranks have come to the same error by themselves, none is told, and rank 0 speaks. */
ph_status ph__comm_fail_alike(struct ph_comm *comm, ph_status status, const char *text);
/* Unless it has failed: while ranks come together, when there is nobody to tell; `rank` speaks. */
ph_status ph__comm_fail_early(struct ph_comm *comm, size_t rank, ph_status status, const char *text);
/* Looks at the watch if that was `interval_ns` ago. */
ph_status ph__comm_look(struct ph_comm *comm, uint64_t now_ns, uint64_t interval_ns);

#endif
