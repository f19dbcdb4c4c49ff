/* A simulated world: the ranks of a job as threads of this process. Each has a clock of its own; one runs at
 * a time, the one whose clock is behind all others', so that what it sees of the others is what has happened
 * by then. Sending, receiving and computing take simulated time; all else takes none.
 *
 * A rank that runs may be ahead of the others until it polls, or waits for a message; then it waits for its
 * turn. Same inputs give the same times, to the bit. */
#ifndef PH_SIM_WORLD_H
#define PH_SIM_WORLD_H

#include "base/thread/clock.h"
#include "comm/collective/comm.h"
#include "plan/fabric/fabric.h"
#include "sim/chakra.h"

struct ph__world_options {
    const struct ph__fabric *fabric; /* borrowed */
    size_t world_size;
    double slack; /* of struct ph__network_options */
    /* Runs work of a rank, and passes its time by ph__world_compute; NULL: work takes no time. */
    ph_status (*work)(void *context, const struct ph__timed_work *work);
    void *work_context;          /* borrowed */
    bool is_untimed;             /* until a rank calls ph__world_take_time, nothing takes its time */
    struct ph__chakra *chakra;   /* traces of the ranks; NULL: none. Borrowed */
    struct ph_comm_options comm; /* of all ranks; ranks_per_host is the fabric's */
};

struct ph__world_figures {
    double seconds; /* simulated: when the last rank ended */
    uint64_t num_messages;
};

/* Runs a rank, in a thread of its own whose clock (base/thread/clock.h) is the rank's, from 0 on. */
typedef ph_status ph__world_rank(struct ph_comm *comm, void *context);

/* Runs all ranks to their ends. Fails as the first rank that failed; PH_ERROR_BUG: ranks wait for messages
 * that none sends. */
ph_status ph__world_run(const struct ph__world_options *options, ph__world_rank *run, void *context,
    struct ph__world_figures *figures_out);

/* Lets what the calling rank does take time, or not: messages that it then sends arrive at once. */
void ph__world_take_time(bool takes_time);

/* Passes time of the calling rank: it computes. */
void ph__world_compute(double ns);

/* Does the same for work that the rank's trace has. */
void ph__world_compute_traced(const struct ph__chakra_work *work, double ns);

/* Returns the calling rank's trace; NULL: none, or the rank is out of its time. */
struct ph__chakra_rank *ph__world_trace(void);

/* Steps out of the calling rank's time, or back into it, while something is measured: the clock is the
 * machine's, and messages are done as soon as they are started, without effect. */
void ph__world_step_out(bool is_out);
bool ph__world_is_out(void);

/* Returns the calling rank's communicator. */
struct ph_comm *ph__world_comm(void);

#endif
