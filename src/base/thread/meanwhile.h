/* What long work calls again and again, so that whoever waits for it may hear that it goes on. */
#ifndef PH_BASE_MEANWHILE_H
#define PH_BASE_MEANWHILE_H

#include <stddef.h>

#include "phloem/status.h"

/* Borrowed while the work lasts. What `call` fails with ends the work. */
struct ph_meanwhile {
    ph_status (*call)(void *context); /* NULL: nobody waits */
    void *context;
};

static inline ph_status ph__meanwhile(const struct ph_meanwhile *meanwhile)
{
    return meanwhile->call != NULL ? meanwhile->call(meanwhile->context) : PH_OK;
}

#endif
