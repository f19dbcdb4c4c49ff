/* The team on POSIX threads, the default: the caller and num_threads - 1 workers, which spin for work, then sleep.
 *
 * Regions
 * A region is open from when the caller publishes it until each of its tasks is done. `left` counts the tasks of the open
 * region that no thread has claimed.
 *   1. Between regions `left` is 0. The caller writes `region` and num_done = 0, and then stores left = num_tasks (release).
 *   2. A thread claims a task when it lowers `left` from a number above 0 by compare-and-swap (acquire). It reads `region`
 *      only after that.
 *   3. When nothing is left, a worker adds the number of tasks that it has done to num_done (release). The caller returns when
 *      all are done (acquire).
 * From a claim until it is counted in num_done the region cannot end, so `region` cannot change: the claimer sees what the
 * caller wrote in step 1, because each value of `left` above 0 comes from that store through compare-and-swaps alone. A worker
 * that sleeps, or loses its core between its load and its swap, has claimed nothing, and nobody waits for it. Where it goes on in
 * a later region, its swap fails, or it succeeds because `left` is the same number again, which claims a task of that region,
 * whose `region` it reads from then on. So `left` needs no generation beside it.
 *
 * Sleeping
 * A worker announces itself in num_asleep, looks once more at `left`, and waits for `bell` to change; the caller stores `left`, then
 * looks at num_asleep and rings. Both are sequentially consistent: either the worker sees the region or the caller sees the
 * worker. The caller sleeps in the same way, until is_caller_asleep is 0 again, for a worker that is long with its last task.
 * A lost wake-up costs time and no task, since the caller runs whatever nobody claims.
 *
 * How long a worker spins follows from what spinning has given (`struct worker`). A region rings only when it is expected
 * to be longer than a wake-up (`struct kind`), and for no more workers than it has tasks to give. */
#include <assert.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/parallel_team.h"
#include "base/thread.h"

#define LINE 64 /* bytes that processors pass on to each other */
#define NUM_KINDS 64
#define LOOKS 32 /* at what is waited for, between two looks at the clock */

enum {
    MOST_SPIN_NS = 100000,        /* of a worker that waits for a region */
    CROWDED_SPIN_NS = 5000,       /* the same where the team has more threads than there are processors */
    LEAST_SPIN_NS = 2000,
    SHORT_REGION_NS = 3000,       /* not worth the lines that threads pass on to each other */
    RING_REGION_NS = 60000,       /* worth a wake-up, which takes 30 us until the worker runs */
    LEAST_PATIENCE_NS = 20000,    /* of the caller that waits for claimed tasks, before it sleeps */
    MOST_PATIENCE_NS = 1000000,
};

/* What is known of regions with this task and this number of tasks. */
struct kind {
    ph_task task;
    size_t num_tasks;
    uint64_t alone_ns; /* what the caller alone would take, about */
};

struct region {
    ph_task task;
    void *argument;
    size_t num_tasks;
    uint32_t float_control;
};

struct worker {
    struct pthread_team *team;
    size_t index; /* 1 .. num_threads - 1; the caller is 0 */
    pthread_t thread;
    uint64_t spin_ns; /* its own: as long as spinning has paid for, else half as long each time */
};

struct pthread_team {
    struct ph_team head;
    size_t num_started; /* of workers; fewer than num_threads - 1 only while a failed create unwinds */
    atomic_uint num_ready; /* workers that have allocated all that a thread of their kind does */
    uint64_t most_spin_ns;
    struct kind kinds[NUM_KINDS]; /* the caller's */
    _Alignas(LINE) struct region region; /* the claimers'; see above */
    atomic_bool is_ending;
    _Alignas(LINE) atomic_size_t left;
    _Alignas(LINE) atomic_size_t num_done;
    atomic_uint is_caller_asleep;
    _Alignas(LINE) atomic_uint bell;
    atomic_uint num_asleep;
    struct worker workers[];
};

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

static void futex_wait(atomic_uint *word, unsigned value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word, unsigned most)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
}

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void ring(struct pthread_team *team, unsigned most)
{
    atomic_fetch_add(&team->bell, 1);
    futex_wake(&team->bell, most);
}

static bool has_news(struct pthread_team *team)
{
    return atomic_load(&team->left) > 0 || atomic_load(&team->is_ending);
}

static bool spin_for_news(struct worker *worker)
{
    struct pthread_team *team = worker->team;
    const uint64_t start = ph__clock_ns();
    do {
        for (int i = 0; i < LOOKS; i++) {
            if (has_news(team))
                return true;
            relax();
        }
    } while (ph__clock_ns() - start < worker->spin_ns);
    return false;
}

/* Spinning as long as may be would have been rewarded where the sleep was shorter than that. */
static void sleep_for_news(struct worker *worker)
{
    struct pthread_team *team = worker->team;
    const uint64_t start = ph__clock_ns();
    const unsigned heard = atomic_load(&team->bell);
    atomic_fetch_add(&team->num_asleep, 1);
    if (!has_news(team))
        futex_wait(&team->bell, heard);
    atomic_fetch_sub(&team->num_asleep, 1);
    if (ph__clock_ns() - start < team->most_spin_ns)
        worker->spin_ns = team->most_spin_ns;
    else
        worker->spin_ns = worker->spin_ns / 2 > LEAST_SPIN_NS ? worker->spin_ns / 2 : LEAST_SPIN_NS;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------ */

/* Runs tasks until none is left, and returns how many. */
static size_t run_tasks(struct pthread_team *team, size_t index)
{
    const struct region *region = &team->region;
    size_t num_run = 0, left = atomic_load_explicit(&team->left, memory_order_relaxed);
    while (left > 0) {
        if (!atomic_compare_exchange_weak_explicit(
                &team->left, &left, left - 1, memory_order_acquire, memory_order_relaxed))
            continue;
        if (index > 0 && num_run == 0)
            ph__cpu_set_float_control(region->float_control);
        region->task(region->argument, region->num_tasks - left, index);
        ph__team_poll(&team->head, index);
        num_run++;
        left = atomic_load_explicit(&team->left, memory_order_relaxed);
    }
    return num_run;
}

/* The team outlives the region, but not what `region` says: after the addition another one may be open. */
static void report_done(struct pthread_team *team, size_t num_run)
{
    const size_t num_tasks = team->region.num_tasks;
    if (atomic_fetch_add(&team->num_done, num_run) + num_run != num_tasks)
        return;
    if (atomic_exchange(&team->is_caller_asleep, 0) != 0)
        futex_wake(&team->is_caller_asleep, 1);
}

static void *run_worker(void *pointer)
{
    struct worker *worker = pointer;
    struct pthread_team *team = worker->team;
    ph__parallel_set_library_threads(1);
    atomic_fetch_add(&team->num_ready, 1);
    futex_wake(&team->num_ready, 1);
    while (!atomic_load(&team->is_ending)) {
        const size_t num_run = run_tasks(team, worker->index);
        if (num_run > 0)
            report_done(team, num_run);
        else if (!spin_for_news(worker))
            sleep_for_news(worker);
    }
    return NULL;
}

/* ---- the caller's side ------------------------------------------------------------------------------------------ */

static struct kind *find_kind(struct pthread_team *team, ph_task task, size_t num_tasks)
{
    const uint64_t hash = ((uint64_t)(uintptr_t)task + num_tasks * 0x9e3779b97f4a7c15u) * 0x9e3779b97f4a7c15u;
    struct kind *kind = &team->kinds[hash >> 58];
    if (kind->task != task || kind->num_tasks != num_tasks)
        *kind = (struct kind){.task = task, .num_tasks = num_tasks};
    return kind;
}

static_assert(NUM_KINDS == 64, "six bits of the hash");

static void learn_kind(struct kind *kind, uint64_t alone_ns)
{
    kind->alone_ns = kind->alone_ns == 0 ? alone_ns : (3 * kind->alone_ns + alone_ns) / 4;
}

static void publish(struct pthread_team *team, size_t num_tasks, ph_task task, void *argument)
{
    team->region = (struct region){task, argument, num_tasks, ph__cpu_float_control()};
    atomic_store_explicit(&team->num_done, 0, memory_order_relaxed);
    atomic_store(&team->left, num_tasks);
}

/* Wakes as many workers as have a task to run beside those that are awake. */
static void wake_workers(struct pthread_team *team, size_t num_tasks)
{
    const size_t num_workers = team->head.num_threads - 1, num_asleep = atomic_load(&team->num_asleep);
    const size_t num_awake = num_workers > num_asleep ? num_workers - num_asleep : 0;
    const size_t num_wanted = num_tasks - 1 < num_workers ? num_tasks - 1 : num_workers;
    if (num_wanted > num_awake)
        ring(team, (unsigned)(num_wanted - num_awake));
}

static bool is_done(struct pthread_team *team)
{
    return atomic_load(&team->num_done) == team->region.num_tasks;
}

static bool spin_until_done(struct pthread_team *team, uint64_t start, uint64_t patience_ns)
{
    do {
        for (int i = 0; i < LOOKS; i++) {
            if (is_done(team))
                return true;
            relax();
        }
    } while (ph__clock_ns() - start < patience_ns);
    return false;
}

static void sleep_until_done(struct pthread_team *team)
{
    for (;;) {
        atomic_store(&team->is_caller_asleep, 1);
        if (is_done(team))
            break;
        futex_wait(&team->is_caller_asleep, 1);
    }
    atomic_store(&team->is_caller_asleep, 0);
}

/* Who has claimed a task just before the caller found none left needs about as long as a task takes. */
static void wait_until_done(struct pthread_team *team, uint64_t start, uint64_t task_ns)
{
    const uint64_t wanted_ns = 2 * task_ns < MOST_PATIENCE_NS ? 2 * task_ns : MOST_PATIENCE_NS;
    if (!spin_until_done(team, start, wanted_ns > LEAST_PATIENCE_NS ? wanted_ns : LEAST_PATIENCE_NS))
        sleep_until_done(team);
}

static void run_together(
    struct pthread_team *team, struct kind *kind, size_t num_tasks, ph_task task, void *argument)
{
    const uint64_t start = ph__clock_ns();
    const size_t former = ph__parallel_set_library_threads(1);
    publish(team, num_tasks, task, argument);
    if (kind->alone_ns == 0 || kind->alone_ns >= RING_REGION_NS)
        wake_workers(team, num_tasks);
    const size_t num_run = run_tasks(team, 0);
    const uint64_t own_end = ph__clock_ns();
    const uint64_t task_ns = num_run > 0 ? (own_end - start) / num_run : kind->alone_ns / num_tasks;
    atomic_fetch_add(&team->num_done, num_run);
    wait_until_done(team, own_end, task_ns);
    ph__parallel_set_library_threads(former);
    learn_kind(kind, task_ns * num_tasks);
}

static void run(struct ph_team *head, size_t num_tasks, ph_task task, void *argument)
{
    struct pthread_team *team = (struct pthread_team *)head;
    struct kind *kind = find_kind(team, task, num_tasks);
    if (kind->alone_ns != 0 && kind->alone_ns < SHORT_REGION_NS) {
        const uint64_t start = ph__clock_ns();
        ph__team_run_alone(head, num_tasks, task, argument);
        learn_kind(kind, ph__clock_ns() - start);
    } else {
        run_together(team, kind, num_tasks, task, argument);
    }
}

/* ---- from create to destroy ------------------------------------------------------------------------------------- */

static void destroy(struct ph_team *head)
{
    struct pthread_team *team = (struct pthread_team *)head;
    atomic_store(&team->is_ending, true);
    ring(team, PH_MAX_THREADS);
    for (size_t i = 0; i < team->num_started; i++)
        pthread_join(team->workers[i].thread, NULL);
    free(team);
}

static bool start_workers(struct pthread_team *team, size_t num_threads)
{
    for (size_t i = 1; i < num_threads; i++) {
        struct worker *worker = &team->workers[i - 1];
        *worker = (struct worker){.team = team, .index = i, .spin_ns = team->most_spin_ns};
        if (ph__thread_start(&worker->thread, run_worker, worker) != 0)
            return false;
        team->num_started++;
    }
    return true;
}

/* What OpenMP allocates for a thread is allocated before the first region. */
static void wait_until_ready(struct pthread_team *team)
{
    for (unsigned ready; (ready = atomic_load(&team->num_ready)) < team->num_started;)
        futex_wait(&team->num_ready, ready);
}

static ph_status create(size_t num_threads, struct ph_team **team_out)
{
    const size_t size = sizeof(struct pthread_team) + (num_threads - 1) * sizeof(struct worker);
    const size_t aligned_size = (size + LINE - 1) / LINE * LINE;
    struct pthread_team *team = aligned_alloc(LINE, aligned_size);
    if (team == NULL)
        return ph_fail(PH_ERROR_MEMORY, "out of memory: no team of threads");
    memset(team, 0, aligned_size);
    team->most_spin_ns = num_threads > ph__cpu_count() ? CROWDED_SPIN_NS : MOST_SPIN_NS;
    if (!start_workers(team, num_threads)) {
        const size_t num_started = team->num_started;
        destroy(&team->head);
        return ph_fail(PH_ERROR_MEMORY, "cannot start thread %zu of %zu", num_started + 2, num_threads);
    }
    wait_until_ready(team);
    *team_out = &team->head;
    return PH_OK;
}

const struct ph_team_functions ph__team_pthread = {
    .name = "pthread", .create = create, .destroy = destroy, .run = run};
