/* See thread.h. */
#include "base/thread/thread.h"

#include <signal.h>

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
