/* The number of a team's workers that take part in its regions: fewer while other threads keep a core busy.
 *
 * Workers that help with a region gain the caller time. A worker that loses its core during a task makes the
 * caller wait, for milliseconds when another thread computes there. A worker that spins on a core which
 * another thread needs delays that thread. `credit_ns` is the balance of gains and losses, capped so that old
 * gains do not pay for long. When losses have used it up, one worker fewer takes part. After a pause, one
 * more is tried. The pause doubles each time that a trial was shorter than the pause, and halves when a trial
 * lasts. So a core that other threads keep busy costs a trial a second, and a core that has become idle is
 * used again within a second.
 *
 * The caller passes the time in. One thread at a time, the team's caller. */
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
    PH_WIDTH_LOSS_WEIGHT = 2, /* of losses against gains: other threads want that core, too */
};

struct ph__team_width {
    size_t num_workers; /* of the team */
    size_t num_active;  /* workers 1 .. num_active take part */
    int64_t credit_ns;
    uint64_t pause_ns;   /* until the next trial, after a worker has left */
    uint64_t changed_ns; /* when num_active last changed */
    bool is_trial;       /* num_active rose then */
};

void ph__team_width_init(struct ph__team_width *width, size_t num_workers, uint64_t now_ns);

/* Adds one worker for a trial when the pause is over, and returns num_active. Called before a region. */
size_t ph__team_width_before(struct ph__team_width *width, uint64_t now_ns);

/* Notes the time that a region gained by its workers, and the time that it lost by workers without a core to
 * themselves. */
void ph__team_width_after(struct ph__team_width *width, uint64_t now_ns, int64_t gained_ns, int64_t lost_ns);

#endif
