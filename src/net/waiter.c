/* See waiter.h. */
#include "net/waiter.h"

#include <sched.h>

#include "base/clock.h"

#define SPIN_NS 100000u        /* some times what waking costs */
#define CROWDED_SPIN_NS 20000u /* about what it costs */
#define TURNS_A_LOOK 16        /* at the clock */

static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static bool has_spun_for(struct ph_waiter *waiter, uint64_t limit_ns)
{
    if (waiter->num_idle == 1) {
        waiter->idle_since_ns = ph__clock_ns();
        return false;
    }
    return waiter->num_idle % TURNS_A_LOOK == 0 && ph__clock_ns() - waiter->idle_since_ns > limit_ns;
}

bool ph__waiter_should_sleep(struct ph_waiter *waiter)
{
    const bool is_crowded = waiter->policy == PH_WAIT_AUTO && waiter->is_crowded;
    if (waiter->policy == PH_WAIT_SLEEP)
        return true;
    if (waiter->policy == PH_WAIT_SPIN) {
        pause_briefly();
        return false;
    }
    waiter->num_idle++;
    if (has_spun_for(waiter, is_crowded ? CROWDED_SPIN_NS : SPIN_NS))
        return true;
    if (is_crowded)
        sched_yield();
    else
        pause_briefly();
    return false;
}
