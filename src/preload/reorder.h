/* libphloem_reorder_{openmpi,mpich}.so: preloaded into an MPI program, it gives the program's ranks another
 * order.
 *
 * After MPI_Init the world is split into a communicator of the same processes, numbered host by host in the
 * order of the file that PHLOEM_REORDER names. Each call that names MPI_COMM_WORLD then gets that
 * communicator:
 *
 *     program ──MPI_Send(…, MPI_COMM_WORLD)──> reorder_calls.c ──PMPI_Send(…, ph__reorder.world)──> MPI
 *
 * reorder_start.c makes the communicator, from what reorder_hosts.c reads; reorder_environment.c finds
 * programs that learn their rank without MPI. Compiled once against each library's mpi.h, and linked with
 * nothing else of Phloem. Without PHLOEM_REORDER, calls are passed on as they are. What is written here is
 * set by MPI_Init and MPI_Finalize only, so other threads may read it between them. */
#ifndef PRELOAD_REORDER_H
#define PRELOAD_REORDER_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

struct ph__reorder {
    MPI_Comm world; /* stands for MPI_COMM_WORLD; itself while ranks keep their order */
    MPI_Fint fortran_world, fortran_plain; /* Fortran's handles of `world` and of MPI_COMM_WORLD */
};

extern struct ph__reorder ph__reorder;

/* Ends the process with exit code 2 and one line on stderr when the other MPI library is loaded, too. */
void ph__reorder_check_library(void);

/* Returns true on the rank that prints, as far as that is known before MPI_Init. */
bool ph__reorder_is_first(void);

/* Reorders the ranks, once; to be called on all of them, after MPI_Init. Bad input ends the job with exit
 * code 2 and one line on stderr. */
void ph__reorder_start(void);

/* ---- reorder_hosts.c: the order of the hosts ---- */

struct ph__hosts {
    size_t num;
    struct ph__host {
        const char *name; /* in the text that was parsed */
        int line;         /* of the file, from 1 */
    } * list;
};

/* Reads a whole file as text; the caller frees it. NULL: errno says why. */
char *ph__hosts_read(const char *path);

/* Finds the hosts of a text, which is changed and must outlive them: one a line, in order. '#' begins a
 * comment; a port or a number of slots behind a name is ignored. False: out of memory. The caller frees the
 * list. */
bool ph__hosts_parse(char *text, struct ph__hosts *hosts_out);

/* Returns the first host that is named again, whose index is stored, or hosts->num. */
size_t ph__hosts_find_twice(const struct ph__hosts *hosts, size_t *again_out);

/* Returns the first host from index `from` on that is this process's own, or hosts->num. `own` is the
 * process's name of its host; interfaces have their addresses unless the name was chosen by hand. */
struct ifaddrs;
size_t ph__hosts_find_own(
    const struct ph__hosts *hosts, size_t from, const char *own, const struct ifaddrs *interfaces);

/* ---- reorder_environment.c: who reads the rank from the environment ---- */

/* Warns, now and later, of the first one that reads it. */
void ph__reorder_warn_of_readers(void);

#endif
