/* How fast this machine reads rows and carries messages, measured for phloem plan --measure. No training goes
 * by it: what is measured is of the moment. */
#ifndef PH_CLI_MACHINE_SPEED_H
#define PH_CLI_MACHINE_SPEED_H

#include "base/thread/parallel.h"
#include "phloem/comm.h"
#include "plan/plan.h"

/* Looks rows of `dim` reals up at random for about 50 ms, with all threads of the team, as do the other ones
 * of num_ranks on this machine: bytes of rows a second. PH_ERROR_MEMORY, and PH_ERROR_USAGE for an ISA that
 * is not there. */
ph_status cli_memory_speed_measure(
    size_t dim, size_t num_ranks, struct ph__team *team, double *bytes_per_s_out);

/* Bytes of the rows in which each of so many ranks looks up at the same time: 128 MiB, but together an eighth
 * of what is free. */
size_t cli_memory_speed_bytes(uint64_t free_bytes, size_t num_ranks);

/* Sets host_bytes_per_s and network_bytes_per_s, and NaN where there is no such link: one rank a host, one
 * host, hosts of different sizes. All ranks send at once, as they do in a step: to the next one of their
 * host, then to the one of the next host that has their place; the median of several rounds counts. All ranks
 * must call it; each then has what it has seen itself. PH_ERROR_PEER, PH_ERROR_MEMORY. */
ph_status cli_link_speeds_measure(struct ph_comm *comm, struct ph__plan_machine *machine);

#endif
