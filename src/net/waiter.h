/* Idle threads: they wait by spinning, which notices at once but keeps a core, or by sleeping, which takes
 * some 20 to 30 us to wake from. Also the doorbells that wake them. */
#ifndef PH_NET_WAITER_H
#define PH_NET_WAITER_H

#include <stdbool.h>
#include <stdint.h>

#include "phloem/status.h"

enum ph__wait_policy {
    PH_WAIT_AUTO, /* SPIN_THEN_SLEEP; when threads outnumber processors, a short spin that offers its core to
                     other threads, unless those keep it too long */
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

/* Ends the idle time: there was work. */
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

/* Called when there was no work: waits a little, or returns true when it is time to sleep. */
bool ph__waiter_should_sleep(struct ph__waiter *waiter);

/* ---- doorbells ---- */

/* Doorbells wake a thread that sleeps in poll() or epoll_wait(): a pair of connected sockets, one end a
 * process. Ringing never blocks, whatever the other side does with its end. A closed end means that the other
 * process has ended. */

/* Gives two ends; their holders close them. PH_ERROR_MEMORY when no descriptors are left. */
ph_status ph__doorbell_create(int ends_out[2]);

void ph__doorbell_ring(int end);

/* Takes the rings, or some of them: a peer that rings without end does not hold up the thread, but wakes it
 * once more. Returns false when the other end is closed. */
bool ph__doorbell_answer(int end);

#endif
