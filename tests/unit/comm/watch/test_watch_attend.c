#include "comm/watch/watch.h"

#include <string.h>

#include "support/test_support.h"
#include "support/watch_processes.h"

enum { NUM_RANKS = 4, COMPUTED = 1, LISTEN_UNTIL_KILLED = 1000 };

/* Rank 0 computes, and looks at nothing meanwhile. */
static void compute_and_listen(struct watch_processes *all, size_t rank, struct ph__comm_watch *watch)
{
    if (rank == 0 && ph__watch_attend(watch) == PH_OK)
        watch_role_await_phase(all, COMPUTED);
    watch_role_listen(all, rank, watch, LISTEN_UNTIL_KILLED);
}

static void a_death_is_passed_on_while_rank_0_computes(void **state)
{
    (void)state;
    struct watch_processes *all = watch_processes_create(NUM_RANKS);
    struct ph__comm_notice notice;
    watch_processes_start(all, compute_and_listen);
    watch_processes_kill(all, 2);
    watch_processes_await_heard(all, 1);
    watch_processes_await_heard(all, 3);
    assert_false(atomic_load(&all->ranks[0].has_heard));
    assert_int_equal(atomic_load(&all->ranks[0].num_looks), 0);
    atomic_store(&all->phase, COMPUTED);
    watch_processes_await_notice(all, &notice);
    assert_int_equal(notice.rank, 2);
    assert_int_equal(notice.status, PH_ERROR_PEER);
    assert_true(notice.has_died);
    assert_non_null(strstr(notice.text, "ended unexpectedly"));
    watch_processes_destroy(all);
}

/* Rank 0 tells of a failure of its own, and closes: all hear that, though it ends right after. */
static void fail_first(struct watch_processes *all, size_t rank, struct ph__comm_watch *watch)
{
    const struct ph__comm_notice notice = {.status = PH_ERROR_DISK, .text = "rank 0: the disk is full"};
    if (rank > 0 || ph__watch_attend(watch) != PH_OK) {
        watch_role_listen(all, rank, watch, LISTEN_UNTIL_KILLED);
        return;
    }
    watch->tell(watch->context, &notice);
    watch->close(watch->context, false);
}

static void what_the_rank_itself_tells_is_told(void **state)
{
    (void)state;
    struct watch_processes *all = watch_processes_create(NUM_RANKS);
    struct ph__comm_notice notice;
    watch_processes_start(all, fail_first);
    watch_processes_await_end(all, 0);
    watch_processes_await_notice(all, &notice);
    assert_int_equal(notice.status, PH_ERROR_DISK);
    assert_string_equal(notice.text, "rank 0: the disk is full");
    watch_processes_destroy(all);
}

/* All leave; nobody takes an end for a death. */
static void leave(struct watch_processes *all, size_t rank, struct ph__comm_watch *watch)
{
    struct ph__comm_notice notice;
    if (rank > 0) {
        watch->close(watch->context, true);
        watch_role_await_phase(all, LISTEN_UNTIL_KILLED);
        return;
    }
    if (ph__watch_attend(watch) != PH_OK)
        return;
    for (int i = 0; i < 3; i++)
        if (watch->look(watch->context, &notice))
            return;
    watch->close(watch->context, true);
    atomic_store(&all->phase, COMPUTED);
    watch_role_await_phase(all, LISTEN_UNTIL_KILLED);
}

static void a_watch_that_is_attended_to_closes(void **state)
{
    (void)state;
    struct watch_processes *all = watch_processes_create(NUM_RANKS);
    watch_processes_start(all, leave);
    watch_role_await_phase(all, COMPUTED);
    assert_int_equal(atomic_load(&all->phase), COMPUTED);
    watch_processes_destroy(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_death_is_passed_on_while_rank_0_computes),
        cmocka_unit_test(what_the_rank_itself_tells_is_told),
        cmocka_unit_test(a_watch_that_is_attended_to_closes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
