/* Measures the distance of two processors: two threads throw a cache line to and fro. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/thread/clock.h"
#include "limits.h"
#include "pinned.h"

enum { THROWS = 2000, FAR_NS = 90 };

struct game {
    _Alignas(64) _Atomic uint32_t ball; /* even: ours, odd: the other thread's */
    int processor;
};

static void *play(void *argument)
{
    struct game *game = argument;
    bench_stay_on(game->processor);
    for (uint32_t throw = 0; throw < THROWS; throw ++) {
        while (atomic_load_explicit(&game->ball, memory_order_acquire) != 2 * throw +1) {
        }
        atomic_store_explicit(&game->ball, 2 * throw +2, memory_order_release);
    }
    return NULL;
}

double bench_core_latency(void)
{
    cpu_set_t former;
    int processors[2];
    pthread_t other;
    if (pthread_getaffinity_np(pthread_self(), sizeof former, &former) != 0 ||
        bench_processors(processors, 2) < 2)
        return 0;
    struct game game = {.processor = processors[1]};
    bench_stay_on(processors[0]);
    uint64_t start = 0;
    if (pthread_create(&other, NULL, play, &game) == 0) {
        for (uint32_t throw = 0; throw < THROWS; throw ++) {
            if (throw == THROWS / 4)
                start = ph__clock_ns(); /* the other thread has surely begun */
            atomic_store_explicit(&game.ball, 2 * throw +1, memory_order_release);
            while (atomic_load_explicit(&game.ball, memory_order_acquire) != 2 * throw +2) {
            }
        }
    }
    const uint64_t end = ph__clock_ns();
    if (start != 0)
        pthread_join(other, NULL);
    pthread_setaffinity_np(pthread_self(), sizeof former, &former);
    return start != 0 ? (double)(end - start) / (2.0 * (THROWS - THROWS / 4)) : 0;
}

const char *bench_placement(size_t num_threads, double latency_before_ns, double latency_after_ns)
{
    if (num_threads < 2)
        return "one thread";
    if ((latency_before_ns < FAR_NS) != (latency_after_ns < FAR_NS))
        return "moved";
    return latency_before_ns < FAR_NS ? "same complex" : "across dies";
}
