/* Opens the transport of this process, by what is wanted and what the launcher says. */
#ifndef PH_COMM_TRANSPORT_OPEN_H
#define PH_COMM_TRANSPORT_OPEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory/arena.h"
#include "comm/wire/transport.h"
#include "phloem/status.h"

/* The caller closes it. A plugin stays loaded until the process ends, since MPI cannot be unloaded.
 * PH_ERROR_USAGE: nothing fits, or is not installed; the transport joins another number of ranks than were
 * started. PH_ERROR_PEER: the job could not be joined. */
ph_status ph__transport_open(const char *wanted, struct ph__transport *transport_out);

/* A world of one: what a program has that no launcher started. Messages to itself are copied when both ends
 * are there. */
ph_status ph__transport_self_open(struct ph__transport *transport_out);

/* Where plugins lie: beside the program or the library that asks, which is a build, or where both were
 * installed, wherever that has been moved to. $PHLOEM_PLUGINS names another folder, instead of all these.
 *
 * The path of the first that is there; *path_out NULL: there is none, and *folders_out names those that were
 * looked through. Both owned by the arena. */
ph_status ph__plugin_find(
    struct ph__arena *arena, const char *file, const char **path_out, const char **folders_out);

/* ---- the choice: transport_choice.c ---- */

/* Which transport joins the job that a launcher has started: read from what it has left in the environment.
 */

struct ph__transport_choice {
    const char *name;       /* "self", "openmpi", "mpich"; static */
    size_t num_ranks;       /* as the launcher has it; 0: it does not say */
    const char *counted_by; /* the variable that says so, static; NULL: none */
};

/* wanted: NULL or "auto": what $PHLOEM_MPI says and, where it is not set, what the launcher speaks: Open
 * MPI's mpirun and whoever speaks PMIx means openmpi, Hydra and whoever else speaks PMI mpich. Without a
 * launcher, or by one that has started this process alone, it is self. PH_ERROR_USAGE: there is no such
 * transport; several processes were started, and no MPI was told. */
ph_status ph__transport_choose(const char *wanted, struct ph__transport_choice *choice_out);

/* Whether the launcher has started no process of the job on this host before this one; who was started alone
 * is the first, as a batch script of Slurm is, and so is each of those that PHLOEM_MPI=self sets apart or
 * nothing numbers. */
bool ph__transport_is_first_of_host(void);

#endif
