/* Stopping long work: what a signal handler has left for it to look at, 0 or the signal's number. */
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

#endif
