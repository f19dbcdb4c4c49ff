/* Runs schedules of messages (schedules.h) in a simulated world (sim/world.h). */
#ifndef PH_BENCH_SCHEDULE_WORLD_H
#define PH_BENCH_SCHEDULE_WORLD_H

#include "plan/fabric/fabric.h"
#include "preload/schedules.h"

struct schedule_outcome {
    double seconds;        /* simulated: from the common start to the last rank's end */
    double run_seconds;    /* of this machine's time, likewise */
    uint64_t num_messages; /* of the schedule */
};

/* Runs a schedule on as many ranks as the fabric has, or on the first of them. slack: of struct
 * ph__network_options. Payloads have no bytes. Errors of ph__world_run. */
ph_status schedule_simulate(const struct ph__fabric *fabric, const struct schedule *schedule, double slack,
    struct schedule_outcome *outcome_out);

/* Reads a topology from a text. Ends the program if it has mistakes. */
struct ph__fabric schedule_fabric(const char *text);

#endif
