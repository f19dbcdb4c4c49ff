/* Stopping long work: a signal handler sets a word, 0 or the signal's number, that the work looks at. Also
 * the function that long work calls meanwhile. */
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

/* Tells whether the status is that of stopped work. */
static inline bool ph__is_stop_status(ph_status status)
{
    return status == PH_ERROR_INTERRUPTED || status == PH_ERROR_TERMINATED;
}

/* Returns the status of stopped work, which has the signal's own exit code. */
static inline ph_status ph__stop_status(const volatile int *stop_signal)
{
    return *stop_signal == SIGTERM ? PH_ERROR_TERMINATED : PH_ERROR_INTERRUPTED;
}

/* ---- calls during long work ---- */

/* A function that long work calls again and again, so that a waiting peer learns of its progress. Borrowed
 * while the work lasts. A failure of `call` ends the work. */
struct ph__meanwhile {
    ph_status (*call)(void *context); /* NULL: no peer waits */
    void *context;
};

static inline ph_status ph__meanwhile(const struct ph__meanwhile *meanwhile)
{
    return meanwhile->call != NULL ? meanwhile->call(meanwhile->context) : PH_OK;
}

#endif
