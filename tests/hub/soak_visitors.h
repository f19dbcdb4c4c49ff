/* Who comes to a hub besides its jobs: those that look at it, that say nothing, or nonsense, and that ask for
 * too much. Each leaves nothing behind. Any thread. */
#ifndef PH_TEST_SOAK_VISITORS_H
#define PH_TEST_SOAK_VISITORS_H

#include "phloem/hub.h"

struct soak_hub {
    const char *address, *metrics; /* borrowed */
    uint32_t max_jobs;
    uint64_t max_job_bytes;
};

/* One of them, as the seed decides; name: of a service that is its own. PH_ERROR_DATA: the hub did not answer
 * as it should. */
ph_status soak_visit(const struct soak_hub *hub, const char *name, uint64_t seed);

/* Services until there may be no more, of a hub that has none; and away with them. */
ph_status soak_fill(const struct soak_hub *hub);

/* What the hub says of itself: PH_OK once it has neither jobs nor connections, but the one that asks;
 * PH_ERROR_DATA else. */
ph_status soak_is_idle(const struct soak_hub *hub);

#endif
