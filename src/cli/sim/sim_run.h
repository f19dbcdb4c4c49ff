/* phloem sim run: any MPI program on a simulated cluster. */
#ifndef PH_CLI_SIM_RUN_H
#define PH_CLI_SIM_RUN_H

#include "phloem/status.h"

ph_status cli_sim_run(int argc, char **argv);

#endif
