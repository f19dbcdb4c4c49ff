/* Operations in flight. One has a slot, which keeps its memory for the next operation of the same channel, so that a job whose
 * steps are alike allocates nothing after the first. It goes through stages: of each all receives are posted, then all sends,
 * and when these requests are done its `advance` begins the next stage, or says that there is none. */
#ifndef PH_COMM_COMM_OPERATION_H
#define PH_COMM_COMM_OPERATION_H

#include "comm/collective/comm.h"
#include "comm/collective/comm_record.h"
#include "comm/wire/transport.h"

/* What the communicator itself starts, one at a time, beside all channels. */
#define PH_COMM_OWN_CHANNEL PH_COMM_MAX_CHANNELS

#define PH_COMM_STAGES 2 /* of any operation, at most */

/* One message of at most cut_bytes. Where requests lie does not change while one is pending. */
struct ph_request {
    struct ph_transport_request request;
    uint32_t rank;
    bool is_send;
};

/* A sum in the wire format: what a member sends to the part of each other one, and what it gets for its own (comm_reduce.c). */
struct ph_reduction {
    const struct ph_group *group;
    enum ph_wire wire;
    size_t rows, columns; /* of all parts together */
    size_t own_rows;
    ph_real *data;     /* all_reduce: (rows, columns); else NULL */
    ph_real *sum;      /* (own_rows, columns) */
    size_t slot_bytes; /* of a contribution to the own part, aligned */
};

struct ph_operation {
    uint32_t channel;
    bool is_taken, is_done; /* is_done: all but waited for */
    uint64_t ticket;
    const char *what;
    struct ph_comm_record *record; /* NULL: it is not recorded */
    struct ph_comm_flight flight;  /* of the latest that was */
    int stage;
    /* Begins the next stage; NULL: there is none. */
    ph_status (*advance)(struct ph_comm *comm, struct ph_operation *operation);
    struct ph_reduction reduction;

    struct ph_request *requests;
    uint32_t *pending; /* those of `requests` that are not done, in the order in which they were posted */
    size_t num_requests, num_pending, requests_capacity, pending_capacity;
    unsigned char *staging; /* aligned to PH_ALIGNMENT */
    size_t staging_capacity;
    struct ph_operation *next_kept; /* behind the end of a communicator that has failed */
};

struct ph_operations {
    struct ph_operation **slots;
    struct ph_operation **flying; /* those taken that are not done */
    size_t num_slots, num_flying, slots_capacity, flying_capacity;
    uint64_t num_started, num_growths; /* growths: how often memory was asked for */
    uint64_t num_moves;                /* requests that were found done */
};

/* A slot with room for that many requests at a time and bytes of staging memory. Until ph__operation_launch nothing is in
 * flight but what was posted. PH_ERROR_MEMORY; what the communicator has failed with. */
ph_status ph__operation_take(struct ph_comm *comm, const struct ph_comm_call *call, size_t num_requests,
    size_t staging_bytes, struct ph_operation **operation_out);
/* How many requests a message of so many bytes is: at least one. */
size_t ph__operation_num_cuts(const struct ph_comm *comm, uint64_t bytes);

ph_status ph__operation_receive(
    struct ph_comm *comm, struct ph_operation *operation, size_t rank, void *data, uint64_t bytes);
ph_status ph__operation_send(
    struct ph_comm *comm, struct ph_operation *operation, size_t rank, const void *data, uint64_t bytes);

/* The first stage has been posted. */
ph_status ph__operation_launch(struct ph_comm *comm, struct ph_operation *operation, uint64_t *ticket_out);
/* Goes on as far as it can, at last to is_done. */
ph_status ph__operation_poll(struct ph_comm *comm, struct ph_operation *operation);

struct ph_operation *ph__operation_find(
    const struct ph_comm *comm, uint64_t ticket); /* NULL: there is none */
/* Whom it waits for: the rank of its first pending receive, or send; and how many others. It is pending. */
size_t ph__operation_waits_for(const struct ph_operation *operation, size_t *num_others_out);

/* Memory of operations that still have requests pending is kept until the process ends: a message may arrive. */
void ph__operations_fini(struct ph_operations *operations);

#endif
