/* What ranks hear of each other's ends, as processes on the loopback: each is told the same, once, whoever
 * else ends besides. */
#include <stdio.h>
#include <string.h>

#include "support/test_support.h"
#include "support/watch_processes.h"

enum { NUM_RANKS = 4, LISTEN_UNTIL_KILLED = 1000 };

static struct watch_processes *all;

static int begin(void **state)
{
    (void)state;
    all = watch_processes_create(NUM_RANKS);
    return 0;
}

static int end(void **state)
{
    (void)state;
    watch_processes_destroy(all);
    return 0;
}

/* ---- deaths ---- */

static void listen_on(struct watch_processes *them, size_t rank, struct ph__comm_watch *watch)
{
    watch_role_listen(them, rank, watch, LISTEN_UNTIL_KILLED);
}

static void assert_death_of(size_t rank, const struct ph__comm_notice *notice)
{
    char name[32];
    snprintf(name, sizeof name, "rank %zu (process ", rank);
    assert_int_equal(notice->rank, rank);
    assert_int_equal(notice->status, PH_ERROR_PEER);
    assert_true(notice->has_died);
    assert_memory_equal(notice->text, name, strlen(name));
    assert_non_null(strstr(notice->text, "ended unexpectedly"));
}

static void the_death_of_any_rank_is_told_to_all_others(void **state)
{
    (void)state;
    for (size_t rank = 0; rank < NUM_RANKS; rank++) {
        struct watch_processes *those = watch_processes_create(NUM_RANKS);
        struct ph__comm_notice notice;
        watch_processes_start(those, listen_on);
        watch_processes_kill(those, rank);
        watch_processes_await_notice(those, &notice);
        assert_death_of(rank, &notice);
        watch_processes_destroy(those);
    }
}

static void what_was_heard_first_stays_when_others_die_as_well(void **state)
{
    (void)state;
    struct ph__comm_notice first, last;
    watch_processes_start(all, listen_on);
    watch_processes_kill(all, 2);
    watch_processes_await_notice(all, &first);
    watch_processes_kill(all, 0);
    watch_processes_kill(all, 3);
    watch_processes_await_looks(all);
    watch_processes_await_notice(all, &last);
    assert_death_of(2, &first);
    assert_string_equal(last.text, first.text);
}

/* ---- failures ---- */

static const char *const complaints[NUM_RANKS] = {"rank 0: the disk is full",
    "rank 1: a row \xff has\nno end", "rank 2: a table is too large", "rank 3: the loss is \xe2\x88\x9e"};

static void tell(size_t rank, struct ph__comm_watch *watch)
{
    struct ph__comm_notice notice = {.rank = (uint32_t)rank, .status = PH_ERROR_DATA};
    snprintf(notice.text, sizeof notice.text, "%s", complaints[rank]);
    watch->tell(watch->context, &notice);
}

static size_t failing; /* before the processes are started */

/* The others look meanwhile: rank 0 must be there to pass it on. */
static void fail_and_end(struct watch_processes *them, size_t rank, struct ph__comm_watch *watch)
{
    if (rank != failing)
        listen_on(them, rank, watch);
    tell(rank, watch);
}

static void assert_complaint(size_t rank, const char *text)
{
    struct ph__comm_notice notice;
    watch_processes_await_notice(all, &notice);
    assert_int_equal(notice.rank, rank);
    assert_int_equal(notice.status, PH_ERROR_DATA);
    assert_false(notice.has_died);
    assert_string_equal(notice.text, text);
}

static void a_rank_that_fails_is_heard_although_it_ends_at_once(void **state)
{
    (void)state;
    failing = 3;
    watch_processes_start(all, fail_and_end);
    watch_processes_await_end(all, failing);
    assert_complaint(failing, complaints[failing]);
}

static void rank_0_is_heard_although_it_ends_at_once(void **state)
{
    (void)state;
    failing = 0;
    watch_processes_start(all, fail_and_end);
    watch_processes_await_end(all, failing);
    assert_complaint(failing, complaints[failing]);
}

static void a_text_that_is_none_arrives_as_one(void **state)
{
    (void)state;
    failing = 1;
    watch_processes_start(all, fail_and_end);
    watch_processes_await_end(all, failing);
    assert_complaint(failing, "rank 1: a row ? has?no end");
}

/* Rank 0 computes, and looks when the other one has gone. */
static void fail_unheard(struct watch_processes *them, size_t rank, struct ph__comm_watch *watch)
{
    if (rank == 0)
        watch_role_await_phase(them, 1);
    fail_and_end(them, rank, watch);
}

