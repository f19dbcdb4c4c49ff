/* How long a wait may last: for its timeout, and once a signal has asked the program to stop, for a moment more, in which
 * whatever is well still answers. */
#ifndef PH_BASE_WAIT_H
#define PH_BASE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "phloem/status.h"

#define PH_STOP_GRACE_MS 400

struct ph_timeout {
    uint32_t ms;
    const volatile int *stop_signal; /* NULL, or set by a signal handler: SIGINT or SIGTERM; borrowed */
};

struct ph_wait { /* one that has begun */
    uint64_t deadline_ns;
    const volatile int *stop_signal;
    bool is_stopped; /* the deadline is the signal's */
};

struct ph_wait ph__wait_begin(struct ph_timeout timeout);

/* Milliseconds to poll(2) for before looking again; 0: the wait is over. */
int ph__wait_ms(struct ph_wait *wait);

/* Records that a signal has ended the wait, and returns the signal's status. Only where is_stopped. */
ph_status ph__wait_stopped(const struct ph_wait *wait);

#endif
