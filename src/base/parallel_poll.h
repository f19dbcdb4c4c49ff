/* Inside of teams: who is called behind the tasks of the caller's own thread (ph__team_set_poll), whatever the team is made of. */
#ifndef PH_BASE_PARALLEL_POLL_H
#define PH_BASE_PARALLEL_POLL_H

#include <stddef.h>

struct ph_team_poll {
    void (*call)(void *context); /* NULL: nobody */
    void *context;
};

/* Worker 0 is the caller's thread. */
static inline void ph__poll_behind_task(const struct ph_team_poll *poll, size_t worker)
{
    if (worker == 0 && poll->call != NULL)
        poll->call(poll->context);
}

#endif
