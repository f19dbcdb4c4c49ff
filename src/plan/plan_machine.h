/* The machine that a plan is made for: how fast its memory gives rows at random, measured, and how fast its links are, stated
 * (ranks that are there measure them, too: train/link_speed.h). Whoever measures alone sees all of a host's memory; of ranks
 * of a host that measure at once, each sees its share. */
#ifndef PH_PLAN_PLAN_MACHINE_H
#define PH_PLAN_PLAN_MACHINE_H

#include "base/parallel.h"
#include "plan/plan.h"

/* What is taken where nobody has measured: memory of a host that two processes share, and 10 Gb/s between hosts. */
#define PH_PLAN_HOST_BYTES_PER_S 5e9
#define PH_PLAN_NETWORK_BYTES_PER_S 1.25e9

/* Bytes of rows in which each of so many ranks looks up at the same time: 128 MiB, but together an eighth of what is free. */
size_t ph__plan_machine_bytes(uint64_t free_bytes, size_t num_ranks);

/* Looks rows of `dim` reals up at random for about 50 ms, with all threads of the team, as do the other ones of num_ranks on this
 * machine; sets the links as stated, and no limit. PH_ERROR_MEMORY, and PH_ERROR_USAGE for an ISA that is not there. */
ph_status ph__plan_machine_measure(
    size_t dim, size_t num_ranks, struct ph_team *team, struct ph_plan_machine *machine_out);

#endif
