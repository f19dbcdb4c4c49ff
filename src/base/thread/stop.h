/* Stopping long work, by what a signal handler has left for it to look at, 0 or the signal's number; and what
 * such work calls meanwhile. */
#ifndef PH_BASE_STOP_H
#define PH_BASE_STOP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "phloem/status.h"

static inline bool ph__is_stopped(const volatile int *stop_signal) /* NULL: never */
{
    return stop_signal != NULL && *stop_signal != 0;
}

/* Whether something was stopped, by what it ended with. */
static inline bool ph__is_stop_status(ph_status status)
{
    return status == PH_ERROR_INTERRUPTED || status == PH_ERROR_TERMINATED;
}

/* Of what was stopped: the signal's own exit code. */
static inline ph_status ph__stop_status(const volatile int *stop_signal)
{
    return *stop_signal == SIGTERM ? PH_ERROR_TERMINATED : PH_ERROR_INTERRUPTED;
}

/* What long work calls again and again, so that whoever waits for it may hear that it goes on. */

/* Borrowed while the work lasts. What `call` fails with ends the work. */
struct ph__meanwhile {
    ph_status (*call)(void *context); /* NULL: nobody waits */
    void *context;
};

static inline ph_status ph__meanwhile(const struct ph__meanwhile *meanwhile)
{
    return meanwhile->call != NULL ? meanwhile->call(meanwhile->context) : PH_OK;
}

#endif
