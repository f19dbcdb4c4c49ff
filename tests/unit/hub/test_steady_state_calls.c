/* Which system calls a job makes in its steady state: this program runs itself, and once the job is warm that
 * process forbids itself, in all its threads, every system call but those that a transport and a wait policy
 * need (seccomp(2)). So not even the C library can lock, allocate or map anything unseen: the kernel would
 * end the process. */
#include "support/count_allocations.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/steady_job.h"

enum { NOT_SUPPORTED = 77, MAX_ALLOWED = 20 };

#if defined(SYS_poll) && defined(SYS_epoll_wait) /* processors that Linux has run on for long */
#define CALLS_OF_POLL SYS_poll, SYS_ppoll
#define CALLS_OF_EPOLL SYS_epoll_wait, SYS_epoll_pwait
#else
#define CALLS_OF_POLL SYS_ppoll
#define CALLS_OF_EPOLL SYS_epoll_pwait
#endif

/* The control thread waits for sockets, and the test for its workers. */
#define CALLS_OF_ALL \
    CALLS_OF_EPOLL, SYS_clock_gettime, SYS_clock_nanosleep, SYS_restart_syscall, SYS_exit_group
/* A worker looks from time to time whether the hub says something over the control connection. */
#define CALLS_OF_SPINNING SYS_recvmsg
/* Doorbells are rung and answered. */
#define CALLS_OF_SLEEPING CALLS_OF_POLL, SYS_sendto, SYS_recvfrom, SYS_sched_yield
#define CALLS_OF_TCP SYS_sendmsg, SYS_sendfile

static const struct scene {
    struct steady_job job;
    unsigned allowed[MAX_ALLOWED]; /* up to 0, the number of a call that nothing here needs */
    bool needs_more;               /* so it has to be ended */
} scenes[] = {
    {.job = {.name = "shared memory, spinning", .transport = PH_HUB_SHARED_MEMORY, .wait = PH_HUB_WAIT_SPIN},
        .allowed = {CALLS_OF_ALL, CALLS_OF_SPINNING}},
    {.job = {.name = "shared memory, sleeping", .transport = PH_HUB_SHARED_MEMORY, .wait = PH_HUB_WAIT_SLEEP},
        .allowed = {CALLS_OF_ALL, CALLS_OF_SPINNING, CALLS_OF_SLEEPING}},
    {.job = {.name = "shared memory, own parameters",
         .transport = PH_HUB_SHARED_MEMORY,
         .has_own_parameters = true},
        .allowed = {CALLS_OF_ALL, CALLS_OF_SPINNING, CALLS_OF_SLEEPING}},
    {.job = {.name = "shared memory, arrival order",
         .transport = PH_HUB_SHARED_MEMORY,
         .order = PH_HUB_ARRIVAL_ORDER},
        .allowed = {CALLS_OF_ALL, CALLS_OF_SPINNING, CALLS_OF_SLEEPING}},
    {.job = {.name = "shared memory, wide, narrow keys",
         .transport = PH_HUB_SHARED_MEMORY,
         .is_narrow = true,
         .is_wide = true},
        .allowed = {CALLS_OF_ALL, CALLS_OF_SPINNING, CALLS_OF_SLEEPING}},
    {.job = {.name = "shared memory, clipping, depth 2",
         .transport = PH_HUB_SHARED_MEMORY,
         .clip_norm = .5F,
         .depth = 2},
        .allowed = {CALLS_OF_ALL, CALLS_OF_SPINNING, CALLS_OF_SLEEPING}},
    {.job = {.name = "tcp, two hubs, narrow keys", .transport = PH_HUB_TCP, .num_hubs = 2, .is_narrow = true},
        .allowed = {CALLS_OF_ALL, CALLS_OF_SPINNING, CALLS_OF_SLEEPING, CALLS_OF_TCP}},
    {.job = {.name = "tcp, spinning",
         .transport = PH_HUB_TCP,
         .wait = PH_HUB_WAIT_SPIN,
         .has_no_thread = true},
        .allowed = {CALLS_OF_ALL, CALLS_OF_SPINNING, CALLS_OF_TCP}},
    {.job = {.name = "tcp, sleeping, with tags",
         .transport = PH_HUB_TCP,
         .wait = PH_HUB_WAIT_SLEEP,
         .has_secret = true},
        .allowed = {CALLS_OF_ALL, CALLS_OF_SPINNING, CALLS_OF_SLEEPING, CALLS_OF_TCP}},
    {.job = {.name = "tcp, which needs more than shared memory", .transport = PH_HUB_TCP},
        .allowed = {CALLS_OF_ALL, CALLS_OF_SPINNING, CALLS_OF_SLEEPING},
        .needs_more = true},
};

/* ---- the process that is confined ---- */

#define FILTER(code, value) ((struct sock_filter)BPF_STMT((code), (value)))
#define ALLOW_IF(number, steps_to_end) \
    ((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), (unsigned char)(steps_to_end), 0))

/* All threads: each call that is not listed ends the process with SIGSYS. false: not to be had here. */
static bool confine(const unsigned *allowed)
{
    struct sock_filter steps[MAX_ALLOWED + 3];
    size_t count = 0, used = 0;
    while (allowed[count] != 0)
        count++;
    steps[used++] = FILTER(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < count; i++)
        steps[used++] = ALLOW_IF(allowed[i], count - i);
    steps[used++] = FILTER(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    steps[used++] = FILTER(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = (unsigned short)used, .filter = steps};
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* its end is no mishap */
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

static int run_confined(const struct scene *scene)
{
    static struct steady_job job;
    job = scene->job;
    steady_job_begin(&job);
    if (!confine(scene->allowed))
        _exit(NOT_SUPPORTED);
    steady_job_run(&job);
    _exit(0);
}

/* ---- the process that looks on ---- */

/* What became of this program, run with the number of a scene; a wait status. */
static int run_scene(size_t number)
{
    char argument[8];
    int status;
    snprintf(argument, sizeof argument, "%zu", number);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "test_steady_state_calls", argument, NULL);
        _exit(127);
    }
    while (waitpid(child, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return status;
}

static void no_other_system_call_is_made(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        const int status = run_scene(i);
        if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_SUPPORTED)
            test_skip("no seccomp filters for all threads of a process here");
        if (scenes[i].needs_more && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS))
            fail_msg(
                "%s: not ended by a call that is forbidden, but with status %d", scenes[i].job.name, status);
        if (!scenes[i].needs_more && status != 0)
            fail_msg("%s: %s, status %d", scenes[i].job.name,
                WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS ? "a system call that it does not need"
                                                                  : "failed",
                status);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_other_system_call_is_made),
    };
    if (argc > 1)
        return run_confined(&scenes[strtoul(argv[1], NULL, 10)]);
    if (!allocations_are_counted())
        test_skip("a sanitizer makes system calls of its own");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
