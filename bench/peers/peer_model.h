/* Shared by the drivers of the hub's peers: gradients whose sums are exact, the optimizer that follows the
 * sum, and the comparison that finds a wrong sum or weight. Compiled as C by openmpi.py and as C++ by
 * pslite.py.
 *
 * The gradients repeat after PEER_PERIOD values and are small integers, so that a sum over workers is the
 * same float in any order, and a model that they update repeats likewise. One period, computed apart by the
 * same step and without contraction (-ffp-contract=off), is bit by bit what each period of it must be. */
#ifndef PH_BENCH_PEER_MODEL_H
#define PH_BENCH_PEER_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PEER_PERIOD = 128, PEER_LINE = 16 /* numbers of a cache line */, PEER_HUGE_PAGE_BYTES = 2 << 20 };

/* One period of the expected results. Zero-initialised: before the first step. */
struct peer_expected {
    float weights[PEER_PERIOD], velocity[PEER_PERIOD];
};

/* Allocates zeros on huge pages where the system grants them, and touches them; NULL without memory. Freed
 * when the process ends. */
static inline float *peer_floats(size_t count)
{
    const size_t bytes = count * sizeof(float) + PEER_HUGE_PAGE_BYTES;
    void *memory = aligned_alloc(PEER_HUGE_PAGE_BYTES, bytes - bytes % PEER_HUGE_PAGE_BYTES);
    if (memory == NULL)
        return NULL;
    madvise(memory, bytes - bytes % PEER_HUGE_PAGE_BYTES, MADV_HUGEPAGE); /* when refused, smaller pages do */
    return (float *)memset(memory, 0, count * sizeof(float));
}

static inline void peer_gradient(float *gradient, size_t count, int worker)
{
    for (size_t i = 0; i < count; i++)
        gradient[i] = (float)(worker + 1) * (float)(i % PEER_PERIOD + 1);
}

/* Writes a number of each line of the gradient (count), unchanged, so that the line belongs to this processor
 * alone, as after a worker's own pass between two steps. The gradient is `unit` times that of worker 0. */
static inline void peer_rewrite(float *gradient, size_t count, float unit)
{
    volatile float *numbers = gradient;
    for (size_t i = 0; i < count; i += PEER_LINE)
        numbers[i] = unit * (float)(i % PEER_PERIOD + 1);
}

/* Reads a number of each line of the received values, for the same purpose. */
static inline void peer_look_at(const float *received, size_t count)
{
    const volatile float *numbers = received;
    for (size_t i = 0; i < count; i += PEER_LINE)
        (void)numbers[i];
}

/* Computes one period of the workers' sum. */
static inline void peer_expected_sum(float sum[PEER_PERIOD], int workers)
{
    peer_gradient(sum, PEER_PERIOD, 0);
    for (size_t i = 0; i < PEER_PERIOD; i++)
        sum[i] *= (float)(workers * (workers + 1) / 2);
}

/* Takes a step: velocity = 0.9 velocity + sum / workers; weights -= 0.01 velocity. */
static inline void peer_step(float *__restrict weights, float *__restrict velocity,
    const float *__restrict sum, size_t count, int workers)
{
    const float share = 1.0F / (float)workers;
    for (size_t i = 0; i < count; i++) {
        velocity[i] = 0.9F * velocity[i] + sum[i] * share;
        weights[i] -= 0.01F * velocity[i];
    }
}

static inline void peer_expect_step(struct peer_expected *expected, int workers)
{
    float sum[PEER_PERIOD];
    peer_expected_sum(sum, workers);
    peer_step(expected->weights, expected->velocity, sum, PEER_PERIOD, workers);
}

/* Returns true when `values` repeat the period, bit by bit. */
static inline bool peer_repeats(const float *values, size_t count, const float period[PEER_PERIOD])
{
    const size_t whole = count - count % PEER_PERIOD;
    for (size_t i = 0; i < whole; i += PEER_PERIOD)
        if (memcmp(values + i, period, PEER_PERIOD * sizeof(float)) != 0)
            return false;
    return memcmp(values + whole, period, (count - whole) * sizeof(float)) == 0;
}

#endif
