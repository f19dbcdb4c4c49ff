/* The team of one: every task on the calling thread. For the double build, and for machines without threads. */
#include <stdlib.h>

#include "base/parallel.h"
#include "base/parallel_poll.h"

struct ph_team {
    size_t num_threads; /* as asked; only the caller's one does the work */
    struct ph_team_poll poll;
};

ph_status ph__team_create(size_t num_threads, struct ph_team **team_out)
{
    if (num_threads > PH_MAX_THREADS)
        return ph_fail(PH_ERROR_USAGE, "%zu threads: at most %d", num_threads, PH_MAX_THREADS);
    struct ph_team *team = calloc(1, sizeof *team);
    if (team == NULL)
        return ph_fail(PH_ERROR_MEMORY, "out of memory: no team of threads");
    team->num_threads = num_threads > 0 ? num_threads : 1;
    *team_out = team;
    return PH_OK;
}

void ph__team_destroy(struct ph_team *team)
{
    free(team);
}

size_t ph__team_num_threads(const struct ph_team *team)
{
    return team->num_threads;
}

void ph__team_set_poll(struct ph_team *team, void (*poll)(void *context), void *context)
{
    team->poll = (struct ph_team_poll){poll, context};
}

void ph__parallel_for(struct ph_team *team, size_t num_tasks, ph_task task, void *argument)
{
    for (size_t i = 0; i < num_tasks; i++) {
        task(argument, i, 0);
        ph__poll_behind_task(&team->poll, 0);
    }
}

size_t ph__parallel_set_library_threads(size_t num_threads)
{
    (void)num_threads;
    return 1;
}

const char *ph__parallel_backend(void)
{
    return "serial";
}
