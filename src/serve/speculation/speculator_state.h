/* The inside of a speculator: shared by speculator_state.c, which the driving thread runs, and
 * speculator_threads.c. */
#ifndef PH_SERVE_SPECULATOR_STATE_H
#define PH_SERVE_SPECULATOR_STATE_H

#include <pthread.h>

#include "serve/speculation/feature_log.h"
#include "serve/speculation/speculator.h"

struct ph__speculator_order {
    struct ph__speculator_order *next;
    uint64_t key;
    bool is_item;
};

struct ph__speculator {
    struct ph__speculator_options options; /* settings are those of the core */
    struct ph__speculation *core;
    struct ph__name_index columns; /* that a request may have beside the student's; constant */
    struct ph__arena arena;
    atomic_size_t num_holders;
    uint64_t started_ns;
    _Atomic uint64_t waiting, waiting_bytes, dropped, orders_waiting;
    atomic_bool is_on;
    struct ph__note *spare;                 /* the driving thread's */
    _Atomic(struct ph__note *) notes, done; /* to the worker and back; the last first */

    pthread_mutex_t lock; /* guards these; the worker may hold it while it is kept from running */
    pthread_cond_t has_order;
    struct ph__speculator_order *worker_orders;
    struct ph__pair_teacher fresh, former; /* closed: none; fresh is for the worker, former is to be closed */
    bool worker_must_end;

    pthread_mutex_t keeper_lock; /* guards these; the worker never takes it */
    pthread_cond_t has_change;
    struct ph__speculator_order *orders;
    bool must_end;

    /* the keeper's */
    pthread_t keeper, worker;
    bool has_keeper, has_worker; /* has_keeper: the creator's */
    uint64_t version;            /* of the newest teacher; 0: none is open */
    uint64_t next_look_ns;
    bool is_seen_on; /* is_on, when it was last looked at */
    bool has_failed; /* the last look at the teacher: it is logged once */

    /* the worker's */
    struct ph__feature_log features;
    struct ph__arena scratch; /* of a note; not the note's, whose memory the driving thread frees */
    uint64_t next_tick_ns, next_flush_ns;
};

/* Runs the keeper, a thread that starts and ends the worker. */
void *ph__speculator_keep(void *speculator);

/* Puts a note before those of a list, which another thread may take meanwhile. */
void ph__notes_put(_Atomic(struct ph__note *) *list, struct ph__note *note);

/* Returns the seconds since the start: the time of the core. */
double ph__speculator_seconds(const struct ph__speculator *speculator);

#endif
