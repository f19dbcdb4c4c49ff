#include "pinned.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/thread/clock.h"
#include "figures.h"

enum { SPINS = 20000 /* tries before yielding the processor, perhaps to a member that is waited for */ };

struct bench_gang {
    size_t size;
    bench_gang_work *work;
    void *argument;
    double start, end; /* member 0 */
    pthread_barrier_t barrier;
    _Alignas(64) atomic_size_t num_there, num_meetings;
};

struct member {
    struct bench_gang *gang;
    size_t index;
    pthread_t thread;
};

size_t bench_processors(int *processors_out, size_t max)
{
    cpu_set_t set;
    size_t count = 0;
    if (pthread_getaffinity_np(pthread_self(), sizeof set, &set) != 0)
        return 0;
    for (int i = 0; i < CPU_SETSIZE && count < max; i++)
        if (CPU_ISSET((size_t)i, &set))
            processors_out[count++] = i;
    return count;
}

void bench_stay_on(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)processor, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

size_t bench_gang_size(const struct bench_gang *gang)
{
    return gang->size;
}

void bench_gang_meet(struct bench_gang *gang)
{
    const size_t meeting = atomic_load_explicit(&gang->num_meetings, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&gang->num_there, 1, memory_order_acq_rel) + 1 == gang->size) {
        atomic_store_explicit(&gang->num_there, 0, memory_order_relaxed);
        atomic_store_explicit(&gang->num_meetings, meeting + 1, memory_order_release);
        return;
    }
    for (size_t i = 0; atomic_load_explicit(&gang->num_meetings, memory_order_acquire) == meeting; i++)
        if (i % SPINS == SPINS - 1)
            sched_yield();
}

void bench_gang_meet_asleep(struct bench_gang *gang)
{
    pthread_barrier_wait(&gang->barrier);
}

static void join_gang(struct bench_gang *gang, size_t member)
{
    int processors[PH_MAX_THREADS];
    cpu_set_t former;
    const size_t count = bench_processors(processors, PH_MAX_THREADS);
    const int is_known = pthread_getaffinity_np(pthread_self(), sizeof former, &former) == 0;
    if (is_known && count > 0)
        bench_stay_on(processors[member % count]);
    bench_gang_meet(gang);
    if (member == 0)
        gang->start = ph__clock_seconds();
    gang->work(gang, member, gang->argument);
    bench_gang_meet(gang);
    if (member == 0)
        gang->end = ph__clock_seconds();
    if (is_known)
        pthread_setaffinity_np(pthread_self(), sizeof former, &former);
}

static void *run_member(void *pointer)
{
    const struct member *member = pointer;
    join_gang(member->gang, member->index);
    return NULL;
}

double bench_gang_run(size_t size, bench_gang_work *work, void *argument)
{
    struct bench_gang gang = {.size = size, .work = work, .argument = argument};
    struct member members[PH_MAX_THREADS];
    if (pthread_barrier_init(&gang.barrier, NULL, (unsigned)gang.size) != 0)
        bench_check(ph_fail(PH_ERROR_MEMORY, "cannot create a barrier for %zu threads", gang.size));
    for (size_t i = 1; i < size; i++) {
        members[i] = (struct member){.gang = &gang, .index = i};
        if (pthread_create(&members[i].thread, NULL, run_member, &members[i]) != 0)
            bench_check(ph_fail(PH_ERROR_MEMORY, "cannot start thread %zu of %zu", i + 1, size));
    }
    join_gang(&gang, 0);
    for (size_t i = 1; i < size; i++)
        pthread_join(members[i].thread, NULL);
    pthread_barrier_destroy(&gang.barrier);
    return gang.end - gang.start;
}
