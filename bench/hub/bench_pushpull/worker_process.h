/* A worker of the benchmark: a process that joins a job, and then carries out orders. Its gradients are those
 * of bench/peers/peer_model.h. The parameters that it pulls are compared, bit by bit and outside of the timed
 * part, with the optimizer's result for one period of these. */
#ifndef PH_BENCH_WORKER_PROCESS_H
#define PH_BENCH_WORKER_PROCESS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "child.h"
#include "model_shapes.h"
#include "phloem/hub.h"

enum { WORKER_MAX_SAMPLES = 20000, WORKER_TEXT = 64 };

/* Meeting of workers, in memory that they share. */
struct meeting {
    _Alignas(64) atomic_uint num_there;
    _Alignas(64) atomic_uint num_meetings;
};

struct worker_options {
    char address[WORKER_TEXT], job[WORKER_TEXT];
    enum ph_hub_transport transport;
    enum ph_hub_wait_policy wait;
    bool has_no_thread;
    uint32_t rank, num_workers, chunk_bytes, depth;
    size_t num_keys, key_bytes;        /* keys of one size, */
    const struct model_shapes *shapes; /* or the tensors of a model, if not NULL; static */
    float scale;             /* factor of its gradients: a power of two, so that numbers stay exact */
    int processor;           /* number to pin to; -1: any */
    struct meeting *meeting; /* shared by num_workers */
};

enum verb {
    /* Starts all keys and waits for them, count times. Answers the seconds of each, after a meeting. */
    VERB_ROUNDS,
    /* Sends key 0 count times, without meetings. Each time first writes a number in each cache line of its
     * gradient, and last reads one in each of its parameters. Answers the seconds of each time. */
    VERB_LATENCY,
    /* Sends all keys in turn count times, written and read likewise, without meetings, in_flight at a time
     * (0: as many as the depth allows). Answers count + 1 moments: of the beginning, and of the end of each
     * time. */
    VERB_STREAM,
    /* Answers struct worker_counters instead. */
    VERB_COUNTERS
};

struct order {
    enum verb verb;
    uint32_t count, in_flight;
};

struct worker_answer { /* `count` doubles follow */
    uint32_t count;
    bool is_right;
    uint64_t checksum; /* checksum of all parameters */
};

struct worker_counters { /* counts since the start */
    uint64_t messages, system_calls, doorbells;
};

/* Sent first, when the worker has joined. */
struct worker_joined {
    char transport[WORKER_TEXT];
    uint32_t chunk_bytes, num_chunks, num_cores;
};

child_work worker_process; /* context: struct worker_options */

#endif
