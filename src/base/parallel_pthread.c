/* The team on POSIX threads: num_threads - 1 workers that sleep on a condition variable between regions, and the caller.
 * For the tsan preset (libgomp is not instrumented) and for systems without an OpenMP runtime. Waiting is passive.
 *
 * Lock protocol: `mutex` guards every field but `next` and the caller's own. The caller fills in a region, raises
 * `generation` and wakes the workers; each worker that sees a new generation joins, claims tasks from `next` until none is
 * left, and lowers `num_running`. The region is over when the caller finds num_running 0: no worker then touches the region
 * again, because a worker that wakes up late takes part in the region too, and the caller waits for all of them. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/parallel.h"
#include "base/parallel_poll.h"

struct worker {
    struct ph_team *team;
    size_t index; /* 1 .. num_threads - 1; the caller is 0 */
    pthread_t thread;
};

struct ph_team {
    size_t num_threads;
    size_t num_started; /* of workers; less than num_threads - 1 only while a failed create unwinds */
    pthread_mutex_t mutex;
    pthread_cond_t work; /* generation or is_ending changed */
    pthread_cond_t done; /* num_running became 0 */
    uint64_t generation; /* regions so far */
    size_t num_running;  /* workers not yet finished with this generation */
    bool is_ending;
    ph_task task;
    void *argument;
    size_t num_tasks;
    uint32_t float_control;
    atomic_size_t next; /* the next task to claim */
    struct ph_team_poll poll;
    struct worker workers[];
};

void ph__team_set_poll(struct ph_team *team, void (*poll)(void *context), void *context)
{
    team->poll = (struct ph_team_poll){poll, context};
}

static void run_tasks(struct ph_team *team, size_t worker)
{
    for (;;) {
        size_t task = atomic_fetch_add_explicit(&team->next, 1, memory_order_relaxed);
        if (task >= team->num_tasks)
            return;
        team->task(team->argument, task, worker);
        ph__poll_behind_task(&team->poll, worker);
    }
}

static void *run_worker(void *pointer)
{
    struct worker *worker = pointer;
    struct ph_team *team = worker->team;
    uint64_t seen = 0;
    pthread_mutex_lock(&team->mutex);
    for (;;) {
        while (team->generation == seen && !team->is_ending)
            pthread_cond_wait(&team->work, &team->mutex);
        if (team->is_ending)
            break;
        seen = team->generation;
        ph__cpu_set_float_control(team->float_control);
        pthread_mutex_unlock(&team->mutex);
        run_tasks(team, worker->index);
        pthread_mutex_lock(&team->mutex);
        if (--team->num_running == 0)
            pthread_cond_signal(&team->done);
    }
    pthread_mutex_unlock(&team->mutex);
    return NULL;
}

static bool start_workers(struct ph_team *team)
{
    for (size_t i = 1; i < team->num_threads; i++) {
        struct worker *worker = &team->workers[i - 1];
        worker->team = team;
        worker->index = i;
        if (pthread_create(&worker->thread, NULL, run_worker, worker) != 0)
            return false;
        team->num_started++;
    }
    return true;
}

ph_status ph__team_create(size_t num_threads, struct ph_team **team_out)
{
    if (num_threads > PH_MAX_THREADS)
        return ph_fail(PH_ERROR_USAGE, "%zu threads: at most %d", num_threads, PH_MAX_THREADS);
    num_threads = num_threads > 0 ? num_threads : ph__cpu_count();
    struct ph_team *team = calloc(1, sizeof *team + num_threads * sizeof team->workers[0]);
    if (team == NULL)
        return ph_fail(PH_ERROR_MEMORY, "out of memory: no team of threads");
    team->num_threads = num_threads;
    pthread_mutex_init(&team->mutex, NULL);
    pthread_cond_init(&team->work, NULL);
    pthread_cond_init(&team->done, NULL);
    if (!start_workers(team)) {
        size_t num_started = team->num_started;
        ph__team_destroy(team);
        return ph_fail(PH_ERROR_MEMORY, "cannot start thread %zu of %zu", num_started + 2, num_threads);
    }
    *team_out = team;
    return PH_OK;
}

void ph__team_destroy(struct ph_team *team)
{
    if (team == NULL)
        return;
    pthread_mutex_lock(&team->mutex);
    team->is_ending = true;
    pthread_cond_broadcast(&team->work);
    pthread_mutex_unlock(&team->mutex);
    for (size_t i = 0; i < team->num_started; i++)
        pthread_join(team->workers[i].thread, NULL);
    pthread_cond_destroy(&team->done);
    pthread_cond_destroy(&team->work);
    pthread_mutex_destroy(&team->mutex);
    free(team);
}

size_t ph__team_num_threads(const struct ph_team *team)
{
    return team->num_threads;
}

void ph__parallel_for(struct ph_team *team, size_t num_tasks, ph_task task, void *argument)
{
    if (team->num_threads == 1 || num_tasks <= 1) {
        for (size_t i = 0; i < num_tasks; i++) {
            task(argument, i, 0);
            ph__poll_behind_task(&team->poll, 0);
        }
        return;
    }
    pthread_mutex_lock(&team->mutex);
    team->task = task;
    team->argument = argument;
    team->num_tasks = num_tasks;
    team->float_control = ph__cpu_float_control();
    atomic_store_explicit(&team->next, 0, memory_order_relaxed);
    team->num_running = team->num_threads - 1;
    team->generation++;
    pthread_cond_broadcast(&team->work);
    pthread_mutex_unlock(&team->mutex);

    run_tasks(team, 0);

    pthread_mutex_lock(&team->mutex);
    while (team->num_running > 0)
        pthread_cond_wait(&team->done, &team->mutex);
    pthread_mutex_unlock(&team->mutex);
}

size_t ph__parallel_set_library_threads(size_t num_threads)
{
    (void)num_threads;
    return 1;
}

const char *ph__parallel_backend(void)
{
    return "pthread";
}
