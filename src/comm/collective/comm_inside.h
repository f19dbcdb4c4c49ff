/* What the files of the communicator share; no other room includes it.
 *
 *   comm_create.c     one rank's end: made, described, ended
 *   comm_join.c       into the job: its transport, its ranks, its watch; apart, for it alone needs sockets
 *   comm_meeting.c    what ranks tell each other first, and which are on which host
 *   comm_operation.c  operations in flight: their requests, stages and memory
 *   comm_wait.c       progress and waiting, and how it ends when a rank fails
 *   comm_patience.c   how a rank passes its time until something comes
 *   comm_profile.c     what operations cost
 *   comm_exchange.c, comm_reduce.c   the operations themselves
 *   comm_once.c       those that are waited for at once
 *   comm_agree.c      what ranks have to have alike */
#ifndef PH_COMM_COMM_INSIDE_H
#define PH_COMM_COMM_INSIDE_H

#include "comm/collective/comm.h"
#include "comm/collective/comm_patience.h"
#include "comm/watch/watch.h"
#include "comm/wire/transport.h"
#include "phloem/comm.h"

/* ---- places: comm_meeting.c ---- */

/* What a rank says of itself before anything else. */
struct ph__greeting {
    char transport[16]; /* as it was asked for */
    double timeout_seconds;
    uint64_t ranks_per_host;
    bool has_failed;
    char task[48];
    char host[64], boot[48]; /* two machines may share a name, two containers a boot */
    int64_t process;
    struct ph__processors processors;
};

/* Who is where. Hosts are counted in the order of their ranks. */
struct ph__comm_places {
    struct ph__greeting *greetings; /* by rank */
    uint32_t *ranks, *peer_ranks;   /* 0, 1, 2 ...; and those of `peers` */
    struct ph__group world, host, peers;
    size_t num_hosts, own_host, ranks_per_host; /* ranks_per_host 0: they differ */
    /* On this machine, even where hosts are emulated: */
    size_t num_neighbours;   /* ranks, this one too */
    uint64_t num_processors; /* that they may keep busy together */
};

/* ---- operations in flight: comm_operation.c ---- */

/* An operation in flight has a slot, which keeps its memory for the next operation of the same channel, so
 * that a job whose steps are alike allocates nothing after the first. It goes through stages: of each all
 * receives are posted, then all sends, and when these requests are done its `advance` begins the next stage,
 * or says that there is none. */

/* What the communicator itself starts, one at a time, beside all channels. */
#define PH_COMM_OWN_CHANNEL PH_COMM_MAX_CHANNELS

#define PH_COMM_STAGES 2 /* of any operation, at most */

/* One message of at most cut_bytes. Where requests lie does not change while one is pending. */
struct ph__request {
    struct ph__transport_request request;
    uint32_t rank;
    bool is_send;
};

/* A sum in the wire format: what a member sends to the part of each other one, and what it gets for its own
 * (comm_reduce.c). */
struct ph__reduction {
    const struct ph__group *group;
    enum ph_wire_format wire;
    size_t rows, columns; /* of all parts together */
    size_t own_rows;
    ph_real *data;     /* all_reduce: (rows, columns); else NULL */
    ph_real *sum;      /* (own_rows, columns) */
    size_t slot_bytes; /* of a contribution to the own part, aligned */
};

struct ph__operation {
    uint32_t channel;
    bool is_taken, is_done; /* is_done: all but waited for */
    uint64_t ticket;
    const char *what;
    struct ph__comm_profile *profile; /* NULL: it is not profiled */
    struct ph__comm_flight flight;    /* of the latest that was */
    int stage;
    /* Begins the next stage; NULL: there is none. */
    ph_status (*advance)(struct ph_comm *comm, struct ph__operation *operation);
    struct ph__reduction reduction;

    struct ph__request *requests;
    uint32_t *pending; /* those of `requests` that are not done, in the order in which they were posted */
    size_t num_requests, num_pending, requests_capacity, pending_capacity;
    unsigned char *staging; /* aligned to PH_ALIGNMENT */
    size_t staging_capacity;
    struct ph__operation *next_kept; /* behind the end of a communicator that has failed */
};

struct ph__operations {
    struct ph__operation **slots;
    struct ph__operation **flying; /* those taken that are not done */
    size_t num_slots, num_flying, slots_capacity, flying_capacity;
    uint64_t num_started, num_growths; /* growths: how often memory was asked for */
    uint64_t num_moves;                /* requests that were found done */
};

struct ph__comm_failure {
    bool has_failed;
    bool is_alike; /* on all ranks, with nothing on its way: they leave as those that are done do */
    struct ph__comm_notice notice; /* a rank that has failed speaks for itself; else the lowest other one */
};

struct ph_comm {
    struct ph__transport transport;
    struct ph__comm_watch watch;
    bool is_watched, has_left;
    uint64_t looked_ns; /* when the watch was looked at last */
    const struct ph__kernels *kernels;
    uint64_t timeout_ns;
    size_t cut_bytes; /* the most of one message */
    struct ph__comm_places places;
    struct ph__operations operations;
    struct ph__patience patience;
    struct ph__comm_failure failure;
    struct ph__comm_profile *profile;     /* that counts now; NULL: none does */
    uint64_t *sent_bytes, *sent_messages; /* by rank */
    uint64_t waited_ns;
    char description[192];
};

/* ---- comm_create.c ---- */

