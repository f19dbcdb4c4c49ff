/* See thread.h. */
#include "base/thread.h"

#include <signal.h>

int ph__thread_start(pthread_t *thread_out, void *(*run)(void *context), void *context)
{
    sigset_t all, former;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former);
    const int error = pthread_create(thread_out, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    return error;
}
