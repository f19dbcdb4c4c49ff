/* Clocks and waits. The monotonic clock counts from an unspecified start; the clock of the day may go
 * back. */
#ifndef PH_BASE_CLOCK_H
#define PH_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "phloem/status.h"

uint64_t ph__clock_ns(void);
double ph__clock_seconds(void);

/* Work whose time counts where time is simulated. It may be run again with the same outcome. */
struct ph__timed_work {
    const char *name; /* static */
    double amount;    /* by which its time grows, such as a number of ids */
    ph_status (*run)(void *context);
    void *context;
};
ph_status ph__timed_work_run(const struct ph__timed_work *work);

/* A clock in place of the monotonic one, for the thread that sets it: a simulated rank's. NULL: none.
 * Borrowed. */
struct ph__clock {
    uint64_t (*now_ns)(const struct ph__clock *clock);
    ph_status (*work)(const struct ph__clock *clock, const struct ph__timed_work *work);
};
void ph__clock_replace(const struct ph__clock *clock);

/* Returns the deadline timeout_ms from now, on ph__clock_ns(), and the time left until one, rounded up to
 * milliseconds for poll(2). 0: the deadline has passed. */
uint64_t ph__clock_deadline(uint32_t timeout_ms);
int ph__clock_ms_until(uint64_t deadline_ns);

/* Returns milliseconds since 1 January 1970, UTC. */
uint64_t ph__clock_utc_ms(void);

/* ---- waits ---- */

/* A wait lasts for its timeout or, once a signal has asked the program to stop, for PH_STOP_GRACE_MS more, in
 * which healthy peers still answer. */

#define PH_STOP_GRACE_MS 400

struct ph__timeout {
    uint32_t ms;
    const volatile int *stop_signal; /* NULL, or set by a signal handler: SIGINT or SIGTERM; borrowed */
};

struct ph__wait { /* a wait that has begun */
    uint64_t deadline_ns;
    const volatile int *stop_signal;
    bool is_stopped; /* the signal has set the deadline */
};

struct ph__wait ph__wait_begin(struct ph__timeout timeout);

/* Returns the milliseconds to poll(2) for before calling again; 0: the wait is over. */
int ph__wait_ms(struct ph__wait *wait);

/* Records that a signal has ended the wait, and returns the signal's status. Only when is_stopped. */
ph_status ph__wait_stopped(const struct ph__wait *wait);

#endif
