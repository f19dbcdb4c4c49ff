/* Operators of simulated ranks: they take the time that they take on a machine, and touch no number. What
 * decides sizes, such as the distinct ids of a batch, is calculated. */
#ifndef PH_SIM_SIMULATOR_H
#define PH_SIM_SIMULATOR_H

#include "base/thread/clock.h"
#include "sim/op_times.h"

struct ph__simulation;

/* measuring: what operators are measured on; their team is that of each rank. Both are borrowed.
 * PH_ERROR_MEMORY. */
ph_status ph__simulation_create(
    const struct ph_backend *measuring, struct ph__op_times *times, struct ph__simulation **simulation_out);
void ph__simulation_destroy(struct ph__simulation *simulation);

/* Returns the backend of all ranks of a world. */
struct ph_backend *ph__simulation_backend(struct ph__simulation *simulation);

/* Lets the calling rank's communicator take its time for sums. */
void ph__simulation_join(struct ph__simulation *simulation);

/* Runs work and takes its time; of struct ph__world_options, with the simulation as context. */
ph_status ph__simulation_work(void *simulation, const struct ph__timed_work *work);

#endif
