/* What the ranks of a training should send each other, by plan_traffic.h: of batches whose ids are counted
 * one by one, as one process reads them. */
#ifndef PH_TEST_STEP_THEORY_H
#define PH_TEST_STEP_THEORY_H

#include "plan/plan_traffic.h"
#include "train/job.h"

/* Of all steps of the job's one epoch, which is not shuffled, and whose dense gradients fit in one bucket:
 * bytes_out (PH_TRAFFIC_COUNT, world_size, world_size), [what][from][to]. */
ph_status step_theory(
    const struct ph__train_job *job, const struct ph__topology *topology, double *bytes_out);

#endif
