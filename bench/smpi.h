/* Schedules of messages in SimGrid's SMPI (bench/peers/smpi.py), on the links and routes of our topologies.
 */
#ifndef PH_BENCH_SMPI_H
#define PH_BENCH_SMPI_H

#include "peer.h"
#include "plan/fabric/fabric.h"
#include "preload/schedules.h"

/* Writes a platform file of SimGrid: hosts h0, h1, ..., each direction of a link, and the route that our
 * network takes between any two hosts that have a rank each. PH_ERROR_DISK. */
ph_status smpi_write_platform(const struct ph__fabric *fabric, const char *path);

/* Simulates a schedule, whose order must be NULL. Returns false without the peer, or where it refuses. */
struct smpi_outcome {
    double seconds, run_seconds; /* simulated; of this machine's time, start included */
};
bool smpi_simulate(struct peer *smpi, const struct ph__fabric *fabric, const char *platform,
    const struct schedule *schedule, struct smpi_outcome *outcome_out);

#endif
