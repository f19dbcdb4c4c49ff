/* See waiter.h. */
#include "net/waiter.h"

#include <sched.h>

#include "base/clock.h"

#define SPIN_NS 100000u        /* some times what waking costs */
#define CROWDED_SPIN_NS 20000u /* about what it costs */
#define TURNS_A_LOOK 16        /* at the clock */
#define SLICE_NS 1000000u      /* longer than a hub's threads work, shorter than others keep a processor */
#define MOST_LOST_NS 20000000u /* should the whole process have been stopped */
#define REPAID 8               /* times what was lost */

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

/* A program that does not wait for the hub keeps an offered processor for a slice of some milliseconds, and what this thread
 * waits for has come long before. Then it offers nothing for so many times that sleeping at once wins back a multiple of what
 * was lost (competitive waiting: Karlin et al., SOSP 1991): all costs little more than if it always slept. */
static bool has_lost_by_offer(struct ph_waiter *waiter)
{
    const uint64_t before_ns = ph__clock_ns();
    sched_yield();
    const uint64_t lost_ns = ph__clock_ns() - before_ns;
    if (lost_ns < SLICE_NS)
        return false;
    waiter->num_to_sleep =
        (uint32_t)((lost_ns < MOST_LOST_NS ? lost_ns : MOST_LOST_NS) * REPAID / CROWDED_SPIN_NS);
    return true;
}

static bool has_offered(struct ph_waiter *waiter)
{
    if (waiter->num_to_sleep > 0) {
        waiter->num_to_sleep--;
        return true;
    }
    return has_spun_for(waiter, CROWDED_SPIN_NS) || has_lost_by_offer(waiter);
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
    if (has_spun_for(waiter, SPIN_NS))
        return true;
    pause_briefly();
    return false;
}
