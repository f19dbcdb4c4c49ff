/* Signals that ask the program to stop: where their handlers run, and who ends the program. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/stop_signal.h"
#include "support/test_support.h"

static struct sigaction action_of(int number)
{
    struct sigaction action;
    assert_int_equal(sigaction(number, NULL, &action), 0);
    return action;
}

/* oneDNN's kernels lose what they keep below the end of the stack when a handler runs there. */
static void handlers_have_a_stack_of_their_own(void **state)
{
    (void)state;
    stack_t stack;
    cli_stop_signal();
    assert_int_not_equal(action_of(SIGINT).sa_flags & SA_ONSTACK, 0);
    assert_int_not_equal(action_of(SIGTERM).sa_flags & SA_ONSTACK, 0);
    assert_int_equal(sigaltstack(NULL, &stack), 0);
    assert_int_equal(stack.ss_flags & SS_DISABLE, 0);
    assert_true(stack.ss_size >= 32768);
    cli_stop_signal_watch(NULL, false);
    assert_true(action_of(SIGTERM).sa_handler == SIG_DFL);
}

/* How a child ends that runs `body`. */
static int end_of(void (*body)(void))
{
    const pid_t child = fork();
    int status;
    assert_true(child >= 0);
    if (child == 0) {
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void watch_and_raise(void)
{
    const volatile int *place = cli_stop_signal_place();
    cli_stop_signal_watch(NULL, true);
    raise(SIGTERM);
    if (*place != SIGTERM)
        _exit(1);
}

static void watch_raise_and_stop_watching(void)
{
    watch_and_raise();
    cli_stop_signal_watch(NULL, false);
}

static void raise_twice(void)
{
    watch_and_raise();
    raise(SIGINT);
}

static void raise_and_work_on(void)
{
    cli_stop_signal_soon();
    raise(SIGINT);
    for (;;)
        pause();
}

static void a_signal_is_left_to_whoever_looks(void **state)
{
    (void)state;
    assert_int_equal(end_of(watch_and_raise), 0);
    assert_int_equal(end_of(raise_twice), 130);
}

static void a_signal_that_nobody_has_looked_at_ends_the_program(void **state)
{
    (void)state;
    assert_int_equal(end_of(watch_raise_and_stop_watching), 143);
}

static void work_that_may_be_killed_ends_soon(void **state)
{
    (void)state;
    assert_int_equal(end_of(raise_and_work_on), 130);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handlers_have_a_stack_of_their_own),
        cmocka_unit_test(a_signal_is_left_to_whoever_looks),
        cmocka_unit_test(a_signal_that_nobody_has_looked_at_ends_the_program),
        cmocka_unit_test(work_that_may_be_killed_ends_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
