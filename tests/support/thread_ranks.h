/* Ranks that are threads of a test, each with a communicator over thread_transport.h, under a simulated watch
 * that sees deaths at once. A rank does not assert, as cmocka's asserts are for one thread: it returns a
 * status. */
#ifndef PH_TEST_THREAD_RANKS_H
#define PH_TEST_THREAD_RANKS_H

#include "comm/collective/comm.h"
#include "comm/collective/comm_inside.h"
#include "support/test_support.h"
#include "support/thread_transport.h"

#define THREAD_RANKS_TIMEOUT_SECONDS 30. /* unless the test sets one */
#define THREAD_RANKS_MOST 9

struct thread_ranks {
    size_t world_size;
    uint64_t seed;                         /* of the order of messages; 0: test_seed() */
    struct ph_comm_options options;        /* of all ranks */
    const struct ph_comm_options *of_rank; /* one for each rank; NULL: all have `options` */
    size_t cut_bytes;                      /* messages are cut there; 0: at the usual size */
    const struct thread_fault *faults;
    size_t num_faults;
    bool is_unwatched;
};

/* A rank's end. */
struct thread_rank_end {
    ph_status status;
    char text[600], text_after[600]; /* last error, and last error after ph_comm_destroy */
    bool has_met, speaks;            /* speaks: ph_comm_speaks after a failure */
};

typedef ph_status thread_rank_run(struct ph_comm *comm, void *context);

/* Runs all ranks to their ends; a rank that fails tells the others by ph_comm_fail. ends_out: (world_size),
 * or NULL: asserts that none fails. */
void thread_ranks_run(
    const struct thread_ranks *ranks, thread_rank_run *run, void *context, struct thread_rank_end *ends_out);

/* Checks a condition in a rank's function, which returns PH_ERROR_BUG unless it is true. */
#define RANK_CHECK(condition)                                                                  \
    do {                                                                                       \
        if (!(condition))                                                                      \
            return ph_fail(PH_ERROR_BUG, "%s:%d: not so: %s", __FILE__, __LINE__, #condition); \
    } while (0)

#endif
