/* The processes of `phloem sim run`: finds out which MPI a program is linked with, starts it once a rank,
 * with the library that simulates it preloaded, and watches how the processes end. */
#ifndef PH_SIM_PROCESSES_H
#define PH_SIM_PROCESSES_H

#include "plan/fabric/fabric.h"
#include "sim/run_memory.h"

struct ph__processes_options {
    const char *const *arguments; /* the program's, and NULL; borrowed */
    const char *preload;          /* libraries that come before that one, or NULL; borrowed */
    const struct ph__fabric *fabric;
    size_t num_ranks;
    bool is_compute_free, is_folded; /* is_folded: large pieces of memory share their pages */
    const int8_t *algorithms;        /* (PH_RUN_NUM_COLLECTIVES) */
};

struct ph__processes;

/* PH_ERROR_USAGE: the program is not there, is a script, is linked statically, or with no MPI or two;
 * PH_ERROR_MEMORY. */
ph_status ph__processes_start(
    const struct ph__processes_options *options, struct ph__processes **processes_out);
/* Returns the memory that is shared with them. */
struct ph__run_memory *ph__processes_memory(struct ph__processes *processes);

/* Is the check of struct ph__players_options. PH_ERROR_PEER: a process has ended early. */
ph_status ph__processes_check(void *processes, size_t rank);
/* Waits until all have ended. *code_out: the first exit code that is not 0. PH_ERROR_PEER: a signal has ended
 * a process. */
ph_status ph__processes_wait(struct ph__processes *processes, int *code_out);
/* Ends those that are left. */
void ph__processes_destroy(struct ph__processes *processes);

#endif
