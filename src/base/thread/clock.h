/* Time: of this machine since an unspecified start, which never goes back, and of the day, which may; and
 * waits. */
#ifndef PH_BASE_CLOCK_H
#define PH_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "phloem/status.h"

uint64_t ph__clock_ns(void);
double ph__clock_seconds(void);

/* When timeout_ms from now are over, of ph__clock_ns(); and how long that is still, rounded up to
 * milliseconds for poll(2). 0: it is over. */
uint64_t ph__clock_deadline(uint32_t timeout_ms);
int ph__clock_ms_until(uint64_t deadline_ns);

/* Milliseconds since 1 January 1970, UTC. */
uint64_t ph__clock_utc_ms(void);

/* ---- waits ---- */

/* How long a wait may last: for its timeout, and once a signal has asked the program to stop, for a moment
 * more, in which whatever is well still answers. */

#define PH_STOP_GRACE_MS 400

struct ph__timeout {
    uint32_t ms;
    const volatile int *stop_signal; /* NULL, or set by a signal handler: SIGINT or SIGTERM; borrowed */
};

struct ph__wait { /* one that has begun */
    uint64_t deadline_ns;
    const volatile int *stop_signal;
    bool is_stopped; /* the deadline is the signal's */
};

struct ph__wait ph__wait_begin(struct ph__timeout timeout);

/* Milliseconds to poll(2) for before looking again; 0: the wait is over. */
int ph__wait_ms(struct ph__wait *wait);

/* Records that a signal has ended the wait, and returns the signal's status. Only where is_stopped. */
ph_status ph__wait_stopped(const struct ph__wait *wait);

#endif