static void a_rank_that_fails_while_rank_0_computes_is_heard_later(void **state)
{
    (void)state;
    failing = 2;
    watch_processes_start(all, fail_unheard);
    watch_processes_await_end(all, failing);
    assert_false(atomic_load(&all->ranks[3].has_heard));
    atomic_store(&all->phase, 1);
    assert_complaint(failing, complaints[failing]);
}

/* All of them, rank 0 too. */
static void fail_together(struct watch_processes *them, size_t rank, struct ph__comm_watch *watch)
{
    watch_role_await_phase(them, 1);
    tell(rank, watch);
    listen_on(them, rank, watch);
}

static void fail_together_but_rank_0(struct watch_processes *them, size_t rank, struct ph__comm_watch *watch)
{
    if (rank > 0)
        fail_together(them, rank, watch);
    listen_on(them, rank, watch);
}

static void of_several_that_fail_at_once_one_is_heard_by_all(void **state)
{
    (void)state;
    watch_role *const roles[] = {fail_together, fail_together_but_rank_0};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        struct watch_processes *those = watch_processes_create(NUM_RANKS);
        struct ph__comm_notice notice;
        watch_processes_start(those, roles[i]);
        atomic_store(&those->phase, 1);
        watch_processes_await_notice(those, &notice);
        assert_in_range(notice.rank, i, NUM_RANKS - 1);
        assert_non_null(strstr(notice.text, "rank "));
        watch_processes_destroy(those);
    }
}

/* ---- an end that is none ---- */

/* In the phase of its number, rank r has done its part. */
static void leave_in_turn(struct watch_processes *them, size_t rank, struct ph__comm_watch *watch)
{
    watch_role_listen(them, rank, watch, (int)rank + 1);
    watch->close(watch->context, true);
}

static void assert_no_notice(void)
{
    watch_processes_await_looks(all);
    for (size_t i = 0; i < NUM_RANKS; i++)
        assert_false(atomic_load(&all->ranks[i].has_heard));
}

static void a_clean_end_is_no_death(void **state)
{
    (void)state;
    watch_processes_start(all, leave_in_turn);
    for (size_t rank = 0; rank < NUM_RANKS; rank++) {
        atomic_store(&all->phase, (int)rank + 1);
        watch_processes_await_end(all, rank);
        assert_no_notice();
    }
}

/* Rank 3 leaves first. */
static void leave_last_first(struct watch_processes *them, size_t rank, struct ph__comm_watch *watch)
{
    watch_role_listen(them, rank, watch, (int)(NUM_RANKS - rank));
    watch->close(watch->context, true);
}

static void a_rank_that_leaves_before_rank_0_is_no_death(void **state)
{
    (void)state;
    watch_processes_start(all, leave_last_first);
    for (size_t i = 0; i < NUM_RANKS; i++) {
        atomic_store(&all->phase, (int)i + 1);
        watch_processes_await_end(all, NUM_RANKS - 1 - i);
        assert_no_notice();
    }
}

static void leave_or_listen(struct watch_processes *them, size_t rank, struct ph__comm_watch *watch)
{
    if (rank == 1)
        watch->close(watch->context, true);
    else
        listen_on(them, rank, watch);
}

static void the_death_of_a_rank_is_told_although_another_has_left(void **state)
{
    (void)state;
    struct ph__comm_notice notice;
    watch_processes_start(all, leave_or_listen);
    watch_processes_await_end(all, 1);
    watch_processes_kill(all, 2);
    watch_processes_await_notice(all, &notice);
    assert_death_of(2, &notice);
}

#define test_of_ranks(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_of_ranks(the_death_of_any_rank_is_told_to_all_others),
        test_of_ranks(what_was_heard_first_stays_when_others_die_as_well),
        test_of_ranks(a_rank_that_fails_is_heard_although_it_ends_at_once),
        test_of_ranks(rank_0_is_heard_although_it_ends_at_once),
        test_of_ranks(a_text_that_is_none_arrives_as_one),
        test_of_ranks(a_rank_that_fails_while_rank_0_computes_is_heard_later),
        test_of_ranks(of_several_that_fail_at_once_one_is_heard_by_all),
        test_of_ranks(a_clean_end_is_no_death),
        test_of_ranks(a_rank_that_leaves_before_rank_0_is_no_death),
        test_of_ranks(the_death_of_a_rank_is_told_although_another_has_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
