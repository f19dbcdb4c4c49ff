/* Threads pinned to a processor each, side by side. A sample of two threads that wander, or meet in the
 * kernel, measures the scheduler more than the threads' work. */
#ifndef PH_BENCH_PINNED_H
#define PH_BENCH_PINNED_H

#include <stddef.h>

#include "base/thread/parallel.h"

/* Lists the first processors that the calling thread may run on, at most max; returns how many. */
size_t bench_processors(int *processors_out, size_t max);
void bench_stay_on(int processor); /* pins the calling thread */

/* The threads of one sample. */
struct bench_gang;
typedef void bench_gang_work(struct bench_gang *gang, size_t member, void *argument);

/* Runs `work` once on each of `size` threads (at most PH_MAX_THREADS), the caller's and new ones. Returns the
 * seconds from when all are ready until the last has ended. Member k stays on the k-th processor meanwhile,
 * round-robin where there are fewer. */
double bench_gang_run(size_t size, bench_gang_work *work, void *argument);

size_t bench_gang_size(const struct bench_gang *gang);
/* Returns when every member has made the same call: writes from before are then visible. The first spins; in
 * the second the kernel puts early members to sleep. */
void bench_gang_meet(struct bench_gang *gang);
void bench_gang_meet_asleep(struct bench_gang *gang);

#endif
