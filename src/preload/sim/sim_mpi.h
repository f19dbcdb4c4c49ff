/* The MPI that a simulated process is given in place of Open MPI's or MPICH's: one source, compiled against
 * either's mpi.h, whose constants and handles programs have been compiled with. Handles that are made here
 * are small numbers, which neither library uses.
 *
 * Errors end the program, whatever its error handlers are. */
#ifndef PH_PRELOAD_SIM_MPI_H
#define PH_PRELOAD_SIM_MPI_H

#pragma GCC visibility push(default) /* the library shows MPI's functions, and nothing else */
#include <mpi.h>
#pragma GCC visibility pop

#include "preload/sim/sim_process.h"

/* Defines MPI_<name> and PMPI_<name>, which is the same. The library does not call MPI_<name> itself. */
#define PH_MPI_RETURNS(result, name, ...)                                          \
    result PMPI_##name(__VA_ARGS__);                                               \
    extern __typeof(PMPI_##name) MPI_##name __attribute__((alias("PMPI_" #name))); \
    result PMPI_##name(__VA_ARGS__)
#define PH_MPI(name, ...) PH_MPI_RETURNS(int, name, __VA_ARGS__)

#define PH_HANDLE_BASE 4096
#define PH_HANDLE(type, number) ((type)(intptr_t)(PH_HANDLE_BASE + (number)))
#define PH_HANDLE_NUMBER(handle) ((intptr_t)(handle)-PH_HANDLE_BASE)

/* Allocate memory, or end the program; the copy is of `bytes` bytes. Freed by free. */
void *ph__sim_allocate(size_t bytes);
void *ph__sim_copy(const void *data, size_t bytes);

/* ---- types and operations: sim_type.c ---- */

enum ph__sim_op_kind {
    PH_OP_SUM,
    PH_OP_PROD,
    PH_OP_MAX,
    PH_OP_MIN,
    PH_OP_LAND,
    PH_OP_LOR,
    PH_OP_LXOR,
    PH_OP_BAND,
    PH_OP_BOR,
    PH_OP_BXOR,
    PH_OP_MAXLOC,
    PH_OP_MINLOC,
    PH_OP_USER
};

struct ph__sim_type {
    MPI_Datatype handle;
    size_t bytes;  /* without gaps */
    size_t extent; /* of an item in memory */
    /* to = from op to, for `count` items; returns false for an operation that the type does not have. */
    bool (*reduce)(enum ph__sim_op_kind kind, const void *from, void *to, size_t count);
};

struct ph__sim_op {
    MPI_Op handle;
    enum ph__sim_op_kind kind;
    bool commutes;
    MPI_User_function *user;
};

/* Return what a handle stands for; they end the program where it is not simulated. */
const struct ph__sim_type *ph__sim_type(MPI_Datatype handle);
const struct ph__sim_op *ph__sim_op(MPI_Op handle);

/* A reduction of `count` items. */
struct ph__sim_reduction {
    const struct ph__sim_type *type;
    const struct ph__sim_op *op;
};
/* to = from op to. It counts as computation. */
void ph__sim_reduce(const struct ph__sim_reduction *reduction, const void *from, void *to, size_t count);

/* ---- communicators: sim_comm.c ---- */

struct ph__sim_comm {
    uint32_t context; /* even; that of its collectives is one more */
    int rank, size;
    int32_t *ranks; /* (size) of the world */
    MPI_Comm handle;
    size_t number; /* in the list of all */
    char name[MPI_MAX_OBJECT_NAME];
};
const struct ph__sim_comm *ph__sim_comm(MPI_Comm handle);

/* ---- collectives: sim_collective.c ---- */

/* Gathers `bytes` of each rank in `data`, where the own ones stand in their place. */
void ph__sim_allgather(const struct ph__sim_comm *comm, void *data, size_t bytes);

#endif
