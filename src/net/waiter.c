/* See waiter.h. */
#include "net/waiter.h"

#include <sched.h>

#include "base/thread/clock.h"

#define SPIN_NS 100000u        /* some times what waking costs */
#define CROWDED_SPIN_NS 20000u /* about what it costs */
#define TURNS_A_LOOK 16        /* at the clock */

static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static bool has_spun(struct ph_waiter *waiter)
{
    if (waiter->num_idle == 1) {
        waiter->idle_since_ns = ph__clock_ns();
        return false;
    }
    return waiter->num_idle % TURNS_A_LOOK == 0 && ph__clock_ns() - waiter->idle_since_ns > SPIN_NS;
}

/* The clock is looked at after each offer: a program that does not wait for the hub keeps the processor for a slice of some
 * milliseconds, and what this thread waits for may have come long before. */
static bool has_offered(struct ph_waiter *waiter)
{
    if (waiter->num_idle == 1)
        waiter->idle_since_ns = ph__clock_ns();
    else if (ph__clock_ns() - waiter->idle_since_ns > CROWDED_SPIN_NS)
        return true;
    sched_yield();
    return false;
}

bool ph__waiter_should_sleep(struct ph_waiter *waiter)
{
    if (waiter->policy == PH_WAIT_SLEEP)
        return true;
    if (waiter->policy == PH_WAIT_SPIN) {
        pause_briefly();
        return false;
    }
    waiter->num_idle++;
    if (waiter->policy == PH_WAIT_AUTO && waiter->is_crowded)
        return has_offered(waiter);
    if (has_spun(waiter))
        return true;
    pause_briefly();
    return false;
}
