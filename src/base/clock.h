/* Monotonic time in nanoseconds, and wall-clock time for records that people read. */
#ifndef PH_BASE_CLOCK_H
#define PH_BASE_CLOCK_H

#include <stdint.h>

uint64_t ph__clock_ns(void);    /* monotonic */
double ph__clock_seconds(void); /* monotonic */
double ph__clock_unix(void);    /* seconds since 1970 */

#endif
