/* The main function of a program of ranks that has a communicator, as the program phloem uses it. */
#ifndef PH_TEST_RANK_MAIN_H
#define PH_TEST_RANK_MAIN_H

#include "phloem/comm.h"

typedef ph_status rank_run(struct ph_comm *comm, int argc, char **argv);

/* Runs `run` between meeting the other ranks and leaving them. The first rank says that all is fine; of a
 * failure the rank that speaks says why, and the exit code is the status's. */
int rank_main(const char *program, size_t ranks_per_host, rank_run *run, int argc, char **argv);

#endif
