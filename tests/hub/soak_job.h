/* A job of a random kind on a hub, or on several, its workers as threads of the test: drawn, run to its end,
 * and held against a serial loop (shard_oracle.h) to the bit where its kind has decided values. */
#ifndef PH_TEST_SOAK_JOB_H
#define PH_TEST_SOAK_JOB_H

#include "phloem/hub.h"

enum { SOAK_NONCE = 4711, SOAK_TIMEOUT_MS = 60000 };

/* address: of a hub, or of several. The seed decides what the job is. Leaves nothing on a hub. Any thread;
 * PH_ERROR_DATA for a value that is wrong, else what went wrong in a worker. The error names the kind of job.
 */
ph_status soak_job_run(const char *address, const char *name, uint64_t seed);

#endif
