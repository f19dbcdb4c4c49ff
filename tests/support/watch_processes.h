/* A watch of ranks that are processes, for tests that kill them. The test is their parent: it says what each
 * does, sees what each has heard in memory that all share, and kills whom it wants. Fails the test where
 * something takes longer than a minute. */
#ifndef PH_TEST_WATCH_PROCESSES_H
#define PH_TEST_WATCH_PROCESSES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "comm/watch/watch.h"

enum { WATCH_MAX_RANKS = 8 };

struct watch_rank {
    pid_t process;                    /* 0: has been waited for */
    _Atomic bool has_come, has_heard; /* then the notice is written */
    struct ph__comm_notice notice;
    _Atomic uint32_t num_looks;
};

struct watch_processes { /* shared */
    size_t num_ranks;
    bool is_one_host;
    _Atomic int invited;                       /* 1: there is an invitation */
    _Atomic int phase;                         /* the test's, which roles wait for */
    void (*enter)(void *context, size_t rank); /* called first of all in a rank's process; NULL: nothing */
    void *context;
    struct ph__watch_invitation invitation;
    struct watch_rank ranks[WATCH_MAX_RANKS];
};

/* What a rank does once all have come; then it ends, as if it were killed. */
typedef void watch_role(struct watch_processes *all, size_t rank, struct ph__comm_watch *watch);

struct watch_processes *watch_processes_create(size_t num_ranks);
/* All have come when it returns. */
void watch_processes_start(struct watch_processes *all, watch_role *role);
void watch_processes_kill(struct watch_processes *all, size_t rank);
void watch_processes_await_end(struct watch_processes *all, size_t rank); /* by itself */
/* Returns when all ranks that have not been waited for have heard the same, which is what `notice_out` gets.
 */
void watch_processes_await_notice(struct watch_processes *all, struct ph__comm_notice *notice_out);
void watch_processes_await_heard(struct watch_processes *all, size_t rank); /* anything */
/* Returns when all of them have looked some times more. */
void watch_processes_await_looks(struct watch_processes *all);
/* Kills those that are left, and fails where one has ended that was not waited for. */
void watch_processes_destroy(struct watch_processes *all);

/* For roles: both return, after a minute at the latest. */
void watch_role_await_phase(struct watch_processes *all, int phase);
/* Looks until there is a notice, leaves it with the parent, and looks on until the phase has come: whatever
 * is heard must stay what it was, else the process aborts. */
void watch_role_listen(struct watch_processes *all, size_t rank, struct ph__comm_watch *watch, int phase);

#endif
