/* Measures how fast this machine reads rows and carries messages, for phloem plan --measure. No training goes
 * by these figures, which change from one moment to the next. */
#ifndef PH_CLI_MACHINE_SPEED_H
#define PH_CLI_MACHINE_SPEED_H

#include "base/thread/parallel.h"
#include "phloem/comm.h"
#include "plan/plan.h"

/* Gives the bytes of rows a second that this rank reads: looks up rows of `dim` reals at random for about 50
 * ms, with all threads of the team, while the machine's other ranks (num_ranks with this one) do the same.
 * PH_ERROR_MEMORY, and PH_ERROR_USAGE for an ISA that the CPU lacks. */
ph_status cli_memory_speed_measure(
    size_t dim, size_t num_ranks, struct ph__team *team, double *bytes_per_s_out);

/* Returns the bytes of rows that each of so many ranks looks up in at the same time: 128 MiB, but together at
 * most an eighth of free_bytes. */
size_t cli_memory_speed_bytes(uint64_t free_bytes, size_t num_ranks);

/* Sets host_bytes_per_s and network_bytes_per_s; NaN where there is no such link: one rank a host, one host,
 * hosts of different sizes. All ranks send at once, as in a step: to the next rank of their host, then to the
 * rank in their place on the next host; the median of several rounds counts. All ranks must call it; each
 * gets its own measurement. PH_ERROR_PEER, PH_ERROR_MEMORY. */
ph_status cli_link_speeds_measure(struct ph_comm *comm, struct ph__plan_machine *machine);

#endif
