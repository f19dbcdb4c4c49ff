/* How a thread that has nothing to do passes its time until something comes: by spinning, which notices at once but keeps a
 * core, or by sleeping, which costs some 20 to 30 us to wake from. */
#ifndef PH_NET_WAITER_H
#define PH_NET_WAITER_H

#include <stdbool.h>
#include <stdint.h>

enum ph_wait_policy {
    PH_WAIT_AUTO, /* SPIN_THEN_SLEEP; where threads outnumber processors, a short spin that offers its core to others,
                  * unless those are too busy to give it back */
    PH_WAIT_SPIN,
    PH_WAIT_SPIN_THEN_SLEEP,
    PH_WAIT_SLEEP
};

struct ph_waiter {
    enum ph_wait_policy policy;
    bool is_crowded; /* AUTO: more threads want to run than there are processors */
    uint32_t num_idle;
    uint64_t idle_since_ns;
};

static inline void ph__waiter_init(struct ph_waiter *waiter, enum ph_wait_policy policy, bool is_crowded)
{
    *waiter = (struct ph_waiter){.policy = policy, .is_crowded = is_crowded};
}

/* There was something to do. */
static inline void ph__waiter_reset(struct ph_waiter *waiter)
{
    waiter->num_idle = 0;
}

/* There was nothing: waits a little, or says that it is time to sleep. */
bool ph__waiter_should_sleep(struct ph_waiter *waiter);

#endif
