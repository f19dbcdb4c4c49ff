#include "base/thread/parallel.h"

#include <signal.h>

#include "support/test_support.h"

static void *read_mask(void *mask_out)
{
    pthread_sigmask(SIG_SETMASK, NULL, mask_out);
    return NULL;
}

static void a_thread_blocks_signals_and_its_maker_none(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE, SIGALRM};
    sigset_t of_thread, before, after;
    pthread_t thread;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(ph__thread_start(&thread, read_mask, &of_thread), 0);
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        assert_int_equal(sigismember(&of_thread, signals[i]), 1);
        assert_int_equal(sigismember(&after, signals[i]), sigismember(&before, signals[i]));
    }
}

/* Where a fault's signal is blocked, the program's handler is passed over. */
static void a_threads_own_faults_are_not_blocked(void **state)
{
    (void)state;
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t of_thread;
    pthread_t thread;
    assert_int_equal(ph__thread_start(&thread, read_mask, &of_thread), 0);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        assert_int_equal(sigismember(&of_thread, faults[i]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_blocks_signals_and_its_maker_none),
        cmocka_unit_test(a_threads_own_faults_are_not_blocked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
