/* The team on OpenMP's runtime: libgomp, for gcc's and for clang's build.
 *
 * oneDNN, as the distributions build it, runs on libgomp. `#pragma omp` under clang would bring clang's own runtime into
 * the same process: two pools of threads that do not know of each other, each spinning while the other computes. So no
 * pragma is used at all: the region is entered by libgomp's stable entry point GOMP_parallel, and the few omp_ functions
 * are declared here by hand, because clang installations without libomp have no omp.h. Both compilers then make the
 * same calls, and the pool that runs tasks is the pool that oneDNN finds. tests/unit/kernel/test_one_runtime.c counts.
 *
 * Every region has the team's full size, however few the tasks: libgomp ends and starts threads whenever the size
 * changes. Tasks are claimed one by one from an atomic counter. A pool belongs to the thread that opens regions.
 *
 * Waiting: libgomp's threads spin for some milliseconds after a region, then sleep. It spins only briefly by itself when
 * this process has more threads than processors. Several processes on one machine do not see each other: when
 * ranks x threads exceed the cores, start them with OMP_WAIT_POLICY=passive (or GOMP_SPINCOUNT=0). The runtime reads
 * these variables when it is loaded, so a program cannot set them for itself. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/parallel.h"
#include "base/parallel_poll.h"

void GOMP_parallel(void (*function)(void *), void *data, unsigned num_threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_max_threads(void);
void omp_set_num_threads(int num_threads);

struct ph_team {
    size_t num_threads;
    struct ph_team_poll poll;
};

/* One call of ph__parallel_for; on the caller's stack. */
struct region {
    const struct ph_team *team;
    ph_task task;
    void *argument;
    size_t num_tasks;
    uint32_t float_control;
    atomic_size_t next; /* the next task to claim */
};

ph_status ph__team_create(size_t num_threads, struct ph_team **team_out)
{
    if (num_threads > PH_MAX_THREADS)
        return ph_fail(PH_ERROR_USAGE, "%zu threads: at most %d", num_threads, PH_MAX_THREADS);
    struct ph_team *team = calloc(1, sizeof *team);
    if (team == NULL)
        return ph_fail(PH_ERROR_MEMORY, "out of memory: no team of threads");
    team->num_threads = num_threads > 0 ? num_threads : ph__cpu_count();
    *team_out = team;
    return PH_OK;
}

void ph__team_destroy(struct ph_team *team)
{
    free(team); /* the threads are the runtime's, which keeps them for the next region */
}

size_t ph__team_num_threads(const struct ph_team *team)
{
    return team->num_threads;
}

void ph__team_set_poll(struct ph_team *team, void (*poll)(void *context), void *context)
{
    team->poll = (struct ph_team_poll){poll, context};
}

static void run_worker(void *pointer)
{
    struct region *region = pointer;
    size_t worker = (size_t)omp_get_thread_num();
    ph__cpu_set_float_control(region->float_control);
    for (;;) {
        size_t task = atomic_fetch_add_explicit(&region->next, 1, memory_order_relaxed);
        if (task >= region->num_tasks)
            return;
        region->task(region->argument, task, worker);
        ph__poll_behind_task(&region->team->poll, worker);
    }
}

/* Few tasks or threads: no region. A library called by a task must still see one thread, as it does in a region. */
static void run_alone(const struct ph_team *team, size_t num_tasks, ph_task task, void *argument)
{
    size_t former = ph__parallel_set_library_threads(1);
    for (size_t i = 0; i < num_tasks; i++) {
        task(argument, i, 0);
        ph__poll_behind_task(&team->poll, 0);
    }
    ph__parallel_set_library_threads(former);
}

void ph__parallel_for(struct ph_team *team, size_t num_tasks, ph_task task, void *argument)
{
    if (team->num_threads == 1 || num_tasks <= 1) {
        run_alone(team, num_tasks, task, argument);
        return;
    }
    struct region region = {.team = team,
        .task = task,
        .argument = argument,
        .num_tasks = num_tasks,
        .float_control = ph__cpu_float_control()};
    GOMP_parallel(run_worker, &region, (unsigned)team->num_threads, 0);
}

size_t ph__parallel_set_library_threads(size_t num_threads)
{
    size_t former = (size_t)omp_get_max_threads();
    if (num_threads != former)
        omp_set_num_threads((int)num_threads);
    return former;
}

const char *ph__parallel_backend(void)
{
    return "openmp";
}
