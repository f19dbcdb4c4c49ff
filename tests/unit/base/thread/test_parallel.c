/* What teams of each kind must do. Those of a kind that the build lacks are left out. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread/cpu.h"
#include "base/thread/parallel.h"
#include "base/thread/parallel_team.h"
#include "support/test_support.h"

#define MAX_TASKS 1000

static const size_t team_sizes[] = {1, 2, 3, 7};
#define NUM_TEAM_SIZES (sizeof team_sizes / sizeof team_sizes[0])

static size_t num_kinds(void)
{
    return ph__team_openmp != NULL ? 2 : 1;
}

static struct ph__team *create(size_t kind, size_t num_threads)
{
    struct ph__team *team = NULL;
    assert_ok(ph__team_create_kind((enum ph_team_kind)kind, num_threads, &team));
    assert_int_equal(ph__team_num_threads(team), num_threads);
    return team;
}

struct counted {
    atomic_int runs[MAX_TASKS];
    atomic_size_t largest_worker;
    int plain[MAX_TASKS]; /* written by tasks, read by the caller: a race if the end of a region orders
                             nothing */
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

static void check_counts(struct ph__team *team, size_t num_tasks)
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
    for (size_t t = 0; t < num_kinds() * NUM_TEAM_SIZES; t++) {
        struct ph__team *team = create(t / NUM_TEAM_SIZES, team_sizes[t % NUM_TEAM_SIZES]);
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

/* Regions of changing argument, task and size follow each other at once: a worker that is late with one finds
 * the next. */
static void late_workers_claim_no_task_of_a_region_that_has_ended(void **state)
{
    (void)state;
    for (size_t t = 0; t < num_kinds() * NUM_TEAM_SIZES; t++) {
        struct ph__team *team = create(t / NUM_TEAM_SIZES, team_sizes[t % NUM_TEAM_SIZES]);
        struct counted *counted = calloc(1, sizeof *counted);
        assert_non_null(counted);
        for (size_t i = 0; i < 400; i++) {
            atomic_size_t sum = 0;
            ph__parallel_for(team, 2 + i % 5, add_task, &sum);
            assert_int_equal(atomic_load(&sum), (2 + i % 5) * (1 + i % 5) / 2);
            ph__parallel_for(team, 2 + i % 3, count_task, counted);
        }
        assert_int_equal(atomic_load(&counted->runs[0]), 400);
        assert_int_equal(atomic_load(&counted->runs[1]), 400);
        assert_int_equal(atomic_load(&counted->runs[2]), 266);
        assert_int_equal(atomic_load(&counted->runs[3]), 133);
        free(counted);
        ph__team_destroy(team);
    }
}

static void two_teams_live_side_by_side(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < num_kinds(); kind++) {
        struct ph__team *one = create(kind, 2), *other = create(kind, 3);
        atomic_size_t sum = 0;
        ph__parallel_for(one, 4, add_task, &sum);
        ph__parallel_for(other, 4, add_task, &sum);
        assert_int_equal(atomic_load(&sum), 12);
        ph__team_destroy(one);
        ph__team_destroy(other);
    }
}

struct nested {
    struct ph__team *teams[3]; /* of one thread, a worker each */
    atomic_size_t sum;
};

static void nest_task(void *argument, size_t task, size_t worker)
{
    struct nested *nested = argument;
    (void)task;
    ph__parallel_for(nested->teams[worker], 4, add_task, &nested->sum);
}

static void a_task_may_use_a_team_of_one_thread(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < num_kinds(); kind++) {
        struct ph__team *team = create(kind, 3);
        struct nested nested = {.sum = 0};
        for (size_t i = 0; i < 3; i++)
            nested.teams[i] = create(kind, 1);
        ph__parallel_for(team, 50, nest_task, &nested);
        assert_int_equal(atomic_load(&nested.sum), 50 * 6);
        for (size_t i = 0; i < 3; i++)
            ph__team_destroy(nested.teams[i]);
        ph__team_destroy(team);
    }
}

static void note_float_control(void *argument, size_t task, size_t worker)
{
    (void)worker;
    ((uint32_t *)argument)[task] = ph__cpu_float_control();
}

static void tasks_run_with_the_callers_float_control(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < num_kinds(); kind++) {
        struct ph__team *team = create(kind, 3);
        uint32_t seen[64] = {0};
        fenv_t former;
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
}

static void note_library_threads(void *argument, size_t task, size_t worker)
{
    (void)worker;
    const size_t threads = ph__parallel_set_library_threads(1);
    ((size_t *)argument)[task] = threads;
    ph__parallel_set_library_threads(threads);
}

static void a_library_sees_one_thread_in_a_task(void **state)
{
    (void)state;
    const size_t former = ph__parallel_set_library_threads(5);
    for (size_t t = 0; t < NUM_TEAM_SIZES; t++) {
        struct ph__team *team = create(PH_TEAM_PTHREAD, team_sizes[t]);
        for (size_t num_tasks = 1; num_tasks <= 64; num_tasks += 63) {
            size_t seen[64] = {0};
            ph__parallel_for(team, num_tasks, note_library_threads, seen);
            for (size_t i = 0; i < num_tasks; i++)
                assert_int_equal(seen[i], 1);
        }
        ph__team_destroy(team);
    }
    assert_int_equal(ph__parallel_set_library_threads(former), ph__team_openmp != NULL ? 5 : 1);
}

