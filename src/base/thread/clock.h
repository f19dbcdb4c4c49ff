/* Time: of this machine since an unspecified start, which never goes back, and of the day, which may. */
#ifndef PH_BASE_CLOCK_H
#define PH_BASE_CLOCK_H

#include <stdint.h>

uint64_t ph__clock_ns(void);
double ph__clock_seconds(void);

/* When timeout_ms from now are over, of ph__clock_ns(); and how long that is still, rounded up to milliseconds for poll(2). 0: it is
 * over. */
uint64_t ph__clock_deadline(uint32_t timeout_ms);
int ph__clock_ms_until(uint64_t deadline_ns);

/* Milliseconds since 1 January 1970, UTC. */
uint64_t ph__clock_utc_ms(void);

#endif
