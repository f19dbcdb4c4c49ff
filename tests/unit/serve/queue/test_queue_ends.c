/* Every way for a request of a queue to end unscored: cancelled, late, or refused at the door. */
#include "unit/serve/queue/queue_bench.h"

/* ---- cancelling ---- */

static void a_request_that_waits_is_cancelled_at_once(void **state)
{
    (void)state;
    const struct ph__queue_options options = queue_options(2);
    struct bench bench = open_held(&options);
    struct job *jobs[5];
    for (size_t i = 0; i < 4; i++) {
        jobs[i] = make_lines(i, 3, 0);
        jobs[i]->work.bytes = 10;
        put(&bench, jobs[i]);
    }
    for (size_t i = 1; i < 4; i += 2) { /* in the middle, and at the end */
        ph__work_cancel(&jobs[i]->work);
        assert_true(is_done(jobs[i]));
        ph__work_cancel(&jobs[i]->work);
        assert_ended(jobs[i], PH_OIP_CANCELLED, "the client has cancelled the request");
    }
    put(&bench, jobs[4] = make_lines(4, 3, 0));
    assert_int_equal(figures_of(&bench).num_waiting, 3);
    assert_int_equal(figures_of(&bench).waiting_rows, 9);
    assert_int_equal(figures_of(&bench).waiting_bytes, 20);
    release(&bench);
    assert_scored(jobs[0]);
    assert_scored(jobs[2]);
    assert_scored(jobs[4]);
    close_bench(&bench);
}

static void a_request_that_runs_is_cancelled_between_batches(void **state)
{
    (void)state;
    enum { LONG_ROWS = 200000 };
    for (size_t workers = 1; workers <= NUM_WORKERS; workers += 2) {
        const struct ph__queue_options options = queue_options(2);
        struct bench bench = open_bench(workers, &options);
        struct job *job = make_long(LONG_ROWS), *after = make_lines(0, 5, 0);
        put(&bench, job);
        put(&bench, after);
        ph__scheduler_kick(bench.scheduler);
        while (figures_of(&bench).num_rows == 0)
            ;
        ph__work_cancel(&job->work);
        assert_scored(after);
        await(job);
        assert_true(figures_of(&bench).num_rows < LONG_ROWS);
        free_texts(job);
        assert_ended(job, PH_OIP_CANCELLED, "cancelled");
        close_bench(&bench);
    }
}

static void cancelling_what_is_done_changes_nothing(void **state)
{
    (void)state;
    const struct ph__queue_options options = queue_options(2);
    struct bench bench = open_held(&options);
    ph__work_cancel(&bench.plug->work); /* done, while its callback runs */
    struct job *job = make_lines(0, 5, 0);
    put(&bench, job);
    release(&bench);
    await(job);
    ph__work_cancel(&job->work);
    assert_scored(job);
    close_bench(&bench);
}

static void cancelling_at_any_moment_ends_every_request_once(void **state)
{
    (void)state;
    const struct ph__queue_options options = queue_options(3);
    struct bench bench = open_bench(NUM_WORKERS, &options);
    uint64_t random = test_seed();
    const size_t num_rounds = test_is_brief() ? 100 : 1000;
    for (size_t round = 0; round < num_rounds; round++) {
        struct job *jobs[6];
        for (size_t i = 0; i < COUNT(jobs); i++)
            put(&bench, jobs[i] = make_lines(draw(&random, 200), 1 + draw(&random, 9), 0));
        ph__scheduler_kick(bench.scheduler);
        for (size_t i = draw(&random, 200); i > 0; i--)
            (void)figures_of(&bench);
        for (size_t i = 0; i < COUNT(jobs); i += 2)
            ph__work_cancel(&jobs[i]->work);
        for (size_t i = 0; i < COUNT(jobs); i++) {
            await(jobs[i]);
            if (i % 2 == 0 && jobs[i]->work.code != PH_OIP_OK)
                assert_ended(jobs[i], PH_OIP_CANCELLED, "cancelled");
            else
                assert_scored(jobs[i]);
        }
    }
    close_bench(&bench);
}

