/* A process that `phloem sim run` simulates: writes records of what it does (sim/run_memory.h). Knows nothing
 * of MPI. One thread at a time. */
#ifndef PH_PRELOAD_SIM_PROCESS_H
#define PH_PRELOAD_SIM_PROCESS_H

#include <stddef.h>

#include "sim/run_memory.h"

struct ph__process {
    struct ph__run_memory *memory; /* NULL: not joined */
    struct ph__run_rank *own;
    uint32_t rank;
    int descriptor; /* of the memory */
};

/* Returns the process, which joins the simulation at the first call; NULL: there is none. */
struct ph__process *ph__process(void);

/* Ends all processes, with a line and an exit code, through the simulator. */
_Noreturn void ph__process_fail(int exit_code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Begins and ends a call of MPI: time between two calls is computation, and time in a call is not. */
void ph__process_enter(void);
void ph__process_leave(void);
/* Passes simulated time; returns false for a thread that has not called MPI. */
bool ph__process_sleep(double ns);

/* Writes a record; ask also waits for its answer. */
void ph__process_post(struct ph__run_record record);
void ph__process_ask(struct ph__run_record record);

#endif
