/* Monotonic time, from an unspecified start. */
#ifndef PH_BASE_CLOCK_H
#define PH_BASE_CLOCK_H

#include <stdint.h>

uint64_t ph__clock_ns(void);
double ph__clock_seconds(void);

#endif
