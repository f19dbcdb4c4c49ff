/* Threads of the library's own, beside those of the program that uses it. */
#ifndef PH_BASE_THREAD_H
#define PH_BASE_THREAD_H

#include <pthread.h>

/* Starts a thread that no signal is delivered to but those of its own faults, such as SIGSEGV, which the program's handler then gets:
 * all others are the business of the program's own threads. Returns what pthread_create(3) does: 0, or the number of an error. */
int ph__thread_start(pthread_t *thread_out, void *(*run)(void *context), void *context);

#endif
