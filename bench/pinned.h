/* Threads that stay on a processor each, side by side. Where threads wander or meet in the kernel, a sample
 * of two of them says more about the scheduler than about what they do. */
#ifndef PH_BENCH_PINNED_H
#define PH_BENCH_PINNED_H

#include <stddef.h>

#include "base/thread/parallel.h"

/* The first processors that the calling thread may run on, at most max; returns how many. */
size_t bench_processors(int *processors_out, size_t max);
void bench_stay_on(int processor); /* the calling thread, from now on */

/* The threads of one sample. */
struct bench_gang;
typedef void bench_gang_work(struct bench_gang *gang, size_t member, void *argument);

/* Runs `work` once on each of `size` threads (at most PH_MAX_THREADS), the caller's and new ones, and returns
 * the seconds from when all stand ready until the last has ended. Member k stays on the k-th processor
 * meanwhile, round and round where there are fewer. */
double bench_gang_run(size_t size, bench_gang_work *work, void *argument);

size_t bench_gang_size(const struct bench_gang *gang);
/* Returns when every member has called it as often: what they wrote before is then seen. The first spins; in
 * the second the kernel puts those to sleep who come early. */
void bench_gang_meet(struct bench_gang *gang);
void bench_gang_meet_asleep(struct bench_gang *gang);

#endif
