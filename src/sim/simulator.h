/* Operators of simulated ranks: they take the time that they take on a machine, and touch no number. What
 * decides sizes, such as the distinct ids of a batch, is calculated. */
#ifndef PH_SIM_SIMULATOR_H
#define PH_SIM_SIMULATOR_H

#include "base/thread/clock.h"
#include "sim/op_times.h"

struct ph__simulation;

struct ph__simulation_options {
    /* Backend that operators are measured on; its team is that of each rank. Borrowed. */
    const struct ph_backend *measuring;
    struct ph__op_times *times; /* borrowed */
    size_t world_size;
    uint64_t host_bytes; /* memory of a host; 0: as this machine's */
    /* Returns the bytes that all ranks share here, and that each would have alone. */
    uint64_t (*shared_bytes)(const void *context);
    const void *shared_context;
};

/* Memory that is allocated from now on is the ranks'. PH_ERROR_MEMORY. */
ph_status ph__simulation_create(
    const struct ph__simulation_options *options, struct ph__simulation **simulation_out);
void ph__simulation_destroy(struct ph__simulation *simulation);

/* Returns the backend of all ranks of a world. */
struct ph_backend *ph__simulation_backend(struct ph__simulation *simulation);

/* Lets the calling rank's communicator take its time for sums and tell its trace of steps and waits, and its
 * memory be counted: its numbers, a part of what is allocated here for all ranks, and what the ranks share.
 */
void ph__simulation_join(struct ph__simulation *simulation);

/* Runs work and takes its time; of struct ph__world_options, with the simulation as context. */
ph_status ph__simulation_work(void *simulation, const struct ph__timed_work *work);

#endif
