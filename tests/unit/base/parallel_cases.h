/* What every backend of base/parallel.h must do. Included by the test of each backend, which provides main. */
#ifndef PH_TEST_PARALLEL_CASES_H
#define PH_TEST_PARALLEL_CASES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/parallel.h"
#include "support/test_support.h"

#define MAX_TASKS 1000

static const size_t team_sizes[] = {1, 2, 3, 7};
#define NUM_TEAM_SIZES (sizeof team_sizes / sizeof team_sizes[0])

struct counted {
    atomic_int runs[MAX_TASKS];
    atomic_size_t largest_worker;
    int plain
        [MAX_TASKS]; /* written by tasks, read by the caller: a race if the end of a region orders nothing */
};

static void count_task(void *argument, size_t task, size_t worker)
{
    struct counted *counted = argument;
    atomic_fetch_add(&counted->runs[task], 1);
    counted->plain[task] = (int)task + 1;
    size_t largest = atomic_load(&counted->largest_worker);
    while (worker > largest && !atomic_compare_exchange_weak(&counted->largest_worker, &largest, worker)) {
    }
}

static void check_counts(struct ph_team *team, size_t num_tasks)
{
    struct counted *counted = calloc(1, sizeof *counted);
    assert_non_null(counted);
    ph__parallel_for(team, num_tasks, count_task, counted);
    for (size_t i = 0; i < MAX_TASKS; i++) {
        assert_int_equal(atomic_load(&counted->runs[i]), i < num_tasks ? 1 : 0);
        assert_int_equal(counted->plain[i], i < num_tasks ? (int)i + 1 : 0);
    }
    assert_true(atomic_load(&counted->largest_worker) < ph__team_num_threads(team));
    free(counted);
}

static void each_task_runs_once(void **state)
{
    (void)state;
    static const size_t task_counts[] = {0, 1, 2, 3, 6, 100, MAX_TASKS};
    for (size_t t = 0; t < NUM_TEAM_SIZES; t++) {
        struct ph_team *team = NULL;
        assert_ok(ph__team_create(team_sizes[t], &team));
        assert_int_equal(ph__team_num_threads(team), team_sizes[t]);
        for (size_t i = 0; i < sizeof task_counts / sizeof task_counts[0]; i++)
            check_counts(team, task_counts[i]);
        ph__team_destroy(team);
    }
}

static void add_task(void *argument, size_t task, size_t worker)
{
    (void)worker;
    atomic_fetch_add((atomic_size_t *)argument, task);
}

static void many_short_regions_lose_no_task(void **state)
{
    (void)state;
    for (size_t t = 0; t < NUM_TEAM_SIZES; t++) {
        struct ph_team *team = NULL;
        atomic_size_t sum = 0;
        assert_ok(ph__team_create(team_sizes[t], &team));
        for (size_t i = 0; i < 100; i++)
            ph__parallel_for(team, 5, add_task, &sum);
        assert_int_equal(atomic_load(&sum), 100 * (0 + 1 + 2 + 3 + 4));
        ph__team_destroy(team);
    }
}

static void two_teams_live_side_by_side(void **state)
{
    (void)state;
    struct ph_team *one = NULL, *other = NULL;
    atomic_size_t sum = 0;
    assert_ok(ph__team_create(2, &one));
    assert_ok(ph__team_create(3, &other));
    ph__parallel_for(one, 4, add_task, &sum);
    ph__parallel_for(other, 4, add_task, &sum);
    assert_int_equal(atomic_load(&sum), 12);
    ph__team_destroy(one);
    ph__team_destroy(other);
}

static void note_float_control(void *argument, size_t task, size_t worker)
{
    (void)worker;
    ((uint32_t *)argument)[task] = ph__cpu_float_control();
}

static void tasks_run_with_the_callers_float_control(void **state)
{
    (void)state;
    struct ph_team *team = NULL;
    uint32_t seen[64] = {0};
    fenv_t former;
    assert_ok(ph__team_create(3, &team));
    ph__parallel_for(
        team, 64, note_float_control, seen); /* workers exist before the caller changes its own */
    ph__cpu_float_enter(true, &former);
    uint32_t wanted = ph__cpu_float_control();
    ph__parallel_for(team, 64, note_float_control, seen);
    ph__cpu_float_leave(&former);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(seen[i], wanted);
    ph__team_destroy(team);
}

static void a_team_without_a_size_has_at_least_one_thread(void **state)
{
    (void)state;
    struct ph_team *team = NULL;
    assert_ok(ph__team_create(0, &team));
    assert_true(ph__team_num_threads(team) >= 1);
    assert_true(ph__team_num_threads(team) <= ph__cpu_count());
    ph__team_destroy(team);
}

static void too_many_threads_are_refused(void **state)
{
    (void)state;
    struct ph_team *team = NULL;
    assert_fails(ph__team_create(PH_MAX_THREADS + 1, &team), PH_ERROR_USAGE, "at most 1024");
    assert_null(team);
}

static void destroying_no_team_is_fine(void **state)
{
    (void)state;
    ph__team_destroy(NULL);
}

struct polled {
    pthread_t caller;
    size_t num_polls, num_strangers; /* strangers: other threads that have polled */
};

static void count_poll(void *context)
{
    struct polled *polled = context;
    polled->num_polls++;
    polled->num_strangers += !pthread_equal(polled->caller, pthread_self());
}

static void the_caller_polls_behind_its_own_tasks(void **state)
{
    (void)state;
    for (size_t t = 0; t < NUM_TEAM_SIZES; t++) {
        struct ph_team *team = NULL;
        struct polled polled = {.caller = pthread_self()};
        atomic_size_t sum = 0;
        assert_ok(ph__team_create(team_sizes[t], &team));
        ph__team_set_poll(team, count_poll, &polled);
        ph__parallel_for(team, 1, add_task, &sum);
        assert_int_equal(polled.num_polls, 1);
        ph__parallel_for(team, 100, add_task, &sum);
        assert_true(polled.num_polls <= 101 && polled.num_strangers == 0);
        assert_true(team_sizes[t] > 1 || polled.num_polls == 101);
        ph__team_set_poll(team, NULL, NULL);
        const size_t num_polls = polled.num_polls;
        ph__parallel_for(team, 100, add_task, &sum);
        assert_int_equal(polled.num_polls, num_polls);
        ph__team_destroy(team);
    }
}

static int run_parallel_cases(const char *backend)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_task_runs_once),
        cmocka_unit_test(many_short_regions_lose_no_task),
        cmocka_unit_test(two_teams_live_side_by_side),
        cmocka_unit_test(tasks_run_with_the_callers_float_control),
        cmocka_unit_test(a_team_without_a_size_has_at_least_one_thread),
        cmocka_unit_test(the_caller_polls_behind_its_own_tasks),
        cmocka_unit_test(too_many_threads_are_refused),
        cmocka_unit_test(destroying_no_team_is_fine),
    };
    if (backend != NULL && strcmp(backend, ph__parallel_backend()) != 0)
        fail_msg("the backend is %s, not %s", ph__parallel_backend(), backend);
    print_message("backend: %s\n", ph__parallel_backend());
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
