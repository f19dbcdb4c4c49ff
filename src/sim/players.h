/* Plays what the processes of `phloem sim run` do (sim/run_memory.h) on a simulated cluster: each rank has a
 * clock, and whatever is next in simulated time happens next, be it a record of a rank or a message on its
 * way. So all happens in order, and nothing is ever taken back. Where the next record has not been written
 * yet, the simulator waits for the process; all others run meanwhile, up to where MPI would make them wait.
 *
 * Messages take the time that sim/mail.h gives them. An envelope takes the latency of its way and no more,
 * and meets the first receive that was posted and fits, so messages of two ranks never overtake each other,
 * and a receive from any rank gets the one whose envelope came first. */
#ifndef PH_SIM_PLAYERS_H
#define PH_SIM_PLAYERS_H

#include "plan/fabric/fabric.h"
#include "sim/run_memory.h"

struct ph__player_figures { /* simulated */
    double seconds, computed_seconds, waited_seconds;
    uint64_t num_messages, sent_bytes;
};

struct ph__players_options {
    const struct ph__fabric *fabric;
    struct ph__run_memory *memory; /* borrowed */
    double speed;                  /* of the ranks' processors, of this machine's being 1 */
    double slack;                  /* of struct ph__network_options */
    /* Is called now and then while a rank's record is awaited; fails when no more will come. */
    ph_status (*check)(void *context, size_t rank);
    void *check_context;
    struct ph__player_figures *ranks_out; /* (num_ranks) */
    uint64_t *link_bytes_out;             /* (fabric->num_links), zeros */
};

/* Plays all ranks to their ends. PH_ERROR_PEER: ranks wait for each other for ever, which names them; or a
 * process reports a failure, and memory->exit_code is its exit code. Else fails as the check does;
 * PH_ERROR_MEMORY. */
ph_status ph__players_run(const struct ph__players_options *options);

#endif