/* As ph_comm_create, on all ranks of the transport, which is copied, taken over and closed with the
 * communicator. Until a watch is attached, a rank that has ended is missed only when the time to wait for it
 * is over. */
ph_status ph__comm_create_on(
    const struct ph__transport *transport, const struct ph_comm_options *options, struct ph_comm **comm_out);

/* Takes the watch over, which is closed with the communicator. Once, on all ranks or on none. */
void ph__comm_attach_watch(struct ph_comm *comm, const struct ph__comm_watch *watch);

/* How many threads each rank keeps busy (before: one), which says whether a rank that waits takes a core from
 * another. */
void ph__comm_set_threads(struct ph_comm *comm, size_t num_threads);

/* Messages are cut at so many bytes, on all ranks alike (before: PH_TRANSPORT_MAX_BYTES); with nothing in
 * flight. */
void ph__comm_set_cut(struct ph_comm *comm, size_t bytes);

/* ---- comm_operation.c ---- */

/* A slot with room for that many requests at a time and bytes of staging memory. Until ph__operation_launch
 * nothing is in flight but what was posted. PH_ERROR_MEMORY; what the communicator has failed with. */
ph_status ph__operation_take(struct ph_comm *comm, const struct ph__comm_call *call, size_t num_requests,
    size_t staging_bytes, struct ph__operation **operation_out);
/* How many requests a message of so many bytes is: at least one. */
size_t ph__operation_num_cuts(const struct ph_comm *comm, uint64_t bytes);

ph_status ph__operation_receive(
    struct ph_comm *comm, struct ph__operation *operation, size_t rank, void *data, uint64_t bytes);
ph_status ph__operation_send(
    struct ph_comm *comm, struct ph__operation *operation, size_t rank, const void *data, uint64_t bytes);

/* The first stage has been posted. */
ph_status ph__operation_launch(struct ph_comm *comm, struct ph__operation *operation, uint64_t *ticket_out);
/* Goes on as far as it can, at last to is_done. */
ph_status ph__operation_poll(struct ph_comm *comm, struct ph__operation *operation);

struct ph__operation *ph__operation_find(
    const struct ph_comm *comm, uint64_t ticket); /* NULL: there is none */
/* Whom it waits for: the rank of its first pending receive, or send; and how many others. It is pending. */
size_t ph__operation_waits_for(const struct ph__operation *operation, size_t *num_others_out);

/* Memory of operations that still have requests pending is kept until the process ends: a message may arrive.
 */
void ph__operations_fini(struct ph__operations *operations);

/* ---- comm_meeting.c ---- */

/* The world, with greetings of zeros. PH_ERROR_MEMORY; then fini is fine. */
ph_status ph__comm_places_init(struct ph__comm_places *places, size_t rank, size_t world_size);
void ph__comm_places_fini(struct ph__comm_places *places);

/* Whether two ranks run on one machine. */
bool ph__comm_places_are_neighbours(const struct ph__comm_places *places, size_t a, size_t b);

/* All the rest, from the greetings, whose ranks_per_host is one and the same and divides the world.
 * PH_ERROR_CONFIG: the ranks are not numbered host by host. */
ph_status ph__comm_places_find(struct ph__comm_places *places);

/* Exchanges greetings and fills comm->places. PH_ERROR_CONFIG: the same on all ranks, and nothing is on its
 * way then. */
ph_status ph__comm_meet(struct ph_comm *comm, const struct ph_comm_options *options);
/* "rank 3 (process 4711 on node7)" */
void ph__comm_name_rank(const struct ph_comm *comm, size_t rank, char *name_out, size_t size);

/* ---- comm_exchange.c ---- */

/* A barrier that is called so where a rank is waited for in vain. */
ph_status ph__comm_meet_for(struct ph_comm *comm, const char *what);

/* ---- comm_profile.c ---- */

/* An operation begins; sends or receives a message; has been found done; has been waited for, from since_ns
 * on. What is not recorded costs no time. take: PH_ERROR_MEMORY. */
ph_status ph__comm_profile_take(struct ph_comm *comm, struct ph__operation *operation);
void ph__comm_profile_message(struct ph__operation *operation, size_t rank, bool is_send, uint64_t bytes);
void ph__comm_profile_done(struct ph__operation *operation);
void ph__comm_profile_waited(struct ph__operation *operation, uint64_t since_ns, uint64_t waited_ns);
/* An operation has been started, or all that is in flight polled, between two computations, from since_ns on.
 */
void ph__comm_profile_polled(struct ph__comm_profile *profile, uint64_t since_ns);

/* ---- comm_wait.c ---- */

/* PH_OK, or what the communicator has failed with, recorded for this thread. */
ph_status ph__comm_check(const struct ph_comm *comm);
/* Fails unless it has: with a notice of the watch that explains it, where one comes soon, else as this rank's
 * failure. */
ph_status ph__comm_fail_here(struct ph_comm *comm, const char *format, ...) PH_PRINTF(2, 3);
/* Unless it has failed: while ranks come together, when there is nobody to tell; `rank` speaks. */
ph_status ph__comm_fail_early(struct ph_comm *comm, size_t rank, ph_status status, const char *text);
/* Unless it has failed: all ranks have come to the same error by themselves, none is told, and rank 0 speaks.
 */
ph_status ph__comm_fail_alike(struct ph_comm *comm, ph_status status, const char *text);

#endif
