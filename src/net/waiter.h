/* How a thread that has nothing to do passes its time until something comes: by spinning, which notices at
 * once but keeps a core, or by sleeping, which costs some 20 to 30 us to wake from; and the doorbells that
 * wake it. */
#ifndef PH_NET_WAITER_H
#define PH_NET_WAITER_H

#include <stdbool.h>
#include <stdint.h>

#include "phloem/status.h"

enum ph__wait_policy {
    PH_WAIT_AUTO, /* SPIN_THEN_SLEEP; where threads outnumber processors, a short spin that offers its core to
                   * others, unless those are too busy to give it back */
    PH_WAIT_SPIN,
    PH_WAIT_SPIN_THEN_SLEEP,
    PH_WAIT_SLEEP
};

struct ph__waiter {
    enum ph__wait_policy policy;
    bool is_crowded; /* AUTO: more threads want to run than there are processors */
    uint32_t num_idle;
    uint64_t idle_since_ns;
};

static inline void ph__waiter_init(struct ph__waiter *waiter, enum ph__wait_policy policy, bool is_crowded)
{
    *waiter = (struct ph__waiter){.policy = policy, .is_crowded = is_crowded};
}

/* There was something to do. */
static inline void ph__waiter_reset(struct ph__waiter *waiter)
{
    waiter->num_idle = 0;
}

/* Passes a few cycles without disturbing the other thread of the core. */
static inline void ph__pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* There was nothing: waits a little, or says that it is time to sleep. */
bool ph__waiter_should_sleep(struct ph__waiter *waiter);

/* ---- doorbells ---- */

/* Doorbells wake a thread that sleeps in poll() or epoll_wait(): a pair of connected sockets, one end a
 * process. Ringing never blocks, whatever the other side does with its end; one that is closed tells that the
 * other process has ended. */

/* Two ends; whoever holds one closes it. PH_ERROR_MEMORY when there are no more descriptors. */
ph_status ph__doorbell_create(int ends_out[2]);

void ph__doorbell_ring(int end);

/* Takes what has been rung, or some of it: whoever rings without end is not waited for, but wakes once more.
 * false: nobody holds the other end any more. */
bool ph__doorbell_answer(int end);

#endif
