/* The team on OpenMP's runtime: libgomp, for gcc's and for clang's build.
 *
 * oneDNN, as the distributions build it, runs on libgomp. `#pragma omp` under clang would bring clang's own
 * runtime into the same process: two pools of threads that do not know of each other, each spinning while the
 * other computes. So no pragma is used: the region is entered by libgomp's stable entry point GOMP_parallel,
 * and the few omp_ functions are declared here by hand, because clang installations without libomp have no
 * omp.h. Both compilers then make the same calls, and the pool that runs tasks is the pool that oneDNN finds.
 * tests/unit/kernel/test_one_runtime.c counts the threads.
 *
 * Every region has the team's full size, however few the tasks: libgomp ends and starts threads whenever the
 * size changes. Tasks are claimed one by one from an atomic counter. A pool belongs to the thread that opens
 * regions.
 *
 * Waiting: a region ends when each thread of the pool has joined it, so one thread that waits for a busy core
 * delays all. libgomp's threads spin for some milliseconds after a region, then sleep. GOMP_SPINCOUNT and
 * OMP_WAIT_POLICY in the environment change that; the runtime reads them when it is loaded, so a program
 * cannot set them for itself. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/thread/cpu.h"
#include "base/thread/parallel_team.h"

void GOMP_parallel(void (*function)(void *), void *data, unsigned num_threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_max_threads(void);
void omp_set_num_threads(int num_threads);

/* One call of ph__parallel_for; on the caller's stack. */
struct region {
    const struct ph__team *team;
    ph__task task;
    void *argument;
    size_t num_tasks;
    uint32_t float_control;
    atomic_size_t next; /* the next task to claim */
};

static ph_status create(size_t num_threads, struct ph__team **team_out)
{
    (void)num_threads; /* the first region starts the threads */
    struct ph__team *team = calloc(1, sizeof *team);
    if (team == NULL)
        return ph__out_of_memory("a team of threads");
    *team_out = team;
    return PH_OK;
}

static void destroy(struct ph__team *team)
{
    free(team); /* the threads are the runtime's, which keeps them for the next region */
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
        ph__team_poll(region->team, worker);
    }
}

static void run(struct ph__team *team, size_t num_tasks, ph__task task, void *argument)
{
    struct region region = {.team = team,
        .task = task,
        .argument = argument,
        .num_tasks = num_tasks,
        .float_control = ph__cpu_float_control()};
    GOMP_parallel(run_worker, &region, (unsigned)team->num_threads, 0);
}

static const struct ph__team_functions functions = {
    .name = "openmp", .create = create, .destroy = destroy, .run = run};
const struct ph__team_functions *const ph__team_openmp = &functions;

size_t ph__parallel_set_library_threads(size_t num_threads)
{
    size_t former = (size_t)omp_get_max_threads();
    if (num_threads != former)
        omp_set_num_threads((int)num_threads);
    return former;
}
