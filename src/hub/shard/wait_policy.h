/* How the public header's waits are the net's. */
#ifndef PH_HUB_WAIT_POLICY_H
#define PH_HUB_WAIT_POLICY_H

#include <assert.h>

#include "net/waiter.h"
#include "phloem/hub.h"

static_assert((int)PH_HUB_WAIT_AUTO == (int)PH_WAIT_AUTO && (int)PH_HUB_WAIT_SPIN == (int)PH_WAIT_SPIN &&
                  (int)PH_HUB_WAIT_SPIN_THEN_SLEEP == (int)PH_WAIT_SPIN_THEN_SLEEP &&
                  (int)PH_HUB_WAIT_SLEEP == (int)PH_WAIT_SLEEP,
    "one is the other by a cast");

static inline enum ph_wait_policy ph__wait_policy(enum ph_hub_wait_policy wait)
{
    return (enum ph_wait_policy)wait;
}

#endif
