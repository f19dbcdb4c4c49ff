/* The MPI that a simulated process uses: one source, compiled against Open MPI's mpi.h and MPICH's. Messages,
 * collectives, communicators and time are simulated. Everything else is the business of one process, and is
 * left to the MPI that the program is linked with: datatypes, operations, attributes, error handlers, and so
 * on. That MPI begins in each process as if it were alone.
 *
 *     program ──MPI_Send──────> preload/sim ──records──> phloem sim run
 *             ──MPI_Type_size─> libmpi, which preload/sim uses, too
 *
 * A communicator is one of that MPI with a single process; an attribute of it is what is simulated. A request
 * is a small number. Errors in simulated calls end the program, whatever its error handlers are. */
#ifndef PH_PRELOAD_SIM_MPI_H
#define PH_PRELOAD_SIM_MPI_H

#pragma GCC visibility push(default) /* the library shows MPI's functions, and nothing else */
#include <mpi.h>
#pragma GCC visibility pop

#include "preload/sim/sim_process.h"

/* Defines MPI_<name> and PMPI_<name>, which is the same. The library does not call MPI_<name> itself; it
 * calls PMPI_<name> of the functions that it does not define. */
#define PH_MPI_RETURNS(result, name, ...)                                          \
    result PMPI_##name(__VA_ARGS__);                                               \
    extern __typeof(PMPI_##name) MPI_##name __attribute__((alias("PMPI_" #name))); \
    result PMPI_##name(__VA_ARGS__)
#define PH_MPI(name, ...) PH_MPI_RETURNS(int, name, __VA_ARGS__)

/* ---- communicators: sim_comm.c ---- */

struct ph__sim_comm {
    uint32_t context; /* even; that of its collectives is one more */
    int rank, size;
    int32_t *ranks; /* (size) of the world */
};
/* Returns what a handle stands for. */
const struct ph__sim_comm *ph__sim_comm(MPI_Comm handle);

/* ---- calls and data: sim_request.c ---- */

/* Allocates memory, or ends the program. It is freed at the end of the call. */
void *ph__sim_allocate(size_t bytes);
/* Ends a call that ph__process_enter has begun; returns MPI_SUCCESS. */
int ph__sim_leave(void);

struct ph__buffer {
    void *data;
    int count;
    MPI_Datatype type;
};
/* Returns the bytes of the data, without gaps. */
size_t ph__buffer_bytes(struct ph__buffer buffer);
/* Copies data between buffers, which may have different types. */
void ph__buffer_copy(struct ph__buffer to, struct ph__buffer from);

/* ---- requests: sim_request.c ---- */

struct ph__request {
    bool is_used, is_send, is_synchronous;
    bool is_persistent, is_active;
    int32_t peer, tag; /* peer: of the world */
    uint32_t context;
    struct ph__buffer buffer;
    size_t bytes;
    const struct ph__sim_comm *comm; /* the caller's; NULL: a collective's */
    int32_t next;                    /* in the free list */
};

/* Adds a request, which the caller has filled but for `bytes`; returns its number. */
int32_t ph__request_add(struct ph__request request);
struct ph__request *ph__request_at(int32_t number);
void ph__request_remove(int32_t number);
/* Sends or receives. A send's data are copied at once. */
void ph__request_start(int32_t number);
/* Adds and starts a request. */
int32_t ph__request_begin(struct ph__request request);
/* Sends, and waits as long as the sender of a blocking message does. */
void ph__request_send(struct ph__request request);
/* Adds a request to those that the next WAIT is about. */
void ph__request_watch(int32_t number);
/* Takes the result of a WAIT if the request is done, with the data; frees the request unless it is
 * persistent. */
bool ph__request_take(int32_t number, struct ph__run_result *result_out);
/* Waits for all `count` requests, and takes them; gives the result of the last. */
struct ph__run_result ph__request_finish_all(const int32_t *numbers, size_t count);

/* ---- collectives: sim_collective.c ---- */

/* Gathers `bytes` of each rank in `data`, where the own ones stand in their place. */
void ph__sim_allgather(const struct ph__sim_comm *comm, void *data, int bytes);

#endif
