/* How a rank passes its time until something comes: by spinning, which notices at once but keeps a core; by
 * offering the core to others; by sleeping. There is nothing to be woken by: a transport makes progress when
 * it is asked. */
#ifndef PH_COMM_COMM_PATIENCE_H
#define PH_COMM_COMM_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

struct ph__patience {
    bool is_crowded;   /* the ranks of this machine want more processors than they may use */
    uint64_t since_ns; /* nothing has come since then */
};

/* Something came. */
static inline void ph__patience_reset(struct ph__patience *patience, uint64_t now_ns)
{
    patience->since_ns = now_ns;
}

enum ph__patience_stage { PH_PATIENCE_SPINS, PH_PATIENCE_OFFERS, PH_PATIENCE_SLEEPS };
/* How a rank passes its time now, if nothing has come; sleep_ns_out: how long it sleeps, 0 where it does not.
 */
enum ph__patience_stage ph__patience_stage(
    const struct ph__patience *patience, uint64_t now_ns, uint64_t *sleep_ns_out);
/* Nothing did: passes a little time in that way, the more the longer it has been. */
void ph__patience_pass(const struct ph__patience *patience, uint64_t now_ns);

/* What a process may run on: its affinity mask, as far as that fits, and how many of these at once. */
#define PH_MASK_WORDS 16
struct ph__processors {
    uint64_t mask[PH_MASK_WORDS];
    uint64_t most;
};
#define PH_NO_PROCESSORS ((struct ph__processors){.most = UINT64_MAX})
void ph__processors_own(struct ph__processors *processors_out);

/* What several processes may run on, who share processors or have some each: begins with PH_NO_PROCESSORS. */
void ph__processors_join(struct ph__processors *all, const struct ph__processors *one);
uint64_t ph__processors_count(const struct ph__processors *all); /* those that can be kept busy at once */

#endif
