#include "comm/collective/comm_patience.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/sizes.h"
#include "base/thread/cpu.h"
#include "net/waiter.h"

/* Times since the last message. With processors to spare, a message that has taken longer than spin_ns may
 * be noticed a few microseconds later; in a crowd its sender may need this core. */
struct stages {
    uint64_t spin_ns, offer_ns;
};
static const struct stages roomy = {100000, 10000000}, crowded = {2000, 100000};

/* A sleep lasts 1 / SLEEP_SHARE of the time slept already. */
enum { LEAST_SLEEP_NS = 20000, MOST_SLEEP_NS = 200000, SLEEP_SHARE = 8 };

static void sleep_for(uint64_t ns)
{
    const struct timespec time = {.tv_nsec = (long)ns};
    nanosleep(&time, NULL);
}

enum ph__patience_stage ph__patience_stage(
    const struct ph__patience *patience, uint64_t now_ns, uint64_t *sleep_ns_out)
{
    const struct stages *stages = patience->is_crowded ? &crowded : &roomy;
    const uint64_t idle_ns = now_ns - patience->since_ns;
    *sleep_ns_out = 0;
    if (idle_ns < stages->spin_ns)
        return PH_PATIENCE_SPINS;
    if (idle_ns < stages->offer_ns)
        return PH_PATIENCE_OFFERS;
    const uint64_t share = (idle_ns - stages->offer_ns) / SLEEP_SHARE;
    *sleep_ns_out = ph__min(MOST_SLEEP_NS, ph__max(LEAST_SLEEP_NS, share));
    return PH_PATIENCE_SLEEPS;
}

void ph__patience_pass(const struct ph__patience *patience, uint64_t now_ns)
{
    uint64_t sleep_ns;
    switch (ph__patience_stage(patience, now_ns, &sleep_ns)) {
    case PH_PATIENCE_SPINS:
        ph__pause_briefly();
        break;
    case PH_PATIENCE_OFFERS:
        sched_yield();
        break;
    case PH_PATIENCE_SLEEPS:
        sleep_for(sleep_ns);
        break;
    }
}

/* ---- processors ---- */

static size_t count_bits(const uint64_t mask[PH_MASK_WORDS])
{
    size_t count = 0;
    for (size_t word = 0; word < PH_MASK_WORDS; word++)
        count += (size_t)__builtin_popcountll(mask[word]);
    return count;
}

void ph__processors_own(struct ph__processors *processors_out)
{
    cpu_set_t set;
    *processors_out = (struct ph__processors){.most = ph__cpu_count()};
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    for (size_t cpu = 0; cpu < ph__min(CPU_SETSIZE, 64 * PH_MASK_WORDS); cpu++)
        processors_out->mask[cpu / 64] |= (uint64_t)(CPU_ISSET(cpu, &set) != 0) << cpu % 64;
}

/* Joins masks, and takes the least quota. Launchers give each rank processors of its own by its mask; a
 * quota, which allows a process fewer processors than its mask has, belongs to the container that processes
 * share. */
void ph__processors_join(struct ph__processors *all, const struct ph__processors *one)
{
    for (size_t word = 0; word < PH_MASK_WORDS; word++)
        all->mask[word] |= one->mask[word];
    if (one->most != count_bits(one->mask))
        all->most = ph__min(all->most, one->most);
}

uint64_t ph__processors_count(const struct ph__processors *all)
{
    const size_t processors = count_bits(all->mask);
    return processors == 0 ? all->most : ph__min(processors, all->most);
}
