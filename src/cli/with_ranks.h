/* Work of all ranks that a launcher has started, or of one process that was started alone; and verbs that are
 * for one process. */
#ifndef PH_CLI_WITH_RANKS_H
#define PH_CLI_WITH_RANKS_H

#include "phloem/comm.h"
#include "phloem/config.h"

struct cli_ranks {
    const char *task; /* "phloem train", for ranks that are told to do something else */
    const struct ph_parallel_settings *parallel; /* borrowed: transport, time-out, hosts */
    /* Works with the other ranks, which are told of a failure when it returns. */
    ph_status (*work)(void *context, struct ph_comm *comm);
    void *context;
    const char *done_text; /* "the training is done and written": said where MPI does not end behind it */
};

/* Meets the other ranks, works, and leaves with them. A rank that `status` says has failed already comes as
 * well, for what one rank fails with, all do. The last error keeps its text on the one rank that is to print
 * it, and has none on the others. */
ph_status cli_with_ranks(const struct cli_ranks *ranks, ph_status status);

/* Checks that a verb for one process was started once. PH_ERROR_USAGE where a launcher has started several
 * processes, unless PHLOEM_MPI=self says that they have nothing to do with each other: mpirun phloem eval
 * would evaluate as often as there are ranks, and others would write over each other's files. All but one of
 * them have no text to print. */
ph_status cli_check_one_process(const char *verb);

#endif
