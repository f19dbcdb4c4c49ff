/* The inside of schedulers and queues, shared by queue.c and worker.c. */
#ifndef PH_SERVE_QUEUE_STATE_H
#define PH_SERVE_QUEUE_STATE_H

#include <pthread.h>

#include "serve/queue/queue.h"

struct ph__worker {
    struct ph__scheduler *scheduler;
    size_t index; /* of its context in every session */
    pthread_t thread;
    struct ph__part *parts; /* (parts_capacity) of the batch in hand */
    size_t parts_capacity;
};

struct ph__scheduler {
    struct ph__scheduler_options options;
    struct ph__worker *workers; /* (num_started) */
    size_t num_started;
    pthread_mutex_t lock; /* guards all below, and what is said of queues */
    pthread_cond_t has_work;
    atomic_size_t num_idle;   /* workers that wait for has_work; any thread reads it */
    size_t num_put;           /* batches that were put since the last kick: a request makes one or more */
    struct ph__queue *queues; /* a ring, of which the next to be served is the first; NULL: none */
    bool must_end;
};

struct ph__queue {
    struct ph__scheduler *scheduler;
    struct ph__queue_options options;
    bool is_of_graphs;                 /* a request is a batch, whole and alone */
    struct ph__queue *next, *previous; /* in the scheduler's ring */
    /* Guarded by the scheduler's lock: */
    struct ph__work *first, *last; /* waiting, in the order of service; NULL: none */
    struct ph__queue_figures figures;
    struct ph__batch_figures *batches; /* (max_batch + 1) by rows */
};

/* Rows of a request in a batch. */
struct ph__part {
    struct ph__work *work;
    size_t first, num_rows;
    size_t start; /* of its rows in the batch, once they are encoded */
    bool is_bad;  /* none of its rows is in the batch */
};

/* Takes the next batch of a queue, in the worker's parts, with the lock held. Requests that are over before a
 * row was taken go to *over, linked by `next`. Returns the number of parts. */
size_t ph__queue_take(
    struct ph__queue *queue, struct ph__part *parts, uint64_t now_ns, struct ph__work **over);

/* Tells a request's owner that it is done, without the lock. */
void ph__work_done(struct ph__scheduler *scheduler, struct ph__work *work);

/* Records why a request failed; the first reason stays. With the lock held. */
void ph__work_fail(struct ph__work *work, enum ph__oip_code code, const char *error);

void *ph__worker_run(void *worker);

#endif