/* ---- deadlines ---- */

static void a_deadline_may_pass_in_the_queue(void **state)
{
    (void)state;
    const struct ph__queue_options options = queue_options(4);
    struct bench bench = open_held(&options);
    struct job *late = make_lines(0, 3, 0), *after = make_lines(3, 2, 0);
    uint64_t wait_ns = 1000000;
    do {
        wait_ns *= 2; /* until the door finds that it can be met */
        late->work.deadline_ns = ph__clock_ns() + wait_ns;
    } while (ph__queue_put(bench.queue, &late->work) != PH_OIP_OK);
    put(&bench, after);
    while (ph__clock_ns() <= late->work.deadline_ns)
        ;
    assert_false(is_done(late));
    release(&bench);
    assert_scored(after);
    assert_ended(late, PH_OIP_DEADLINE, "the deadline cannot be met: the request waited too long");
    assert_int_equal(figures_of(&bench).num_rows, 4 + 2);
    close_bench(&bench);
}

static void a_deadline_that_is_far_is_met(void **state)
{
    (void)state;
    const struct ph__queue_options options = queue_options(4);
    struct bench bench = open_bench(1, &options);
    for (size_t i = 0; i < 10; i++) {
        struct job *job = make_lines(i, 9, 0);
        job->work.deadline_ns = ph__clock_ns() + HOUR_NS;
        put(&bench, job);
        ph__scheduler_kick(bench.scheduler);
        assert_scored(job);
    }
    close_bench(&bench);
}

static void a_deadline_that_cannot_be_met_is_refused_at_the_door(void **state)
{
    (void)state;
    const struct ph__queue_options options = queue_options(4);
    struct bench bench = open_held(&options);
    struct job *job = make_lines(0, 3, 0), *large = make_lines(0, 1, 0), *other = make_lines(5, 1, 0);
    job->work.deadline_ns = 1;
    assert_int_equal(ph__queue_put(bench.queue, &job->work), PH_OIP_DEADLINE);
    assert_non_null(strstr(ph_error_text(), "the deadline cannot be met"));
    put(&bench, other);
    large->work.rows.num_rows = (size_t)((double)(2 * HOUR_NS) / figures_of(&bench).row_ns);
    large->work.deadline_ns = ph__clock_ns() + HOUR_NS; /* its own rows take longer */
    assert_int_equal(ph__queue_put(bench.queue, &large->work), PH_OIP_DEADLINE);
    large->work.deadline_ns = UINT64_MAX;
    put(&bench, large);
    job->work.deadline_ns = ph__clock_ns() + HOUR_NS; /* what waits takes longer */
    assert_int_equal(ph__queue_put(bench.queue, &job->work), PH_OIP_DEADLINE);
    assert_int_equal(ph__queue_admit(bench.queue, 0, job->work.deadline_ns), PH_OIP_DEADLINE);
    assert_int_equal(ph__queue_admit(bench.queue, 0, UINT64_MAX), PH_OIP_OK);
    assert_false(is_done(job));
    ph__work_cancel(&large->work);
    assert_ended(large, PH_OIP_CANCELLED, "");
    put(&bench, job);
    release(&bench);
    assert_scored(other);
    assert_scored(job);
    close_bench(&bench);
}

static void a_wrong_estimate_is_mended(void **state)
{
    (void)state;
    const struct ph__queue_options options = queue_options(4);
    struct bench bench = open_bench(1, &options);
    bench.queue->figures.row_ns = 2 * (double)HOUR_NS;
    for (size_t i = 0; i < 2; i++) { /* nothing else waits or runs */
        struct job *job = make_lines(i, 3, 0);
        job->work.deadline_ns = ph__clock_ns() + HOUR_NS;
        put(&bench, job);
        ph__scheduler_kick(bench.scheduler);
        assert_scored(job);
        await_idle(&bench, 1);
    }
    assert_true(figures_of(&bench).row_ns < 2 * (double)HOUR_NS);
    assert_int_equal(figures_of(&bench).running_rows, 0);
    close_bench(&bench);
}

