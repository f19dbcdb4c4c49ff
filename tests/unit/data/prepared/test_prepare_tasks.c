#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "data/prepared/prepare_tasks.h"
#include "support/test_support.h"

#define NUM_TASKS 200

struct trial {
    struct ph__tasks tasks;
    atomic_int num_runs[NUM_TASKS];
    size_t fails_from; /* tasks from here on fail */
    volatile int stop_signal;
    size_t signalled_by; /* the task that sets the signal */
};

static ph_status run(void *argument, size_t task, size_t worker)
{
    struct trial *trial = argument;
    assert_true(worker < 4);
    trial->num_runs[task]++;
    if (task == trial->signalled_by)
        trial->stop_signal = SIGTERM;
    if (task == trial->fails_from)
        usleep(2000); /* tasks behind it fail before it does */
    if (task >= trial->fails_from)
        return ph_fail(PH_ERROR_DATA, "task %zu failed", task);
    return ph__tasks_advance(&trial->tasks, task, 0, 0) ? PH_OK : ph_fail(PH_ERROR_INTERRUPTED, "stopped");
}

static struct trial trial_of(size_t fails_from, size_t signalled_by)
{
    return (struct trial){.fails_from = fails_from, .signalled_by = signalled_by};
}

static ph_status run_trial(struct trial *trial, size_t num_threads)
{
    trial->tasks = (struct ph__tasks){
        .run = run, .argument = trial, .num_tasks = NUM_TASKS, .stop_signal = &trial->stop_signal};
    return ph__tasks_run(&trial->tasks, num_threads);
}

static void every_task_runs_once(void **state)
{
    (void)state;
    for (size_t num_threads = 1; num_threads <= 4; num_threads++) {
        struct trial trial = trial_of(SIZE_MAX, SIZE_MAX);
        assert_ok(run_trial(&trial, num_threads));
        for (size_t i = 0; i < NUM_TASKS; i++)
            assert_int_equal(trial.num_runs[i], 1);
    }
}

static void the_first_failing_task_gives_the_error(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        struct trial trial = trial_of(57, SIZE_MAX);
        assert_fails(run_trial(&trial, 1 + (size_t)round % 4), PH_ERROR_DATA, "task 57 failed");
        for (size_t i = 0; i <= 57; i++)
            assert_int_equal(trial.num_runs[i], 1);
        assert_int_equal(trial.num_runs[NUM_TASKS - 1], 0);
    }
}

static void a_signal_ends_the_taking(void **state)
{
    (void)state;
    struct trial trial = trial_of(SIZE_MAX, 20);
    assert_fails(run_trial(&trial, 2), PH_ERROR_TERMINATED, "stopped by a signal");
    assert_int_equal(trial.num_runs[20], 1);
    assert_int_equal(trial.num_runs[NUM_TASKS - 1], 0);
}

static ph_status advance_twice(void *argument, size_t task, size_t worker)
{
    struct trial *trial = argument;
    (void)worker;
    if (task < 5) { /* done before */
        ph__tasks_skip(&trial->tasks, 100);
        return PH_OK;
    }
    assert_true(ph__tasks_advance(&trial->tasks, task, 1, 60));
    assert_true(ph__tasks_advance(&trial->tasks, task, 2, 40));
    return PH_OK;
}

/* The last report, and that none goes back. */
static void take_report(void *context, const struct ph__tasks_progress *progress)
{
    struct ph__tasks_progress *last = context;
    assert_true(progress->num_bytes >= last->num_bytes && progress->num_rows >= last->num_rows);
    *last = *progress;
}

static void progress_adds_up(void **state)
{
    (void)state;
    struct ph__tasks_progress last = {0};
    struct trial trial = trial_of(SIZE_MAX, SIZE_MAX);
    trial.tasks = (struct ph__tasks){.run = advance_twice,
        .argument = &trial,
        .num_tasks = NUM_TASKS,
        .on_progress = take_report,
        .progress_context = &last,
        .progress.total_bytes = (uint64_t)NUM_TASKS * 100};
    assert_ok(ph__tasks_run(&trial.tasks, 4));
    assert_int_equal(last.num_bytes, (NUM_TASKS - 5) * 100);
    assert_int_equal(last.num_rows, (NUM_TASKS - 5) * 3);
    assert_int_equal(trial.tasks.progress.total_bytes, last.num_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once),
        cmocka_unit_test(the_first_failing_task_gives_the_error),
        cmocka_unit_test(a_signal_ends_the_taking),
        cmocka_unit_test(progress_adds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
