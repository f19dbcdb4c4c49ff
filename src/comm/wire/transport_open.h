/* Opens the transport of this process, from the caller's wish and the launcher's environment. */
#ifndef PH_COMM_TRANSPORT_OPEN_H
#define PH_COMM_TRANSPORT_OPEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory/arena.h"
#include "comm/wire/transport.h"
#include "phloem/status.h"

/* Opens the transport, which the caller closes. A plugin stays loaded until the process ends, since MPI
 * cannot be unloaded. PH_ERROR_USAGE: no transport fits, or is installed; the transport joins another number
 * of ranks than were started. PH_ERROR_PEER: the job could not be joined. */
ph_status ph__transport_open(const char *wanted, struct ph__transport *transport_out);

/* Opens a world of one process. A world_size of 1 is for a program that no launcher started; in a larger
 * world this process is rank 0, and each other rank sends it what it has sent that rank: enough to meet, and
 * to build programs for so many ranks, not to run them. A message is copied once both its send and its
 * receive have been started. */
ph_status ph__transport_self_open(size_t world_size, struct ph__transport *transport_out);

/* Finds a plugin beside the program or the library that asks: in a build, or in an installation, wherever
 * that has been moved to. $PHLOEM_PLUGINS names another folder, instead of all these.
 *
 * *path_out: the path of the first that exists, or NULL; *folders_out then names the folders searched. Both
 * owned by the arena. */
ph_status ph__plugin_find(
    struct ph__arena *arena, const char *file, const char **path_out, const char **folders_out);

/* ---- the choice: transport_choice.c ---- */

/* The transport that joins the launcher's job, read from the environment. */

struct ph__transport_choice {
    const char *name;       /* "self", "openmpi", "mpich"; static */
    size_t num_ranks;       /* by the launcher; 0: not told */
    const char *counted_by; /* the variable with that number, static; NULL: none */
};

/* Chooses the transport. wanted NULL or "auto": $PHLOEM_MPI decides and, where it is not set, the launcher:
 * Open MPI's mpirun and others that speak PMIx mean openmpi, Hydra and others that speak PMI mpich. Without a
 * launcher, or for a process started alone, it is self. PH_ERROR_USAGE: unknown transport; several processes
 * were started without an MPI. */
ph_status ph__transport_choose(const char *wanted, struct ph__transport_choice *choice_out);

/* Returns true when the launcher started no process of the job on this host before this one. A process
 * started alone is the first, as a batch script of Slurm is; so is each process that PHLOEM_MPI=self sets
 * apart or that has no number. */
bool ph__transport_is_first_of_host(void);

#endif
