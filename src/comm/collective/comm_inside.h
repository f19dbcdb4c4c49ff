/* Shared by the files of the communicator; no other room includes it.
 *
 *   comm_create.c     one rank's communicator: created, described, destroyed
 *   comm_join.c       joins the job: transport, ranks, watch; apart, since it alone needs sockets
 *   comm_meeting.c    the first exchange: same build, same options, which ranks are on which host
 *   comm_operation.c  operations in flight: their requests, stages and memory
 *   comm_wait.c       progress and waiting, and how it ends when a rank fails
 *   comm_patience.c   how a waiting rank passes its time
 *   comm_profile.c    costs of operations
 *   comm_exchange.c   operations that only move bytes between any ranks
 *   comm_parts.c      parts that members own, and how members divide the work (comm_parts.h)
 *   comm_reduce.c, comm_gather.c   sums and gatherings, of each kind
 *   comm_once.c       operations that are waited for at once
 *   comm_agree.c      texts that must be alike, and statuses that ranks share */
#ifndef PH_COMM_COMM_INSIDE_H
#define PH_COMM_COMM_INSIDE_H

#include "comm/collective/comm.h"
#include "comm/collective/comm_parts.h"
#include "comm/collective/comm_patience.h"
#include "comm/watch/watch.h"
#include "comm/wire/transport.h"
#include "phloem/comm.h"

/* ---- places: comm_meeting.c ---- */

/* First message of a rank: how it was started, and where it runs. */
struct ph__greeting {
    char transport[16]; /* as requested */
    double timeout_seconds;
    uint64_t ranks_per_host;
    bool has_failed;
    char task[48];
    char host[64], boot[48]; /* two machines may share a name, two containers a boot */
    int64_t process;
    struct ph__processors processors;
};

/* Locations of the ranks. Hosts are counted in the order of their ranks. */
struct ph__comm_places {
    struct ph__greeting *greetings; /* by rank */
    uint32_t *ranks, *peer_ranks;   /* 0, 1, 2 ...; and the ranks of `peers` */
    struct ph__group world, host, peers;
    size_t num_hosts, own_host, ranks_per_host; /* ranks_per_host 0: hosts differ in size */
    /* On this machine, even where hosts are emulated: */
    size_t num_neighbours;   /* ranks, this one included */
    uint64_t num_processors; /* processors that the neighbours may keep busy together */
};

/* ---- operations in flight: comm_operation.c ---- */

/* An operation in flight has a slot, which keeps its memory for the next operation of the same channel, so
 * that a job whose steps are alike allocates nothing after the first. An operation goes through stages. Each
 * stage posts all receives, then all sends; when these requests are done, `advance` begins the next stage, or
 * sets itself to NULL after the last. */

/* Channel of what the communicator itself starts, one at a time, beside all others. */
#define PH_COMM_OWN_CHANNEL PH_COMM_MAX_CHANNELS

#define PH_COMM_STAGES 2 /* tags of an operation, which its stages take in turn */

/* One message of at most cut_bytes. Requests do not move in memory while one is pending. */
struct ph__request {
    struct ph__transport_request request;
    uint32_t rank;
    bool is_send;
};

/* A sum (comm_reduce.c). */
struct ph__reduction {
    struct ph__parts parts;
    struct ph__parts
        sums; /* hierarchical: the inner group's sums, of which the outer one's members own parts */
    size_t sums_at, packed_at; /* in the staging memory */
    ph_real *sum;              /* of the own part */
    bool is_for_all;           /* data of the only array are replaced by the sums */
    unsigned char *staging;    /* the caller's or the operation's */
};

struct ph__operation {
    uint32_t channel;
    bool is_taken, is_done; /* is_done: nothing is left but to wait for it */
    uint64_t ticket;
    const char *what;
    struct ph__comm_profile *profile; /* NULL: not profiled */
    struct ph__comm_flight flight;    /* of the latest profiled operation */
    int stage;
    /* Begins the next stage; NULL in the last one. */
    ph_status (*advance)(struct ph_comm *comm, struct ph__operation *operation);
    size_t round;       /* of a ring */
    uint64_t sum_bytes; /* on the wire, of a sum for all ranks; else 0 */
    struct ph__reduction reduction;
    struct ph__parts gathering; /* parts that members get */
    /* Begins the stage behind a gathering; NULL: there is none. */
    ph_status (*advance_gathered)(struct ph_comm *comm, struct ph__operation *operation);

