/* Decides how a waiting rank passes its time: it spins, which notices a message at once but keeps a core;
 * offers the core to others; or sleeps. Nothing could wake it: a transport makes progress only when it is
 * asked. */
#ifndef PH_COMM_COMM_PATIENCE_H
#define PH_COMM_COMM_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

struct ph__patience {
    bool is_crowded;   /* the ranks of this machine want more processors than they may use */
    uint64_t since_ns; /* when the last message came */
};

/* Notes that a message came. */
static inline void ph__patience_reset(struct ph__patience *patience, uint64_t now_ns)
{
    patience->since_ns = now_ns;
}

enum ph__patience_stage { PH_PATIENCE_SPINS, PH_PATIENCE_OFFERS, PH_PATIENCE_SLEEPS };
/* Returns how a rank passes its time now; *sleep_ns_out: how long it sleeps, 0 where it does not. */
enum ph__patience_stage ph__patience_stage(
    const struct ph__patience *patience, uint64_t now_ns, uint64_t *sleep_ns_out);
/* Passes a little time in that way, the more the longer nothing has come. */
void ph__patience_pass(const struct ph__patience *patience, uint64_t now_ns);

/* Processors that a process may use: its affinity mask, as far as that fits, and how many of them at once. */
#define PH_MASK_WORDS 16
struct ph__processors {
    uint64_t mask[PH_MASK_WORDS];
    uint64_t most;
};
#define PH_NO_PROCESSORS ((struct ph__processors){.most = UINT64_MAX})
void ph__processors_own(struct ph__processors *processors_out);

/* Adds one process's processors to those of several, which share them or have some each. `all` begins as
 * PH_NO_PROCESSORS. */
void ph__processors_join(struct ph__processors *all, const struct ph__processors *one);
uint64_t ph__processors_count(const struct ph__processors *all); /* how many can be kept busy at once */

#endif
