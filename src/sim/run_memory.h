/* The memory that `phloem sim run` shares with the processes that it simulates: preload/sim writes what each
 * process does, sim/players.c what has become of it. Includes no other header of ours, as the preloaded
 * library knows nothing of libphloem.
 *
 *   records    what the process does, in order; the simulator takes them in the order of simulated time
 *   results    of its requests, by their numbers; written while the process waits for an answer
 *   heap       data of the messages that the process sends, until the receiver has copied them
 *   fold       pages that all large pieces of the programs' memory share, behind everything else, on request
 *
 * A process waits where the records are full, and for the answers to WAIT, PROBE and TIME; else it runs ahead
 * of the simulation. The environment variable PHLOEM_SIM_RUN, "DESCRIPTOR:RANK", names the memory. */
#ifndef PH_SIM_RUN_MEMORY_H
#define PH_SIM_RUN_MEMORY_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PH_RUN_ENVIRONMENT "PHLOEM_SIM_RUN"

enum {
    PH_RUN_RECORDS = 1024,
    PH_RUN_REQUESTS = 1 << 16, /* of a process, at a time */
    PH_RUN_NO_REQUEST = -1,
    PH_RUN_ANY = -1,    /* peer or tag */
    PH_RUN_NOBODY = -2, /* peer: MPI_PROC_NULL, whose messages are done at once */
};
#define PH_RUN_FOLD_BYTES ((uint64_t)1 << 24)
#define PH_RUN_HEAP_BYTES ((uint64_t)1 << 35) /* addresses of one process; memory once they are used */

/* Collectives whose algorithm can be chosen, with the names of the algorithms: COLLECTIVE(name, names). */
#define PH_RUN_COLLECTIVES(COLLECTIVE)                           \
    COLLECTIVE(allreduce, "ring", "doubling", "rabenseifner")    \
    COLLECTIVE(alltoall, "pairwise", "at_once", "ring", "bruck") \
    COLLECTIVE(bcast, "tree", "pipeline")                        \
    COLLECTIVE(allgather, "ring", "bruck")
enum { PH_RUN_BY_RULE = -1, PH_RUN_MOST_ALGORITHMS = 4 };
enum ph__run_collective {
#define PH_RUN_ENUM(name, ...) PH_RUN_##name,
    PH_RUN_COLLECTIVES(PH_RUN_ENUM)
#undef PH_RUN_ENUM
        PH_RUN_NUM_COLLECTIVES
};

enum ph__run_kind {
    PH_RUN_SEND,    /* `request` is done when the data may be reused; none: of an eager message */
    PH_RUN_RECEIVE, /* a message of at most `bytes` */
    PH_RUN_WATCH,   /* adds `request` to those that the next WAIT is about */
    PH_RUN_WAIT,    /* for the watched requests, as `mode` says */
    PH_RUN_PROBE,   /* is there a message for such a receive? */
    PH_RUN_TIME,
    PH_RUN_END, /* MPI_Finalize */
};

enum ph__run_mode { PH_RUN_ALL, PH_RUN_ONE, PH_RUN_SOME };

struct ph__run_record {
    enum ph__run_kind kind;
    enum ph__run_mode mode;     /* WAIT */
    bool is_test;               /* WAIT, PROBE: does not wait */
    bool is_synchronous;        /* SEND */
    int32_t request, peer, tag; /* peer: a rank of the world */
    uint32_t context;           /* of the communicator; odd: of its collectives */
    uint64_t bytes, payload;    /* payload: SEND, place of the data */
    double computed_ns;         /* by the process, since its last record */
    double slept_ns;            /* likewise; simulated */
};

struct ph__run_result { /* of a request; of a PROBE, that of request 0 of `probed` */
    bool is_done;
    int32_t source, tag; /* of a receive */
    uint64_t bytes, payload;
};

struct ph__run_rank {
    _Atomic uint32_t written, taken; /* records so far; futexes */
    _Atomic uint32_t is_awaited;     /* the simulator sleeps until a record is written */
    _Atomic uint32_t answered;       /* answers so far; a futex */
    _Atomic uint64_t freed;          /* blocks of the heap that receivers are done with: a list, by place */
    _Atomic uint32_t has_begun;      /* MPI_Init has been called */
    double now_ns;                   /* simulated, at the answer */
    char host[256];
    struct ph__run_result probed;
    struct ph__run_record records[PH_RUN_RECORDS];
    struct ph__run_result results[PH_RUN_REQUESTS];
};

struct ph__run_memory {
    uint64_t bytes;   /* of all */
    uint64_t fold_at; /* 0: memory is not folded */
    uint32_t num_ranks, ranks_per_host;
    uint64_t eager_bytes;
    bool is_compute_free;                      /* computing takes no time */
    int8_t algorithms[PH_RUN_NUM_COLLECTIVES]; /* places in the lists of names, or PH_RUN_BY_RULE */
    _Atomic uint32_t next_context;
    _Atomic uint32_t has_failed; /* 1: `failure` is being written; 2: it is */
    int exit_code;               /* of a failure */
    char failure[512];
    struct ph__run_rank ranks[]; /* (num_ranks); their heaps behind, at multiples of 4096 */
};

static inline uint64_t ph__run_heap(uint32_t num_ranks, uint32_t rank)
{
    const uint64_t ranks = sizeof(struct ph__run_memory) + num_ranks * sizeof(struct ph__run_rank);
    return (ranks + 4095) / 4096 * 4096 + rank * PH_RUN_HEAP_BYTES;
}

/* Sleeps while the word has the value, until it is woken, a signal comes, or the time is over. NULL: no
 * limit. */
static inline void ph__run_sleep(_Atomic uint32_t *word, uint32_t value, const struct timespec *limit)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT, value, limit, NULL, 0);
}

static inline void ph__run_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif
