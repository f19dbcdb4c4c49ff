/* The team on POSIX threads, the default: the caller and num_threads - 1 workers, which spin for work, then
 * sleep.
 *
 * Regions
 * A region is open from when the caller publishes it until each of its tasks is done. `left` counts the tasks
 * of the open region that no thread has claimed.
 *   1. Between regions `left` is 0. The caller writes `region` and num_done = 0, and then stores left =
 *      num_tasks (release).
 *   2. A thread claims a task when it lowers `left` from a number above 0 by compare-and-swap (acquire). It
 *      reads `region` only after that.
 *   3. When nothing is left, a worker adds the number of tasks that it has done to num_done (release). The
 *      caller returns when all are done (acquire).
 * From a claim until it is counted in num_done the region cannot end, so `region` cannot change. The claimer
 * sees what the caller wrote in step 1, because each value of `left` above 0 comes from that store through
 * compare-and-swaps alone. A worker that sleeps, or loses its core between its load and its swap, has claimed
 * nothing, and no thread waits for it. When it resumes in a later region, its swap fails, or it succeeds
 * because `left` is the same number again; then it claims a task of that region and reads that region's
 * `region` from there on. So `left` needs no generation beside it.
 *
 * Sleeping
 * A worker announces itself in num_asleep, looks once more at `left`, and waits for `bell` to change; the
 * caller stores `left`, then looks at num_asleep and rings. Both are sequentially consistent: either the
 * worker sees the region or the caller sees the worker. The caller sleeps in the same way, until
 * is_caller_asleep is 0 again, while a worker takes long over its last task. A lost wake-up costs time but
 * loses no task, since the caller runs all tasks that no worker claims.
 *
 * Giving way
 * width (parallel_width.h) says how many workers take part; the others wait at `gate`. A region gains the
 * time that the caller would have needed for the workers' tasks. Two things are losses:
 *   - the caller's wait for a claimed task whose worker has been switched out involuntarily: a worker that
 *     finds the caller asleep asks the kernel for its involuntary switches, and notes new ones in num_stalls
 *     before it adds to num_done;
 *   - the time for which other threads have run while a worker was spinning (crowded_ns), seen as gaps
 *     between its looks at the clock: another program, or the thread that reads this program's data, needs
 *     that core.
 *
 * Wake-ups
 * Past success of spinning determines how long a worker spins (`struct worker`). The caller rings only for a
 * region that is expected to be much longer than a wake-up (`struct kind`), or where regions follow each
 * other so closely that one wake-up serves many (dense_ns), and for no more workers than the region has tasks
 * to give. Without workers awake, and for the shortest regions, the caller runs alone. */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "base/thread/cpu.h"
#include "base/thread/parallel.h"
#include "base/thread/parallel_team.h"

#define LINE 64      /* cache line: the unit in which processors exchange memory */
#define NUM_PLACES 8 /* for a kind, starting at the top eight bits of its hash */
#define NUM_KINDS (256 + NUM_PLACES - 1)
#define LOOKS 32 /* at a condition, between two looks at the clock */

enum {
    MOST_SPIN_NS = 100000,  /* of a worker that waits for a region */
    CROWDED_SPIN_NS = 5000, /* the same in a team with more threads than processors */
    LEAST_SPIN_NS = 2000,
    SWITCHED_OUT_NS = 50000, /* gap between looks at the clock that tells that another thread has run here */
    SHORT_REGION_NS = 3000,  /* shorter regions are not worth sharing cache lines */
    RING_REGION_NS = 100000, /* worth a wake-up, which takes 30 us until the worker runs */
    RING_DENSE_NS = 400000,  /* sum of close regions that is worth a wake-up, too */
    MOST_DENSE_NS = 1000000,
    LEAST_PATIENCE_NS = 20000, /* of the caller for claimed tasks, before it sleeps */
    MOST_PATIENCE_NS = 1000000,
};

/* Statistics of the regions with this task and this number of tasks. */
struct kind {
    ph__task task;
    size_t num_tasks;
    uint64_t alone_ns; /* estimated time of the caller alone */
};

struct region {
    ph__task task;
    void *argument;
    size_t num_tasks;
    uint32_t float_control;
};

struct worker {
    struct pthread_team *team;
    size_t index; /* 1 .. num_threads - 1; the caller is 0 */
    pthread_t thread;
    long num_switches; /* involuntary switches of the thread when it last looked; only the worker uses it */
    uint64_t spin_ns;  /* raised when spinning would have paid, halved otherwise; only the worker uses it */
};

struct pthread_team {
    struct ph__team head;
    size_t num_started;    /* workers; fewer than num_threads - 1 only while a failed create unwinds */
    atomic_uint num_ready; /* workers whose thread has made its allocations */
    uint64_t most_spin_ns;
    struct kind kinds[NUM_KINDS]; /* only the caller uses it, as it does width */
    uint64_t last_end_ns;         /* end of the last region */
    uint64_t dense_ns;            /* recent time in regions, less the time between them */
    struct ph__team_width width;
    unsigned num_seen_stalls;
    uint64_t seen_crowded_ns;
    _Alignas(LINE) struct region region; /* read by threads that have claimed a task; see above */
    atomic_bool is_ending;
    atomic_size_t num_active; /* copy of width's */
    _Alignas(LINE) atomic_size_t left;
    _Alignas(LINE) atomic_size_t num_done;
    atomic_uint is_caller_asleep;
    atomic_uint num_stalls;
    atomic_uint_least64_t crowded_ns; /* time that other threads have run while a worker spun */
    _Alignas(LINE) atomic_uint bell;
    atomic_uint num_asleep;
    atomic_uint gate;
    struct worker workers[];
};

/* ---- waiting ---- */

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

/* Wakes at most `most` threads that wait for a change of the word. */
static void ring(atomic_uint *bell, unsigned most)
{
    atomic_fetch_add(bell, 1);
    futex_wake(bell, most);
}

static bool has_news(struct pthread_team *team)
{
    return atomic_load(&team->left) > 0 || atomic_load(&team->is_ending);
}

static bool spin_for_news(struct worker *worker)
{
    struct pthread_team *team = worker->team;
    const uint64_t start = ph__clock_ns();
    uint64_t now = start;
    do {
        for (int i = 0; i < LOOKS; i++) {
            if (has_news(team))
                return true;
            relax();
        }
        const uint64_t before = now;
        now = ph__clock_ns();
        if (now - before > SWITCHED_OUT_NS)
            atomic_fetch_add(&team->crowded_ns, now - before);
    } while (now - start < worker->spin_ns);
    return false;
}

/* Sleeps until the bell rings. After a sleep that the longest spin would have covered, the worker spins that
 * long next time; otherwise half as long as before. */
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

static bool is_active(struct worker *worker)
{
    return worker->index <= atomic_load(&worker->team->num_active);
}

static void wait_at_gate(struct worker *worker)
{
    struct pthread_team *team = worker->team;
    const unsigned heard = atomic_load(&team->gate);
    if (!is_active(worker) && !atomic_load(&team->is_ending))
        futex_wait(&team->gate, heard);
}

/* ---- tasks ---- */

/* Runs tasks until none is left, and returns how many it ran. */
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

static bool was_switched_out(struct worker *worker)
{
    struct rusage usage;
    const long before = worker->num_switches;
    if (getrusage(RUSAGE_THREAD, &usage) != 0)
        return false;
    worker->num_switches = usage.ru_nivcsw;
    return usage.ru_nivcsw > before;
}

/* Adds the worker's tasks to num_done. Reads `region` before that: after the addition another region may be
 * open. */
static void report_done(struct worker *worker, size_t num_run)
{
    struct pthread_team *team = worker->team;
    const size_t num_tasks = team->region.num_tasks;
    if (atomic_load(&team->is_caller_asleep) != 0 && was_switched_out(worker))
        atomic_fetch_add(&team->num_stalls, 1);
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
        const size_t num_run = is_active(worker) ? run_tasks(team, worker->index) : 0;
        if (num_run > 0)
            report_done(worker, num_run);
        else if (!is_active(worker))
            wait_at_gate(worker);
        else if (!spin_for_news(worker))
            sleep_for_news(worker);
    }
    return NULL;
}

/* ---- the caller's side ---- */

static struct kind *find_kind(struct pthread_team *team, ph__task task, size_t num_tasks)
{
    const uint64_t hash = ((uint64_t)(uintptr_t)task + num_tasks * 0x9e3779b97f4a7c15u) * 0x9e3779b97f4a7c15u;
    struct kind *kinds = &team->kinds[hash >> 56];
    for (size_t i = 0; i < NUM_PLACES; i++)
        if (kinds[i].task == task && kinds[i].num_tasks == num_tasks)
            return &kinds[i];
    size_t place = 0;
    while (place < NUM_PLACES && kinds[place].task != NULL)
        place++;
    if (place == NUM_PLACES)
        place = (size_t)hash % NUM_PLACES;
    kinds[place] = (struct kind){.task = task, .num_tasks = num_tasks};
    return &kinds[place];
}

static void learn_kind(struct kind *kind, uint64_t alone_ns)
{
    if (kind->alone_ns == 0)
        kind->alone_ns = alone_ns;
    else /* the time may be long because the caller lost its core */
        kind->alone_ns =
            (3 * kind->alone_ns + (alone_ns < 2 * kind->alone_ns ? alone_ns : 2 * kind->alone_ns)) / 4;
}

static void note_gap(struct pthread_team *team, uint64_t now)
{
    const uint64_t gap_ns = now - team->last_end_ns;
    team->dense_ns = team->dense_ns > gap_ns ? team->dense_ns - gap_ns : 0;
}

static void note_region(struct pthread_team *team, const struct kind *kind, uint64_t end)
{
    const uint64_t dense_ns = team->dense_ns + kind->alone_ns;
    team->dense_ns = dense_ns < MOST_DENSE_NS ? dense_ns : MOST_DENSE_NS;
    team->last_end_ns = end;
}

static bool is_worth_a_wake_up(const struct pthread_team *team, const struct kind *kind)
{
    return kind->alone_ns == 0 || kind->alone_ns >= RING_REGION_NS || team->dense_ns >= RING_DENSE_NS;
}

/* Tells whether a worker is awake or worth waking. */
static bool has_helpers(struct pthread_team *team, const struct kind *kind)
{
    const size_t num_active = team->width.num_active;
    return num_active > 0 && (atomic_load(&team->num_asleep) < num_active || is_worth_a_wake_up(team, kind));
}

static void publish(struct pthread_team *team, size_t num_tasks, ph__task task, void *argument)
{
    team->region = (struct region){task, argument, num_tasks, ph__cpu_float_control()};
    atomic_store_explicit(&team->num_done, 0, memory_order_relaxed);
    atomic_store(&team->left, num_tasks);
}