    struct ph__request *requests;
    uint32_t *pending; /* indices of the requests that are not done, in the order in which they were posted */
    size_t num_requests, num_pending, requests_capacity, pending_capacity;
    unsigned char *staging; /* aligned to PH_ALIGNMENT */
    size_t staging_capacity;
    struct ph__array *arrays; /* those of the parts */
    size_t *bounds;           /* those of arrays whose bounds nobody else keeps */
    size_t arrays_capacity, bounds_capacity;
    struct ph__operation *next_kept; /* next operation that outlives its failed communicator */
};

struct ph__operations {
    struct ph__operation **slots;
    struct ph__operation **flying; /* operations taken and not done */
    size_t num_slots, num_flying, slots_capacity, flying_capacity;
    uint64_t num_started, num_growths; /* num_growths: how often memory was allocated */
    uint64_t num_moves;                /* requests that were found done */
};

struct ph__comm_failure {
    bool has_failed;
    bool is_alike; /* the same on all ranks, no message on its way: they leave as after success */
    struct ph__comm_notice notice; /* its rank speaks, or the lowest other one where that has died */
};

struct ph_comm {
    struct ph__transport transport;
    struct ph__comm_watch watch;
    bool is_watched, has_left;
    uint64_t looked_ns; /* time of the last look at the watch */
    const struct ph__kernels *kernels;
    struct ph__comm_simulation simulation; /* work is NULL: none */
    uint64_t timeout_ns;
    size_t cut_bytes; /* bytes of the largest message */
    struct ph__comm_places places;
    struct ph__comm_choices choices;
    struct ph__operations operations;
    struct ph__patience patience;
    struct ph__comm_failure failure;
    struct ph__comm_profile *profile;     /* counts now; NULL: none does */
    uint64_t *sent_bytes, *sent_messages; /* by rank */
    bool is_uncounted;                    /* neither these nor the profile count what begins */
    uint64_t waited_ns;
    char description[192];
};

/* ---- comm_create.c ---- */

/* Takes the watch over, which is closed with the communicator. Once, on all ranks or on none. */
void ph__comm_attach_watch(struct ph_comm *comm, const struct ph__comm_watch *watch);

/* Sets how many threads each rank keeps busy (default: one), which decides whether a waiting rank takes a
 * core from another. */
void ph__comm_set_threads(struct ph_comm *comm, size_t num_threads);

/* Sets the size at which messages are cut, on all ranks alike, with nothing in flight (default:
 * PH_TRANSPORT_MAX_BYTES). */
void ph__comm_set_cut(struct ph_comm *comm, size_t bytes);

/* ---- comm_operation.c ---- */

/* Takes a slot with room for num_requests requests at a time and staging_bytes of staging memory. Until
 * ph__operation_launch only what was posted is in flight. PH_ERROR_MEMORY; the communicator's failure. */
ph_status ph__operation_take(struct ph_comm *comm, const struct ph__comm_call *call, size_t num_requests,
    size_t staging_bytes, struct ph__operation **operation_out);
/* Makes room for staging; a channel's holds numbers always, or never. PH_ERROR_MEMORY. */
ph_status ph__operation_reserve(
    struct ph_comm *comm, struct ph__operation *operation, size_t bytes, bool is_of_numbers);
/* Make room for as many requests at a time; for lists of parts. PH_ERROR_MEMORY. */
ph_status ph__operation_reserve_requests(
    struct ph_comm *comm, struct ph__operation *operation, size_t num_requests);
ph_status ph__operation_reserve_parts(
    struct ph_comm *comm, struct ph__operation *operation, size_t num_arrays, size_t num_bounds);
/* Returns into how many requests a message is cut: at least one. */
size_t ph__operation_num_cuts(const struct ph_comm *comm, uint64_t bytes);

ph_status ph__operation_receive(
    struct ph_comm *comm, struct ph__operation *operation, size_t rank, void *data, uint64_t bytes);
ph_status ph__operation_send(
    struct ph_comm *comm, struct ph__operation *operation, size_t rank, const void *data, uint64_t bytes);

