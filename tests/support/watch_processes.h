/* A watch of ranks that are processes, for tests that kill them. The test is their parent: it assigns their
 * roles, sees in shared memory what each has learnt, and kills them. Fails the test when a step takes longer
 * than a minute. */
#ifndef PH_TEST_WATCH_PROCESSES_H
#define PH_TEST_WATCH_PROCESSES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "comm/watch/watch.h"

enum { WATCH_MAX_RANKS = 8 };

struct watch_rank {
    pid_t process;                    /* 0: has been waited for */
    _Atomic bool has_come, has_heard; /* has_heard: the notice is written */
    struct ph__comm_notice notice;
    _Atomic uint32_t num_looks;
};

struct watch_processes { /* shared */
    size_t num_ranks;
    bool is_one_host;
    _Atomic int invited;                       /* 1: there is an invitation */
    _Atomic int phase;                         /* set by the test; roles wait for it */
    void (*enter)(void *context, size_t rank); /* called at the start of a rank's process; NULL: nothing is */
    void *context;
    struct ph__watch_invitation invitation;
    struct watch_rank ranks[WATCH_MAX_RANKS];
};

/* The actions of a rank once all have joined; afterwards its process ends as if killed. */
typedef void watch_role(struct watch_processes *all, size_t rank, struct ph__comm_watch *watch);

struct watch_processes *watch_processes_create(size_t num_ranks);
/* Starts all ranks, and returns when all have joined. */
void watch_processes_start(struct watch_processes *all, watch_role *role);
void watch_processes_kill(struct watch_processes *all, size_t rank);
void watch_processes_await_end(struct watch_processes *all, size_t rank); /* without being killed */
/* Returns when all ranks that have not been waited for have the same notice, and gives it in `notice_out`. */
void watch_processes_await_notice(struct watch_processes *all, struct ph__comm_notice *notice_out);
void watch_processes_await_heard(struct watch_processes *all, size_t rank); /* any notice */
/* Returns when each of them has looked a few times more. */
void watch_processes_await_looks(struct watch_processes *all);
/* Kills the remaining ranks, and fails when one has ended that was not waited for. */
void watch_processes_destroy(struct watch_processes *all);

/* Waits, in a role, until the phase has come, or for a minute at most; so does watch_role_listen. */
void watch_role_await_phase(struct watch_processes *all, int phase);
/* Looks until there is a notice, leaves it for the parent, and looks on until the phase has come. Aborts the
 * process when the notice changes. */
void watch_role_listen(struct watch_processes *all, size_t rank, struct ph__comm_watch *watch, int phase);

#endif
