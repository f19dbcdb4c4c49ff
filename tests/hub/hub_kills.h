/* Jobs of processes that are killed again and again, as chance has it: whoever is left hears of it within
 * five seconds, the job goes on within five seconds of being complete again, from a checkpoint that was
 * there, and a synchronous one ends with the bits of one that nothing has happened to. One thread. */
#ifndef PH_TEST_HUB_KILLS_H
#define PH_TEST_HUB_KILLS_H

#include "hub/hub_processes.h"

enum {
    HUB_LIMIT_MS = 5000,    /* within which a death is noticed, and a job that is complete again goes on: the
                               hub's promise */
    HUB_FINISH_MS = 120000, /* within which a job has to end: no limit of its own, but the test's */
    MAX_KILLED_HUBS = 2,
};

/* How often a test kills: $PH_TEST_KILLS, left alone where that is not set. false: it is no such number,
 * which is said. Prints the seed that kills are drawn from. */
bool hub_kills_begin(uint32_t *num_kills);

/* A synchronous job on so many hubs that share its keys, each with a folder. like: has an option to spare. */
void hub_kills_survive(
    const struct hub_job *like, uint32_t num_hubs, uint64_t checkpoint_every, uint32_t num_kills);

/* ---- a job from end to end ---- */

void hub_kills_start_all(struct hub_job *job); /* its hub, and all workers */
void hub_kills_come_to(struct hub_job *job, uint64_t step);
void hub_kills_finish(struct hub_job *job, char sum_out[32]); /* all workers end alike; their sum */
void hub_kills_run_undisturbed(const struct hub_job *like, char sum_out[32]); /* without a folder */

/* ---- a kill ---- */

/* A survivor that has done so many steps has not made them of what the dead had left: a worker that waits for
 * each iteration is one ahead of another at most, so at most two of its pushes or answers were there. */
enum { HUB_STEPS_ON = 3 };

struct hub_kill {
    bool is_worker[MAX_HUB_WORKERS], is_hub[MAX_KILLED_HUBS];       /* who is killed */
    uint64_t num_lost[MAX_HUB_WORKERS], num_steps[MAX_HUB_WORKERS]; /* then */
    uint64_t more_steps;                                            /* that are waited for */
    bool was_training;
    uint64_t killed_ns, started_ns; /* ... and when the last of them was started again */
};

/* jobs: (num_hubs), the first with the workers. */
void hub_kills_kill(struct hub_job *jobs, uint32_t num_hubs, struct hub_kill *kill);
bool hub_kills_has_gone_on(const struct hub_job *job, const struct hub_kill *kill, uint32_t rank);

#endif
