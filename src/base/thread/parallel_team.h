/* Inside of teams: functions that each kind provides to parallel_team.c. */
#ifndef PH_BASE_PARALLEL_TEAM_H
#define PH_BASE_PARALLEL_TEAM_H

#include <stddef.h>

#include "base/thread/parallel.h"
#include "base/thread/parallel_width.h"

struct ph__team_functions {
    const char *name;
    /* Creates a team without setting `functions` and `num_threads`. num_threads in 2 .. PH_MAX_THREADS. */
    ph_status (*create)(size_t num_threads, struct ph__team **team_out);
    void (*destroy)(struct ph__team *team);
    /* Runs the tasks, at least 2, and returns when all are done. */
    void (*run)(struct ph__team *team, size_t num_tasks, ph__task task, void *argument);
};

/* The head of each kind's own struct. Only the caller's thread writes it; workers read it while they run a
 * task. */
struct ph__team {
    const struct ph__team_functions *functions;
    size_t num_threads;
    void (*poll)(void *context); /* NULL: nothing is called after the caller's tasks */
    void *poll_context;
};

extern const struct ph__team_functions ph__team_pthread;
extern const struct ph__team_functions *const ph__team_openmp; /* NULL: the build has none */

/* Returns the width of a pthread team of at least two threads, for tests that make the team give way. Only
 * the caller's thread may use it, between two regions. */
struct ph__team_width *ph__team_pthread_width(struct ph__team *team);

/* Runs all tasks on the calling thread. A library that a task calls sees one thread. */
void ph__team_run_alone(const struct ph__team *team, size_t num_tasks, ph__task task, void *argument);

/* Calls the poll function when the worker is 0, the caller's thread. */
static inline void ph__team_poll(const struct ph__team *team, size_t worker)
{
    if (worker == 0 && team->poll != NULL)
        team->poll(team->poll_context);
}

#endif