/* ---- full queues ---- */

static void assert_full(const struct bench *bench, struct job *job)
{
    assert_int_equal(ph__queue_put(bench->queue, &job->work), PH_OIP_UNAVAILABLE);
    assert_non_null(strstr(ph_error_text(), "the queue is full"));
    assert_false(is_done(job));
}

static void a_queue_is_full_by_its_rows(void **state)
{
    (void)state;
    struct ph__queue_options options = queue_options(4);
    options.max_rows = 10;
    struct bench bench = open_held(&options);
    struct job *large = make_lines(0, 100, 0), *first = make_lines(0, 5, 0), *second = make_lines(5, 5, 0),
               *third = make_lines(10, 1, 0);
    put(&bench, large); /* alone it may */
    assert_full(&bench, third);
    assert_int_equal(ph__queue_admit(bench.queue, 0, UINT64_MAX), PH_OIP_UNAVAILABLE);
    ph__work_cancel(&large->work);
    assert_ended(large, PH_OIP_CANCELLED, "");
    put(&bench, first);
    assert_full(&bench, large = make_lines(0, 6, 0));
    assert_int_equal(ph__queue_admit(bench.queue, 0, UINT64_MAX), PH_OIP_OK);
    put(&bench, second);
    assert_full(&bench, third);
    ph__work_cancel(&first->work);
    assert_ended(first, PH_OIP_CANCELLED, "");
    put(&bench, third);
    release(&bench);
    assert_scored(second);
    assert_scored(third);
    free_job(large);
    close_bench(&bench);
}

static void a_queue_is_full_by_its_bytes(void **state)
{
    (void)state;
    struct ph__queue_options options = queue_options(4);
    options.max_bytes = 1000;
    struct bench bench = open_held(&options);
    struct job *first = make_lines(0, 9, 0), *second = make_lines(5, 5, 0), *third = make_lines(10, 1, 0);
    first->work.bytes = 5000;
    assert_int_equal(ph__queue_admit(bench.queue, 5000, UINT64_MAX), PH_OIP_OK); /* alone it may */
    put(&bench, first);
    second->work.bytes = 1;
    assert_full(&bench, second);
    ph__work_cancel(&first->work);
    await(first);
    first->is_done = false;
    first->work.bytes = 600;
    put(&bench, first);
    second->work.bytes = 401;
    assert_full(&bench, second);
    assert_int_equal(ph__queue_admit(bench.queue, 401, UINT64_MAX), PH_OIP_UNAVAILABLE);
    assert_int_equal(ph__queue_admit(bench.queue, 400, UINT64_MAX), PH_OIP_OK);
    second->work.bytes = 400;
    put(&bench, second);
    third->work.bytes = 1;
    assert_full(&bench, third);
    release(&bench);
    assert_scored(first);
    assert_scored(second);
    free_job(third);
    close_bench(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_that_waits_is_cancelled_at_once),
        cmocka_unit_test(a_request_that_runs_is_cancelled_between_batches),
        cmocka_unit_test(cancelling_what_is_done_changes_nothing),
        cmocka_unit_test(cancelling_at_any_moment_ends_every_request_once),
        cmocka_unit_test(a_deadline_may_pass_in_the_queue),
        cmocka_unit_test(a_deadline_that_is_far_is_met),
        cmocka_unit_test(a_deadline_that_cannot_be_met_is_refused_at_the_door),
        cmocka_unit_test(a_wrong_estimate_is_mended),
        cmocka_unit_test(a_queue_is_full_by_its_rows),
        cmocka_unit_test(a_queue_is_full_by_its_bytes),
    };
    return cmocka_run_group_tests(tests, make_fixture, close_fixture);
}
