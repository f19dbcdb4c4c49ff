#include "support/watch_processes.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "support/test_support.h"

enum { LIMIT_MS = 60000, PAUSE_US = 1000, SOME_LOOKS = 5 };

struct watch_processes *watch_processes_create(size_t num_ranks)
{
    struct watch_processes *all =
        mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(all, MAP_FAILED);
    assert_in_range(num_ranks, 2, WATCH_MAX_RANKS);
    all->num_ranks = num_ranks;
    all->is_one_host = true;
    return all;
}

/* ---- in a rank's process ---- */

static void pause_until(const _Atomic int *number, int wanted)
{
    const uint64_t deadline_ns = ph__clock_deadline(LIMIT_MS);
    while (atomic_load(number) < wanted && ph__clock_ns() < deadline_ns)
        usleep(PAUSE_US);
}

static ph_status come(struct watch_processes *all, size_t rank, struct ph__comm_watch *watch_out)
{
    const struct ph__watch_options options = {
        .rank = rank, .world_size = all->num_ranks, .is_one_host = all->is_one_host, .timeout_ms = LIMIT_MS};
    struct ph__watch_listener *listener;
    if (rank > 0) {
        pause_until(&all->invited, 1);
        return ph__watch_join(&options, &all->invitation, watch_out);
    }
    PH_TRY(ph__watch_listen(&options, &all->invitation, &listener));
    atomic_store(&all->invited, 1);
    return ph__watch_accept(listener, watch_out);
}

static _Noreturn void be(struct watch_processes *all, size_t rank, watch_role *role)
{
    struct ph__comm_watch watch;
    if (all->enter != NULL)
        all->enter(all->context, rank);
    if (come(all, rank, &watch) != PH_OK)
        _exit(ph_status_exit_code(PH_ERROR_PEER));
    atomic_store(&all->ranks[rank].has_come, true);
    role(all, rank, &watch);
    _exit(0);
}

void watch_role_await_phase(struct watch_processes *all, int phase)
{
    pause_until(&all->phase, phase);
}

static bool is_same(const struct ph__comm_notice *one, const struct ph__comm_notice *other)
{
    return one->rank == other->rank && one->status == other->status && one->has_died == other->has_died &&
           strcmp(one->text, other->text) == 0;
}

void watch_role_listen(struct watch_processes *all, size_t rank, struct ph__comm_watch *watch, int phase)
{
    struct watch_rank *own = &all->ranks[rank];
    const uint64_t deadline_ns = ph__clock_deadline(LIMIT_MS);
    while (atomic_load(&all->phase) < phase && ph__clock_ns() < deadline_ns) {
        struct ph__comm_notice notice = {0};
        const bool is_there = watch->look(watch->context, &notice);
        atomic_fetch_add(&own->num_looks, 1);
        const bool has_heard = atomic_load(&own->has_heard);
        if (has_heard && !(is_there && is_same(&notice, &own->notice)))
            abort();
        if (is_there && !has_heard) {
            own->notice = notice;
            atomic_store(&own->has_heard, true);
        }
        usleep(PAUSE_US);
    }
}

/* ---- in the test's process ---- */

static void await(const _Atomic bool *condition)
{
    const uint64_t deadline_ns = ph__clock_deadline(LIMIT_MS);
    while (!atomic_load(condition)) {
        assert_true(ph__clock_ns() < deadline_ns);
        usleep(PAUSE_US);
    }
}

void watch_processes_start(struct watch_processes *all, watch_role *role)
{
    for (size_t rank = 0; rank < all->num_ranks; rank++) {
        const pid_t process = fork();
        assert_true(process >= 0);
        if (process == 0)
            be(all, rank, role);
        all->ranks[rank].process = process;
    }
    for (size_t rank = 0; rank < all->num_ranks; rank++)
        await(&all->ranks[rank].has_come);
}

/* Waits for a rank's process to end. Returns the status of wait(2). */
static int end_of(struct watch_processes *all, size_t rank)
{
    int how = 0;
    assert_int_equal(waitpid(all->ranks[rank].process, &how, 0), all->ranks[rank].process);
    all->ranks[rank].process = 0;
    return how;
}

void watch_processes_kill(struct watch_processes *all, size_t rank)
{
    kill(all->ranks[rank].process, SIGKILL);
    const int how = end_of(all, rank);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
}

void watch_processes_await_end(struct watch_processes *all, size_t rank)
{
    const int how = end_of(all, rank);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

void watch_processes_await_heard(struct watch_processes *all, size_t rank)
{
    await(&all->ranks[rank].has_heard);
}

void watch_processes_await_looks(struct watch_processes *all)
{
    const uint64_t deadline_ns = ph__clock_deadline(LIMIT_MS);
    for (size_t i = 0; i < all->num_ranks; i++) {
        const uint32_t before = atomic_load(&all->ranks[i].num_looks);
        while (all->ranks[i].process != 0 && atomic_load(&all->ranks[i].num_looks) - before < SOME_LOOKS) {
            assert_true(ph__clock_ns() < deadline_ns);
            usleep(PAUSE_US);
        }
    }
}

void watch_processes_await_notice(struct watch_processes *all, struct ph__comm_notice *notice_out)
{
    const struct ph__comm_notice *first = NULL;
    for (size_t i = 0; i < all->num_ranks; i++) {
        const struct ph__comm_notice *notice = &all->ranks[i].notice;
        if (all->ranks[i].process == 0)
            continue;
        watch_processes_await_heard(all, i);
        first = first != NULL ? first : notice;
        assert_true(is_same(notice, first));
    }
    assert_non_null(first);
    *notice_out = *first;
}

void watch_processes_destroy(struct watch_processes *all)
{
    size_t num_ended = 0;
    for (size_t i = 0; i < all->num_ranks; i++) {
        const pid_t process = all->ranks[i].process;
        if (process == 0)
            continue;
        if (waitpid(process, NULL, WNOHANG) == process) {
            num_ended++;
            continue;
        }
        kill(process, SIGKILL);
        waitpid(process, NULL, 0);
    }
    munmap(all, sizeof *all);
    assert_int_equal(num_ended, 0);
}
