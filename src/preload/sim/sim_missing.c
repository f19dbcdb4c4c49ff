/* Functions of MPI that are neither simulated nor local to a process end the program with their names. The
 * definitions are weak, so that those of functions that are simulated win; mpi.h, which declares them with
 * their types, is not included. */
#include "preload/sim/sim_process.h"

static void refuse(const char *name)
{
    const struct ph__process *process = ph__process();
    if (process == NULL)
        ph__process_fail(2, "%s is not simulated", name);
    ph__process_fail(2, "%s is not simulated (rank %u)", name, process->rank);
}

#define MISSING(name)                                                \
    void P##name(void) __attribute__((weak, visibility("default"))); \
    void name(void) __attribute__((weak, visibility("default")));    \
    void P##name(void)                                               \
    {                                                                \
        refuse(#name);                                               \
    }                                                                \
    void name(void)                                                  \
    {                                                                \
        refuse(#name);                                               \
    }

#define CALL(name, ...) MISSING(MPI_##name)
#define LARGE(name, ...) MISSING(MPI_##name) MISSING(MPI_##name##_c)
#define NAME(name) MISSING(MPI_##name)
#define LOCAL(...)
#define LOCAL_OF(...)
#define EXTENSION(name, ...) MISSING(MPIX_##name)
#include "preload/mpi_calls.def"
