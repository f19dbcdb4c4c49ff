/* Time: of this machine since an unspecified start, which never goes back, and of the day, which may. */
#ifndef PH_BASE_CLOCK_H
#define PH_BASE_CLOCK_H

#include <stdint.h>

uint64_t ph__clock_ns(void);
double ph__clock_seconds(void);

/* Milliseconds since 1 January 1970, UTC. */
uint64_t ph__clock_utc_ms(void);

#endif
