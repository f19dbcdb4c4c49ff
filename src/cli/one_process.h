/* Verbs for one process, started by a launcher several times. */
#ifndef PH_CLI_ONE_PROCESS_H
#define PH_CLI_ONE_PROCESS_H

#include "phloem/status.h"

/* PH_ERROR_USAGE where a launcher has started several processes, unless PHLOEM_MPI=self says that they have nothing to do with
 * each other: mpirun phloem eval would evaluate as often as there are ranks, and others would write over each other's files.
 * All but one of them have no text to print. */
ph_status cli_check_one_process(const char *verb);

#endif
