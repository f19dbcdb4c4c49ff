/* Work of all ranks that a launcher has started, or of one process that was started alone; and the check of
 * verbs for one process. */
#ifndef PH_CLI_WITH_RANKS_H
#define PH_CLI_WITH_RANKS_H

#include "phloem/comm.h"
#include "phloem/config.h"

struct cli_ranks {
    const char *task; /* "phloem train", for ranks that were started to do something else */
    const struct ph_parallel_settings *parallel; /* borrowed: transport, time-out, hosts */
    /* Works with the other ranks, which are told of a failure when it returns. */
    ph_status (*work)(void *context, struct ph_comm *comm);
    void *context;
    const char *done_text; /* "the training is done and written": reported if MPI does not end afterwards */
};

/* Meets the other ranks, works, and ends with them. A rank that has failed already, by `status`, takes part
 * as well: the failure of one is the failure of all. The last error keeps its text on the one rank that is to
 * print it, and has none on the others. */
ph_status cli_with_ranks(const struct cli_ranks *ranks, ph_status status);

/* Checks that a verb for one process was started once. PH_ERROR_USAGE where a launcher has started several
 * processes, unless PHLOEM_MPI=self declares them independent: mpirun phloem eval would evaluate once a rank,
 * and other verbs would write over each other's files. Only one of them has a text to print. */
ph_status cli_check_one_process(const char *verb);

#endif
