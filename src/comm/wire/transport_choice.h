/* Which transport joins the job that a launcher has started: read from what it has left in the environment. */
#ifndef PH_COMM_TRANSPORT_CHOICE_H
#define PH_COMM_TRANSPORT_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

#include "phloem/status.h"

struct ph_transport_choice {
    const char *name;       /* "self", "openmpi", "mpich"; static */
    size_t num_ranks;       /* as the launcher has it; 0: it does not say */
    const char *counted_by; /* the variable that says so, static; NULL: none */
};

/* wanted: NULL or "auto": what $PHLOEM_MPI says and, where it is not set, what the launcher speaks: Open MPI's mpirun and
 * whoever speaks PMIx means openmpi, Hydra and whoever else speaks PMI mpich. Without a launcher, or by one that has started
 * this process alone, it is self. PH_ERROR_USAGE: there is no such transport; several processes were started, and no MPI
 * was told. */
ph_status ph__transport_choose(const char *wanted, struct ph_transport_choice *choice_out);

/* Whether the launcher has started no process of the job on this host before this one; who was started alone is the first, as a
 * batch script of Slurm is, and so is each of those that PHLOEM_MPI=self sets apart or nothing numbers. */
bool ph__transport_is_first_of_host(void);

#endif