/* Starts the operation, whose first stage the caller has posted. */
ph_status ph__operation_launch(struct ph_comm *comm, struct ph__operation *operation, uint64_t *ticket_out);
/* Moves the operation on as far as it can, at last to is_done. */
ph_status ph__operation_poll(struct ph_comm *comm, struct ph__operation *operation);

struct ph__operation *ph__operation_find(
    const struct ph_comm *comm, uint64_t ticket); /* NULL: not in flight */
/* Returns the rank of the first pending receive, or send; *num_others_out counts the other ranks. The
 * operation is pending. */
size_t ph__operation_waits_for(const struct ph__operation *operation, size_t *num_others_out);

/* Frees the operations. Those with pending requests keep their memory until the process ends: a message may
 * arrive. */
void ph__operations_fini(struct ph__operations *operations);

/* ---- comm_meeting.c ---- */

/* Sets up the world, with greetings of zeros. PH_ERROR_MEMORY; fini is fine then too. */
ph_status ph__comm_places_init(struct ph__comm_places *places, size_t rank, size_t world_size);
void ph__comm_places_fini(struct ph__comm_places *places);

/* Returns true when two ranks run on one machine. */
bool ph__comm_places_are_neighbours(const struct ph__comm_places *places, size_t a, size_t b);

/* Fills the rest from the greetings, whose ranks_per_host is the same on all ranks and divides the world.
 * PH_ERROR_CONFIG: the ranks are not numbered host by host. */
ph_status ph__comm_places_find(struct ph__comm_places *places);

/* Exchanges greetings and fills comm->places. PH_ERROR_CONFIG is the same on all ranks, and leaves nothing in
 * flight. */
ph_status ph__comm_meet(struct ph_comm *comm, const struct ph_comm_options *options);
/* Writes such as "rank 3 (process 4711 on node7)". */
void ph__comm_name_rank(const struct ph_comm *comm, size_t rank, char *name_out, size_t size);

/* ---- comm_exchange.c ---- */

/* Meets all ranks in a barrier that errors call `what`. */
ph_status ph__comm_meet_for(struct ph_comm *comm, const char *what);

/* ---- comm_gather.c ---- */

/* Returns how many requests a stage of gathering has, at most. */
size_t ph__gather_requests(const struct ph_comm *comm, const struct ph__parts *parts);
/* Posts the first stage of operation->gathering; advance_gathered follows the last one. */
ph_status ph__gather_begin(struct ph_comm *comm, struct ph__operation *operation);

/* ---- comm_profile.c ---- */

/* Record that an operation begins; sends or receives a message; has been found done; has been waited for
 * since since_ns. Without a profile they cost no time. take: PH_ERROR_MEMORY. */
ph_status ph__comm_profile_take(struct ph_comm *comm, struct ph__operation *operation);
void ph__comm_profile_message(struct ph__operation *operation, size_t rank, bool is_send, uint64_t bytes);
void ph__comm_profile_done(struct ph__operation *operation);
void ph__comm_profile_waited(struct ph__operation *operation, uint64_t since_ns, uint64_t waited_ns);
/* Records that starting an operation, or polling all in flight, between two computations has taken the time
 * since since_ns. */
void ph__comm_profile_polled(struct ph__comm_profile *profile, uint64_t since_ns);

/* ---- comm_wait.c ---- */

/* Returns PH_OK, or the communicator's failure, recorded for this thread. */
ph_status ph__comm_check(const struct ph_comm *comm);
/* Fails the communicator unless it has failed: with the watch's notice where one comes soon, else as this
 * rank's failure. */
ph_status ph__comm_fail_here(struct ph_comm *comm, const char *format, ...) PH_PRINTF(2, 3);
/* Fails the communicator unless it has failed, while ranks come together and there is nobody to tell; `rank`
 * speaks. */
ph_status ph__comm_fail_early(struct ph_comm *comm, size_t rank, ph_status status, const char *text);
/* Fails the communicator unless it has failed: all ranks have found the same error by themselves, none is
 * told, and rank 0 speaks. */
ph_status ph__comm_fail_alike(struct ph_comm *comm, ph_status status, const char *text);

#endif
