/* Core threads: each moves the shards that live on it, in turn, for as long as the hub runs.
 *
 * Turns are fair by bytes: in each round a shard may sum as many bytes of gradients as any other (deficit
 * round robin: Shreedhar and Varghese, SIGCOMM 1995), so that a job with large keys does not keep one with
 * small keys waiting. The control thread reaches into a core thread only by calls, which the core thread runs
 * between two rounds. */
#ifndef PH_HUB_CORE_H
#define PH_HUB_CORE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "hub/shard/shard.h"
#include "net/waiter.h"
#include "phloem/hub.h"

#define PH_CORE_BYTES_A_ROUND ((int64_t)256 << 10) /* share of each shard */
#define PH_CORE_LEAST_UPDATE_BYTES 4096            /* bytes that take as long as the work around an update */

/* The public header's wait policies have the values of net's. */
static_assert((int)PH_HUB_WAIT_AUTO == (int)PH_WAIT_AUTO && (int)PH_HUB_WAIT_SPIN == (int)PH_WAIT_SPIN &&
                  (int)PH_HUB_WAIT_SPIN_THEN_SLEEP == (int)PH_WAIT_SPIN_THEN_SLEEP &&
                  (int)PH_HUB_WAIT_SLEEP == (int)PH_WAIT_SLEEP,
    "one is the other by a cast");

static inline enum ph__wait_policy ph__wait_policy(enum ph_hub_wait_policy wait)
{
    return (enum ph__wait_policy)wait;
}

struct ph__core;

struct ph__core_options {
    enum ph__wait_policy wait;
    bool is_crowded;                /* see waiter.h */
    size_t max_shards, max_links;   /* limits for all shards together */
    int processor;                  /* number to pin to, if the system allows; -1: any */
    struct ph__core *const *others; /* (num_others) all core threads with this one, to be woken */
    size_t num_others;
};

/* Starts the thread. PH_ERROR_MEMORY. */
ph_status ph__core_create(const struct ph__core_options *options, struct ph__core **core_out);
void ph__core_destroy(struct ph__core *core); /* ends the thread; its shards are the caller's again */

typedef void (*ph__core_function)(void *context);

/* Runs the function in the core thread between two rounds, and waits for its return. One caller at a time. */
void ph__core_call(struct ph__core *core, ph__core_function function, void *context);

/* Returns "jobs" or "links to workers" when the shard of one more job would exceed that limit, or NULL when
 * there is room. Then ph__core_add_shard may add the shard with its links; PH_ERROR_MEMORY when these cannot
 * be watched. These functions are called in the core thread, inside of a call. */
const char *ph__core_too_many(const struct ph__core *core, size_t num_workers);
ph_status ph__core_add_shard(struct ph__core *core, struct ph__shard *shard);
void ph__core_remove_shard(struct ph__core *core, struct ph__shard *shard);
void ph__core_set_crowded(struct ph__core *core, bool is_crowded); /* see waiter.h */

/* Makes the core thread look at all its shards, although no message has come. Any thread. */
void ph__core_wake(struct ph__core *core);
void ph__core_wake_others(struct ph__core *core); /* all but this one, whose thread calls it */

struct ph__core_counters {
    uint64_t rounds, idle_rounds, sleeps;
};
/* Returns the counters at about this moment. Any thread. */
struct ph__core_counters ph__core_counters(const struct ph__core *core);

#endif