static void a_team_without_a_size_has_at_least_one_thread(void **state)
{
    (void)state;
    struct ph__team *team = NULL;
    assert_ok(ph__team_create(0, &team));
    assert_true(ph__team_num_threads(team) >= 1);
    assert_true(ph__team_num_threads(team) <= ph__cpu_count());
    ph__team_destroy(team);
}

static void too_many_threads_are_refused(void **state)
{
    (void)state;
    struct ph__team *team = NULL;
    for (size_t kind = 0; kind < num_kinds(); kind++)
        assert_fails(ph__team_create_kind((enum ph_team_kind)kind, PH_MAX_THREADS + 1, &team), PH_ERROR_USAGE,
            "at most 1024");
    assert_null(team);
}

static void a_build_without_openmp_says_so(void **state)
{
    (void)state;
    struct ph__team *team = NULL;
    if (ph__team_openmp != NULL)
        skip();
    assert_fails(ph__team_create_kind(PH_TEAM_OPENMP, 2, &team), PH_ERROR_USAGE, "not part of this build");
    assert_null(team);
}

static void destroying_no_team_is_fine(void **state)
{
    (void)state;
    ph__team_destroy(NULL);
}

/* Workers never woken, asleep, and busy until a moment before. */
static void destroying_a_team_ends_its_threads(void **state)
{
    (void)state;
    const size_t before = test_count_threads();
    for (int i = 0; i < 3; i++) {
        struct ph__team *team = create(PH_TEAM_PTHREAD, 4);
        atomic_size_t sum = 0;
        assert_int_equal(test_count_threads(), before + 3);
        if (i > 0)
            ph__parallel_for(team, 100, add_task, &sum);
        if (i > 1)
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); /* long enough for them to fall asleep */
        ph__team_destroy(team);
    }
    for (size_t i = 0; test_count_threads() != before && i < 1000;
         i++) /* a joined thread's entry may stay for a moment */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(test_count_threads(), before);
}

static void sleepers_run_tasks_again(void **state)
{
    (void)state;
    struct ph__team *team = create(PH_TEAM_PTHREAD, 3);
    for (int i = 0; i < 20; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        check_counts(team, 50);
    }
    ph__team_destroy(team);
}

/* The width is told of a loss that there was not. */
static void a_team_that_gives_way_runs_each_task_once(void **state)
{
    (void)state;
    struct ph__team *team = create(PH_TEAM_PTHREAD, 4);
    struct ph__team_width *width = ph__team_pthread_width(team);
    for (size_t num_active = 3; num_active > 0; num_active--) {
        assert_int_equal(width->num_active, num_active);
        check_counts(team, 100);
        ph__team_width_after(width, 0, 0, PH_WIDTH_MOST_PAUSE_NS);
        width->pause_ns = UINT64_MAX;
    }
    struct counted *counted = calloc(1, sizeof *counted);
    assert_non_null(counted);
    ph__parallel_for(team, MAX_TASKS, count_task, counted);
    assert_int_equal(atomic_load(&counted->largest_worker), 0);
    free(counted);
    check_counts(team, MAX_TASKS);
    for (size_t num_active = 1; num_active <= 3; num_active++) {
        width->pause_ns = 0;
        check_counts(team, 100);
        assert_int_equal(width->num_active, num_active);
        width->pause_ns = UINT64_MAX;
    }
    ph__team_width_after(
        width, 0, 0, PH_WIDTH_MOST_PAUSE_NS); /* one that waits at the gate is destroyed, too */
    check_counts(team, 100);
    ph__team_destroy(team);
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
    for (size_t t = 0; t < num_kinds() * NUM_TEAM_SIZES; t++) {
        const size_t team_size = team_sizes[t % NUM_TEAM_SIZES];
        struct ph__team *team = create(t / NUM_TEAM_SIZES, team_size);
        struct polled polled = {.caller = pthread_self()};
        atomic_size_t sum = 0;
        ph__team_set_poll(team, count_poll, &polled);
        ph__parallel_for(team, 1, add_task, &sum);
        assert_int_equal(polled.num_polls, 1);
        ph__parallel_for(team, 100, add_task, &sum);
        assert_true(polled.num_polls <= 101 && polled.num_strangers == 0);
        assert_true(team_size > 1 || polled.num_polls == 101);
        ph__team_set_poll(team, NULL, NULL);
        const size_t num_polls = polled.num_polls;
        ph__parallel_for(team, 100, add_task, &sum);
        assert_int_equal(polled.num_polls, num_polls);
        ph__team_destroy(team);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_task_runs_once),
        cmocka_unit_test(late_workers_claim_no_task_of_a_region_that_has_ended),
        cmocka_unit_test(two_teams_live_side_by_side),
        cmocka_unit_test(a_task_may_use_a_team_of_one_thread),
        cmocka_unit_test(tasks_run_with_the_callers_float_control),
        cmocka_unit_test(a_library_sees_one_thread_in_a_task),
        cmocka_unit_test(a_team_without_a_size_has_at_least_one_thread),
        cmocka_unit_test(sleepers_run_tasks_again),
        cmocka_unit_test(a_team_that_gives_way_runs_each_task_once),
        cmocka_unit_test(the_caller_polls_behind_its_own_tasks),
        cmocka_unit_test(too_many_threads_are_refused),
        cmocka_unit_test(a_build_without_openmp_says_so),
        cmocka_unit_test(destroying_a_team_ends_its_threads),
        cmocka_unit_test(destroying_no_team_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