/* Wakes workers until there are as many awake as tasks for them. */
static void wake_workers(struct pthread_team *team, size_t num_tasks)
{
    const size_t num_workers = team->width.num_active, num_asleep = atomic_load(&team->num_asleep);
    const size_t num_awake = num_workers > num_asleep ? num_workers - num_asleep : 0;
    const size_t num_wanted = num_tasks - 1 < num_workers ? num_tasks - 1 : num_workers;
    if (num_wanted > num_awake)
        ring(&team->bell, (unsigned)(num_wanted - num_awake));
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

/* Waits until all claimed tasks are done. Spins for about two tasks' time first, because a task that was
 * claimed just before the caller found none left lasts about one. */
static void wait_until_done(struct pthread_team *team, uint64_t start, uint64_t task_ns)
{
    const uint64_t wanted_ns = 2 * task_ns < MOST_PATIENCE_NS ? 2 * task_ns : MOST_PATIENCE_NS;
    if (!spin_until_done(team, start, wanted_ns > LEAST_PATIENCE_NS ? wanted_ns : LEAST_PATIENCE_NS))
        sleep_until_done(team);
}

static bool has_stalled(struct pthread_team *team)
{
    const unsigned before = team->num_seen_stalls;
    team->num_seen_stalls = atomic_load(&team->num_stalls);
    return team->num_seen_stalls != before;
}

static uint64_t new_crowded_ns(struct pthread_team *team)
{
    const uint64_t before = team->seen_crowded_ns;
    team->seen_crowded_ns = atomic_load(&team->crowded_ns);
    return team->seen_crowded_ns - before;
}

/* Runs a region with the workers, and returns when the region has ended. */
static uint64_t run_together(struct pthread_team *team, uint64_t start, struct kind *kind, size_t num_tasks,
    ph__task task, void *argument)
{
    const size_t former = ph__parallel_set_library_threads(1);
    publish(team, num_tasks, task, argument);
    if (is_worth_a_wake_up(team, kind))
        wake_workers(team, num_tasks);
    const size_t num_run = run_tasks(team, 0);
    const uint64_t own_end = ph__clock_ns();
    const uint64_t task_ns = num_run > 0 ? (own_end - start) / num_run : kind->alone_ns / num_tasks;
    atomic_fetch_add(&team->num_done, num_run);
    wait_until_done(team, own_end, task_ns);
    ph__parallel_set_library_threads(former);
    learn_kind(kind, task_ns * num_tasks);
    const uint64_t end = ph__clock_ns();
    ph__team_width_after(&team->width, end, (int64_t)(kind->alone_ns / num_tasks * (num_tasks - num_run)),
        (int64_t)new_crowded_ns(team) + (has_stalled(team) ? (int64_t)(end - own_end) : 0));
    return end;
}

static uint64_t run_alone(struct pthread_team *team, uint64_t start, struct kind *kind, size_t num_tasks,
    ph__task task, void *argument)
{
    ph__team_run_alone(&team->head, num_tasks, task, argument);
    const uint64_t end = ph__clock_ns();
    learn_kind(kind, end - start);
    return end;
}

/* Lets num_active workers take part. */
static void set_active(struct pthread_team *team, size_t num_active)
{
    const size_t before = atomic_load(&team->num_active);
    if (num_active == before)
        return;
    atomic_store(&team->num_active, num_active);
    if (num_active > before)
        ring(&team->gate, PH_MAX_THREADS);
}

static void run(struct ph__team *head, size_t num_tasks, ph__task task, void *argument)
{
    struct pthread_team *team = (struct pthread_team *)head;
    struct kind *kind = find_kind(team, task, num_tasks);
    const uint64_t start = ph__clock_ns();
    set_active(team, ph__team_width_before(&team->width, start));
    note_gap(team, start);
    const bool is_short = kind->alone_ns != 0 && kind->alone_ns < SHORT_REGION_NS;
    const uint64_t end = is_short || !has_helpers(team, kind)
                             ? run_alone(team, start, kind, num_tasks, task, argument)
                             : run_together(team, start, kind, num_tasks, task, argument);
    note_region(team, kind, end);
}

/* ---- from create to destroy ---- */

static void destroy(struct ph__team *head)
{
    struct pthread_team *team = (struct pthread_team *)head;
    atomic_store(&team->is_ending, true);
    ring(&team->bell, PH_MAX_THREADS);
    ring(&team->gate, PH_MAX_THREADS);
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

/* Waits until OpenMP has made its allocations for each worker, so that the first region makes none. */
static void wait_until_ready(struct pthread_team *team)
{
    for (unsigned ready; (ready = atomic_load(&team->num_ready)) < team->num_started;)
        futex_wait(&team->num_ready, ready);
}

static ph_status create(size_t num_threads, struct ph__team **team_out)
{
    const size_t size = sizeof(struct pthread_team) + (num_threads - 1) * sizeof(struct worker);
    const size_t aligned_size = (size + LINE - 1) / LINE * LINE;
    struct pthread_team *team = aligned_alloc(LINE, aligned_size);
    if (team == NULL)
        return ph__out_of_memory("a team of threads");
    memset(team, 0, aligned_size);
    team->most_spin_ns = num_threads > ph__cpu_count() ? CROWDED_SPIN_NS : MOST_SPIN_NS;
    ph__team_width_init(&team->width, num_threads - 1, ph__clock_ns());
    atomic_store(&team->num_active, num_threads - 1);
    if (!start_workers(team, num_threads)) {
        const size_t num_started = team->num_started;
        destroy(&team->head);
        return ph_fail(PH_ERROR_MEMORY, "cannot start thread %zu of %zu", num_started + 2, num_threads);
    }
    wait_until_ready(team);
    *team_out = &team->head;
    return PH_OK;
}

struct ph__team_width *ph__team_pthread_width(struct ph__team *team)
{
    return &((struct pthread_team *)team)->width;
}

const struct ph__team_functions ph__team_pthread = {
    .name = "pthread", .create = create, .destroy = destroy, .run = run};
