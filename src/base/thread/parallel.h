/* Data parallelism: a number of tasks, run by a fixed team. The only header about threads that a kernel
 * includes.
 *
 * Results must not depend on which thread runs a task: callers cut work into tasks by shape alone, never by
 * the number of threads, and never reduce across tasks except in task order. A team is of one of two kinds,
 * chosen when it is created: parallel_pthread.c or, where the build has it, parallel_openmp.c (libgomp, the
 * runtime that oneDNN uses). Only one thread at a time may call ph__parallel_for on a team. A task may call
 * it on another team of one thread, and on no other (it would deadlock). A task must not wait for another
 * task: any thread may be descheduled for a while. */
#ifndef PH_BASE_PARALLEL_H
#define PH_BASE_PARALLEL_H

#include <pthread.h>
#include <stddef.h>

#include "phloem/status.h"
#include "phloem/team.h"

struct ph__team;

#define PH_MAX_THREADS 1024 /* of a team, and for other code that starts a given number of threads */

/* Creates a team of the default kind, PH_TEAM_PTHREAD. num_threads 0: as many as this process may run on
 * (affinity and cgroup quota). PH_ERROR_USAGE above PH_MAX_THREADS, PH_ERROR_MEMORY when the threads cannot
 * be started. */
ph_status ph__team_create(size_t num_threads, struct ph__team **team_out);
/* Creates a team of a kind, as above. PH_ERROR_USAGE also for PH_TEAM_OPENMP in a build without OpenMP. */
ph_status ph__team_create_kind(enum ph_team_kind kind, size_t num_threads, struct ph__team **team_out);
/* Creates a team of one thread that runs no task: for simulations. PH_ERROR_MEMORY. */
ph_status ph__team_create_idle(struct ph__team **team_out);
void ph__team_destroy(struct ph__team *team);
size_t ph__team_num_threads(const struct ph__team *team);
const char *ph__team_name(const struct ph__team *team); /* "pthread" or "openmp" */

/* Returns the threads that a library on OpenMP's runtime may use when the caller calls it outside of a task:
 * the team's for an OpenMP team, otherwise 1, because the library would start threads of its own beside the
 * team's. */
size_t ph__team_library_threads(const struct ph__team *team);

/* A task. worker < num_threads identifies the running thread (for scratch memory only). */
typedef void (*ph__task)(void *argument, size_t task, size_t worker);

/* Sets a function that the caller of ph__parallel_for calls after each task that it runs itself, for work
 * that has to advance during a long computation. NULL: none. Called between two regions; context is
 * borrowed. */
void ph__team_set_poll(struct ph__team *team, void (*poll)(void *context), void *context);

/* Runs task 0..num_tasks-1, each once, in any order, and returns when all are done; the caller then sees what
 * the tasks wrote. No allocation. Tasks run with the caller's floating-point control (base/thread/cpu.h). A
 * library on OpenMP's runtime (oneDNN) that is called inside a task uses that one thread only. */
void ph__parallel_for(struct ph__team *team, size_t num_tasks, ph__task task, void *argument);

/* Sets the number of threads that a library on OpenMP's runtime uses when the calling thread calls it outside
 * of a task. Returns the former number; always 1 in a build without OpenMP. */
size_t ph__parallel_set_library_threads(size_t num_threads);

/* ---- other threads ---- */

/* Threads that the library starts, beside those of the program that uses it. */

/* Starts a thread that gets no signals but those of its own faults, such as SIGSEGV, for which the program's
 * handler runs. All other signals are left to the program's own threads. Returns what pthread_create(3) does:
 * 0, or the number of an error. */
int ph__thread_start(pthread_t *thread_out, void *(*run)(void *context), void *context);

/* Gives the calling thread the lowest priority for processor and disk: it runs where nobody else wants to. */
void ph__thread_step_back(void);

#endif
