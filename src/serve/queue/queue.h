/* Queues of requests that wait to be scored, and the workers that score them.
 *
 *     put ──> queue of a model, by priority, then order ──> a free worker takes what waits, up to a batch
 *                                                           encode ──> score ──> outputs ──> done
 *
 * Batches form from what waits: a worker takes whole requests in their order while they fit, and a request
 * that is larger than a batch in pieces, which several workers may score at once. It waits for more only
 * where max_delay_us says so. Requests of one batch want the same set of outputs. A row's numbers do not
 * depend on the batch, so no request notices its neighbours; a bad row fails its own request alone.
 *
 *  work        where it is             event -> next
 *  WAITING     in its queue            taken -> RUNNING, cancelled or too late -> done
 *  RUNNING     some rows are taken     last row scored -> done; cancelled or failed: rows left are dropped
 *  done        the owner's again
 *
 * One thread puts and cancels; any number of workers score. One lock guards all queues of a scheduler;
 * nothing is computed or allocated under it. */
#ifndef PH_SERVE_QUEUE_H
#define PH_SERVE_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/session.h"
#include "serve/wire/oip_calls.h"
#include "serve/wire/tensor_rows.h"

struct ph__scheduler;
struct ph__queue; /* of one session */

/* ---- requests ---- */

/* Times on ph__clock_ns; 0: not yet. */
struct ph__work_times {
    uint64_t queued, begun, encoded, scored, done; /* put; the first row: being encoded ...; all rows: done */
};

#define PH_WORK_ERROR_BYTES 300

struct ph__work {
    struct ph__tensor_rows rows;
    struct ph__wanted wanted; /* borrowed until done, as are the tensors */
    uint64_t bytes;           /* of the request, for the bound of the queue */
    uint32_t priority;        /* lower ones go first */
    uint64_t deadline_ns;     /* on ph__clock_ns; UINT64_MAX: none */

    /* Set when it is done. */
    enum ph__oip_code code;
    char error[PH_WORK_ERROR_BYTES]; /* of a code that is not OK */
    struct ph__work_times times;

    /* The queue's own. */
    struct ph__queue *queue;
    ph__output_set set;
    size_t next_row;     /* rows below have been taken */
    size_t rows_left;    /* rows that are not done */
    atomic_bool is_over; /* cancelled or failed: no further row is scored */
    struct ph__work *next;
};

/* ---- schedulers ---- */

struct ph__scheduler_options {
    size_t num_workers; /* threads */
    /* Called when a work is done: by a worker without the lock, or by ph__work_cancel. */
    void (*done)(void *context, struct ph__work *work);
    /* Called by a worker after the last `done` of a batch. */
    void (*batch_done)(void *context);
    void *context;
};

ph_status ph__scheduler_create(
    const struct ph__scheduler_options *options, struct ph__scheduler **scheduler_out);
void ph__scheduler_destroy(struct ph__scheduler *scheduler); /* after its queues; NULL is fine */

/* Wakes workers for what was put since the last call: the driver calls it once a turn, so that requests which
 * came together are scored together. */
void ph__scheduler_kick(struct ph__scheduler *scheduler);

/* Tells whether no worker is free. Any thread, without a lock. */
bool ph__scheduler_is_busy(const struct ph__scheduler *scheduler);

/* Tells whether a whole batch waits and no worker is free: more requests could only wait. */
bool ph__scheduler_is_saturated(struct ph__scheduler *scheduler);

/* ---- queues ---- */

struct ph__queue_options {
    struct ph_session *session; /* with a context for each worker; borrowed until destroy */
    size_t max_batch;           /* rows, at most the session's; 1: no batching */
    uint64_t max_delay_us;      /* that a batch waits for more rows */
    size_t max_rows;            /* that wait; a single larger request may, alone */
    uint64_t max_bytes;         /* of the requests that wait, likewise */
};

ph_status ph__queue_create(
    struct ph__scheduler *scheduler, const struct ph__queue_options *options, struct ph__queue **queue_out);
/* Destroys a queue that has no requests. NULL is fine. */
void ph__queue_destroy(struct ph__queue *queue);

/* Puts a request. Refused at the door: INVALID a graph of more than max_batch nodes; UNAVAILABLE when the
 * queue is full, DEADLINE when what waits and runs already takes longer than the deadline allows; the work
 * stays the caller's then. A request without rows is done at once, before the function returns. */
enum ph__oip_code ph__queue_put(struct ph__queue *queue, struct ph__work *work);

/* Refuses as ph__queue_put would, a request of which only bytes and deadline (UINT64_MAX: none) are known. */
enum ph__oip_code ph__queue_admit(struct ph__queue *queue, uint64_t bytes, uint64_t deadline_ns);

/* Cancels a request that is not done: it will be done, with CANCELLED unless it already has another code. */
void ph__work_cancel(struct ph__work *work);

/* ---- figures ---- */

struct ph__batch_figures {
    uint64_t count, encode_ns, score_ns, output_ns; /* sums over batches */
};

struct ph__queue_figures {
    uint64_t num_waiting, waiting_rows, waiting_bytes; /* now */
    uint64_t running_rows;                             /* being scored now */
    uint64_t num_rows;                                 /* scored */
    struct ph__batch_figures batches;                  /* all */
    double row_ns;                                     /* smoothed time of a row; 0: not known */
};
void ph__queue_figures(struct ph__queue *queue, struct ph__queue_figures *figures_out);
/* Copies the figures of batches by their rows: (max_batch + 1). */
void ph__queue_batch_figures(struct ph__queue *queue, struct ph__batch_figures *figures_out);

#endif
