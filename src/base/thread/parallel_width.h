/* How many of a team's workers take part in its regions: fewer while other threads keep a core busy.
 *
 * Workers that help with a region gain the caller time. A worker that loses its core with a task in its hands
 * makes the caller wait, for milliseconds where another thread computes there; and one that waits on a core
 * which another thread needs delays that thread. The balance of gains and losses is `credit_ns`, capped so
 * that old gains do not pay for long. When losses have used it up, one worker fewer takes part. One more is
 * tried after a pause, which doubles each time that a trial has ended sooner than it took, and halves when
 * one lasts. So a core that others keep busy costs a trial a second, and one that has become idle is used
 * again within a second.
 *
 * Time is passed in. One thread at a time, the team's caller. */
#ifndef PH_BASE_PARALLEL_WIDTH_H
#define PH_BASE_PARALLEL_WIDTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PH_WIDTH_MOST_CREDIT_NS = 8000000,
    PH_WIDTH_TRIAL_CREDIT_NS = 1000000,
    PH_WIDTH_LEAST_PAUSE_NS = 10000000,
    PH_WIDTH_MOST_PAUSE_NS = 1000000000,
    PH_WIDTH_LOSS_WEIGHT = 2, /* of a lost nanosecond beside a gained one: others want that core, too */
};

struct ph__team_width {
    size_t num_workers; /* that the team has */
    size_t num_active;  /* of these; workers 1 .. num_active take part */
    int64_t credit_ns;
    uint64_t pause_ns;   /* until the next trial, once a worker has left */
    uint64_t changed_ns; /* when num_active last changed */
    bool is_trial;       /* and that it rose then */
};

void ph__team_width_init(struct ph__team_width *width, size_t num_workers, uint64_t now_ns);

/* Takes one more worker when it is time to try, and returns num_active. Before a region. */
size_t ph__team_width_before(struct ph__team_width *width, uint64_t now_ns);

/* Notes what a region gained by its workers, and what it lost by those that did not have a core to
 * themselves. */
void ph__team_width_after(struct ph__team_width *width, uint64_t now_ns, int64_t gained_ns, int64_t lost_ns);

#endif
