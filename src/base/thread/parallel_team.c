/* Teams of any kind: creates them, and runs tasks that need no second thread. */
#include "base/thread/parallel.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/thread/cpu.h"
#include "base/thread/parallel_team.h"

static ph_status create_alone(size_t num_threads, struct ph__team **team_out)
{
    (void)num_threads;
    *team_out = calloc(1, sizeof **team_out);
    return *team_out != NULL ? PH_OK : ph__out_of_memory("a team of threads");
}

static void destroy_alone(struct ph__team *team)
{
    free(team);
}

/* Teams of one thread, with the name of the requested kind. */
static const struct ph__team_functions alone_functions[] = {
    [PH_TEAM_PTHREAD] = {.name = "pthread", .create = create_alone, .destroy = destroy_alone},
    [PH_TEAM_OPENMP] = {.name = "openmp", .create = create_alone, .destroy = destroy_alone},
};

ph_status ph__team_create(size_t num_threads, struct ph__team **team_out)
{
    return ph__team_create_kind(PH_TEAM_PTHREAD, num_threads, team_out);
}

ph_status ph__team_create_kind(enum ph_team_kind kind, size_t num_threads, struct ph__team **team_out)
{
    const struct ph__team_functions *functions = kind == PH_TEAM_OPENMP ? ph__team_openmp : &ph__team_pthread;
    struct ph__team *team = NULL;
    if (num_threads > PH_MAX_THREADS)
        return ph_fail(PH_ERROR_USAGE, "%zu threads: at most %d", num_threads, PH_MAX_THREADS);
    if (functions == NULL)
        return ph_fail(PH_ERROR_USAGE, "team 'openmp' is not part of this build: set team: pthread");
    if (num_threads == 0)
        num_threads = ph__cpu_count();
    if (num_threads == 1)
        functions = &alone_functions[kind];
    PH_TRY(functions->create(num_threads, &team));
    team->functions = functions;
    team->num_threads = num_threads;
    *team_out = team;
    return PH_OK;
}

static const struct ph__team_functions idle_functions = {
    .name = "idle", .create = create_alone, .destroy = destroy_alone};

ph_status ph__team_create_idle(struct ph__team **team_out)
{
    PH_TRY(create_alone(1, team_out));
    (*team_out)->functions = &idle_functions;
    (*team_out)->num_threads = 1;
    return PH_OK;
}

void ph__team_destroy(struct ph__team *team)
{
    if (team != NULL)
        team->functions->destroy(team);
}

size_t ph__team_num_threads(const struct ph__team *team)
{
    return team->num_threads;
}

const char *ph__team_name(const struct ph__team *team)
{
    return team->functions->name;
}

size_t ph__team_library_threads(const struct ph__team *team)
{
    return team->functions == ph__team_openmp ? team->num_threads : 1;
}

void ph__team_set_poll(struct ph__team *team, void (*poll)(void *context), void *context)
{
    team->poll = poll;
    team->poll_context = context;
}

void ph__team_run_alone(const struct ph__team *team, size_t num_tasks, ph__task task, void *argument)
{
    const size_t former = ph__parallel_set_library_threads(1);
    for (size_t i = 0; i < num_tasks; i++) {
        task(argument, i, 0);
        ph__team_poll(team, 0);
    }
    ph__parallel_set_library_threads(former);
}

void ph__parallel_for(struct ph__team *team, size_t num_tasks, ph__task task, void *argument)
{
    if (team->functions == &idle_functions)
        return;
    if (team->num_threads == 1 || num_tasks <= 1)
        ph__team_run_alone(team, num_tasks, task, argument);
    else
        team->functions->run(team, num_tasks, task, argument);
}

/* ---- other threads ---- */

int ph__thread_start(pthread_t *thread_out, void *(*run)(void *context), void *context)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked, former;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &former);
    const int error = pthread_create(thread_out, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    return error;
}

/* Leaves the thread as it is where the kernel refuses. */
void ph__thread_step_back(void)
{
    const struct sched_param parameters = {.sched_priority = 0};
    (void)sched_setscheduler(0, SCHED_IDLE, &parameters);
#ifdef SYS_ioprio_set
    (void)syscall(SYS_ioprio_set, 1 /* this thread */, 0, 3 << 13 /* idle */);
#endif
}
