/* Queues and their workers against a session: the same bits in any batch, and which requests share one. */
#include "unit/serve/queue/queue_bench.h"

/* ---- bits ---- */

enum { IN_FLIGHT = 40 };

static struct job *draw_job(uint64_t *random)
{
    const size_t first = draw(random, NUM_ROWS), left = NUM_ROWS - first;
    const size_t most = draw(random, 20) == 0 ? left : left < 8 ? left : 8, count = draw(random, most + 1);
    const unsigned set = draw(random, 3) == 0 ? (unsigned)draw(random, NUM_SETS) : 0;
    struct job *job = draw(random, 2) == 0 ? make_lines(first, count, set) : make_texts(first, count, set);
    job->work.priority = (uint32_t)draw(random, 3);
    job->work.bytes = draw(random, 1000);
    return job;
}

static void put_random_requests(size_t num_workers, size_t max_batch, size_t count)
{
    const struct ph__queue_options options = queue_options(max_batch);
    struct bench bench = open_bench(num_workers, &options);
    uint64_t random = test_seed() + num_workers * 1000 + max_batch;
    struct job *jobs[IN_FLIGHT] = {NULL};
    for (size_t i = 0; i < count; i++) {
        struct job **place = &jobs[draw(&random, IN_FLIGHT)];
        if (*place != NULL) {
            ph__scheduler_kick(bench.scheduler);
            if ((*place)->count > 0)
                assert_scored(*place);
            else
                free_job(*place);
        }
        *place = draw_job(&random);
        put(&bench, *place);
        if (draw(&random, 4) == 0)
            ph__scheduler_kick(bench.scheduler);
    }
    ph__scheduler_kick(bench.scheduler);
    for (size_t i = 0; i < IN_FLIGHT; i++)
        if (jobs[i] != NULL && jobs[i]->count > 0)
            assert_scored(jobs[i]);
        else if (jobs[i] != NULL)
            free_job(jobs[i]);
    close_bench(&bench);
}

static void random_requests_give_the_bits_of_a_session(void **state)
{
    (void)state;
    const size_t count = test_is_brief() ? 300 : 1700;
    for (size_t workers = 1; workers <= NUM_WORKERS; workers += 2) {
        put_random_requests(workers, 1, count);
        put_random_requests(workers, 3, count);
        put_random_requests(workers, MAX_BATCH, count);
    }
}

static void a_request_larger_than_a_batch_is_scored_in_pieces(void **state)
{
    (void)state;
    for (size_t workers = 1; workers <= NUM_WORKERS; workers += 2) {
        const struct ph__queue_options options = queue_options(7);
        struct bench bench = open_bench(workers, &options);
        struct job *job = make_lines(0, NUM_ROWS, 3);
        put(&bench, job);
        ph__scheduler_kick(bench.scheduler);
        assert_scored(job);
        assert_int_equal(figures_of(&bench).batches.count, (NUM_ROWS + 6) / 7);
        assert_int_equal(figures_of(&bench).num_rows, NUM_ROWS);
        close_bench(&bench);
    }
}

static void pieces_of_a_request_are_scored_by_several_workers(void **state)
{
    (void)state;
    const struct ph__queue_options options = queue_options(1);
    struct bench bench = open_bench(NUM_WORKERS, &options);
    size_t num_used = 0;
    for (unsigned i = 0; i < 100 && num_used < 2; i++) {
        struct job *job = make_long(2000);
        await_idle(&bench, NUM_WORKERS);
        for (size_t w = 0; w < NUM_WORKERS; w++)
            fixture.session->contexts[w].current = NULL;
        put(&bench, job);
        ph__scheduler_kick(bench.scheduler);
        await(job);
        await_idle(&bench, NUM_WORKERS);
        num_used = 0;
        for (size_t w = 0; w < NUM_WORKERS; w++)
            num_used += fixture.session->contexts[w].current != NULL;
        free_texts(job);
        free_job(job);
    }
    assert_true(num_used >= 2);
    close_bench(&bench);
}

static void a_request_without_rows_is_done_at_once(void **state)
{
    (void)state;
    const struct ph__queue_options options = queue_options(4);
    struct bench bench = open_held(&options);
    struct job *job = make_lines(0, 0, 1);
    put(&bench, job);
    assert_true(is_done(job) && job->work.code == PH_OIP_OK);
    free_job(job);
    release(&bench);
    close_bench(&bench);
}

/* ---- batches ---- */

static void requests_that_wait_are_one_batch(void **state)
{
    (void)state;
    const struct ph__queue_options options = queue_options(8);
    struct bench bench = open_held(&options);
    struct job *jobs[4];
    for (size_t i = 0; i < 4; i++)
        put(&bench,
            jobs[i] = make_lines(i * 10, 2, (unsigned)i % 2)); /* logits and probabilities are one set */
    release(&bench);
    for (size_t i = 0; i < 4; i++)
        assert_scored(jobs[i]);
    struct ph__batch_figures batches[9];
    ph__queue_batch_figures(bench.queue, batches);
    assert_int_equal(figures_of(&bench).batches.count, 2);
    assert_int_equal(figures_of(&bench).num_rows, 16);
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(batches[i].count, i == 8 ? 2 : 0);
    assert_true(figures_of(&bench).row_ns > 0);
    close_bench(&bench);
}

/* As a session of graphs has it: the format alone says that rows belong together. */
static void a_graph_is_scored_alone_and_whole(void **state)
{
    (void)state;
    struct ph_encoder *encoder = fixture.session->model.encoder;
    const enum ph__data_format format = encoder->format;
    encoder->format = PH_DATA_GRAPH;
    const struct ph__queue_options options = queue_options(8);
    struct bench bench = open_held(&options);
    struct job *jobs[4], *large = make_lines(0, 9, 0);
    for (size_t i = 0; i < 4; i++)
        put(&bench, jobs[i] = make_lines(i * 10, 2, 0));
    assert_int_equal(ph__queue_put(bench.queue, &large->work), PH_OIP_INVALID);
    release(&bench);
    for (size_t i = 0; i < 4; i++)
        assert_scored(jobs[i]);
    assert_int_equal(figures_of(&bench).batches.count, 1 + 4); /* the first one held them up */
    free_job(large);
    close_bench(&bench);
    encoder->format = format;
}

static void requests_for_other_outputs_are_other_batches(void **state)
{
    (void)state;
    const struct ph__queue_options options = queue_options(8);
    struct bench bench = open_held(&options);
    struct job *jobs[4];
    for (unsigned i = 0; i < 4; i++)
        put(&bench, jobs[i] = make_texts(i, 2, i)); /* sets 0 and 1 are one */
    release(&bench);
    for (size_t i = 0; i < 4; i++)
        assert_scored(jobs[i]);
    assert_int_equal(figures_of(&bench).batches.count, 1 + 3);
    close_bench(&bench);
}

static void lower_priorities_go_first_then_in_order(void **state)
{
    (void)state;
    static const uint32_t priorities[] = {3, 1, 2, 1, 3, 0, 2, 1};
    static const size_t places[] = {6, 1, 4, 2, 7, 0, 5, 3};
    const struct ph__queue_options options = queue_options(1);
    struct bench bench = open_held(&options);
    struct job *jobs[COUNT(priorities)];
    for (size_t i = 0; i < COUNT(priorities); i++) {
        jobs[i] = make_lines(i, 1, 0);
        jobs[i]->work.priority = priorities[i];
        put(&bench, jobs[i]);
    }
    const size_t base = bench.plug->order + 1;
    release(&bench);
    for (size_t i = 0; i < COUNT(priorities); i++) {
        await(jobs[i]);
        assert_int_equal(jobs[i]->order - base, places[i]);
        assert_scored(jobs[i]);
    }
    close_bench(&bench);
}

static void a_batch_waits_for_more_rows(void **state)
{
    (void)state;
    struct ph__queue_options options = queue_options(4);
    options.max_delay_us = HOUR_NS / 1000;
    struct bench bench = open_bench(1, &options);
    struct job *jobs[4];
    for (size_t i = 0; i < 4; i++) {
        put(&bench, jobs[i] = make_lines(i, 1, 0));
        ph__scheduler_kick(bench.scheduler);
    }
    for (size_t i = 0; i < 4; i++)
        assert_scored(jobs[i]);
    assert_int_equal(figures_of(&bench).batches.count, 1);
    close_bench(&bench);
}

static void a_batch_that_stays_small_is_scored_after_the_delay(void **state)
{
    (void)state;
    struct ph__queue_options options = queue_options(4);
    options.max_delay_us = 500;
    struct bench bench = open_bench(NUM_WORKERS, &options);
    for (size_t i = 0; i < 20; i++) {
        struct job *job = make_lines(i, 1, 0);
        put(&bench, job);
        ph__scheduler_kick(bench.scheduler);
        assert_scored(job);
    }
    close_bench(&bench);
}

static void queues_of_one_scheduler_are_all_served(void **state)
{
    (void)state;
    const struct ph__queue_options options = queue_options(3);
    struct bench bench = open_bench(NUM_WORKERS, &options), other = bench;
    struct job *jobs[60];
    assert_ok(ph__queue_create(bench.scheduler, &options, &other.queue));
    for (size_t i = 0; i < COUNT(jobs); i++)
        put(i % 2 == 0 ? &bench : &other, jobs[i] = make_lines(i, i % 5 + 1, 0));
    ph__scheduler_kick(bench.scheduler);
    for (size_t i = 0; i < COUNT(jobs); i++)
        assert_scored(jobs[i]);
    assert_int_equal(figures_of(&bench).num_rows + figures_of(&other).num_rows, 12 * 15);
    ph__queue_destroy(other.queue);
    struct job *last = make_lines(0, 1, 0);
    put(&bench, last);
    ph__scheduler_kick(bench.scheduler);
    assert_scored(last);
    close_bench(&bench);
}

/* ---- bad rows ---- */

static void a_bad_row_fails_its_own_request_alone(void **state)
{
    (void)state;
    static const struct ph__bytes texts[] = {{"1", 1}, {"x", 1}};
    const struct ph__tensor price = run_tensor("price", PH_TENSOR_BYTES, texts, 2);
    const struct ph__queue_options options = queue_options(8);
    struct bench bench = open_held(&options);
    struct job *before = make_lines(5, 2, 0), *bad = make_job(&price, 1, 0, 0), *after = make_texts(9, 3, 0);
    put(&bench, before);
    put(&bench, bad);
    put(&bench, after);
    release(&bench);
    assert_scored(before);
    assert_scored(after);
    await(bad);
    assert_ended(bad, PH_OIP_INVALID, "row 1: field 'price'");
    assert_int_equal(figures_of(&bench).batches.count, 2); /* the plug's, and one */
    assert_int_equal(figures_of(&bench).num_rows, 8 + 5);
    close_bench(&bench);
}

static void a_bad_row_of_a_long_request_drops_the_rows_behind_it(void **state)
{
    (void)state;
    for (size_t workers = 1; workers <= NUM_WORKERS; workers += 2)
        for (size_t bad_row = 0; bad_row < 40; bad_row += 13) {
            struct ph__bytes texts[40];
            const struct ph__queue_options options = queue_options(3);
            struct bench bench = open_bench(workers, &options);
            char part[20];
            memcpy(texts, fixture.run.line_texts, sizeof texts);
            texts[bad_row] = ph__bytes_of("x");
            const struct ph__tensor lines = run_tensor("lines", PH_TENSOR_BYTES, texts, 40);
            struct job *bad = make_job(&lines, 1, 0, 0), *good = make_lines(3, 20, 0);
            snprintf(part, sizeof part, "row %zu: ", bad_row);
            put(&bench, bad);
            put(&bench, good);
            ph__scheduler_kick(bench.scheduler);
            assert_scored(good);
            assert_ended(bad, PH_OIP_INVALID, part);
            close_bench(&bench);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_requests_give_the_bits_of_a_session),
        cmocka_unit_test(a_request_larger_than_a_batch_is_scored_in_pieces),
        cmocka_unit_test(pieces_of_a_request_are_scored_by_several_workers),
        cmocka_unit_test(a_request_without_rows_is_done_at_once),
        cmocka_unit_test(requests_that_wait_are_one_batch),
        cmocka_unit_test(a_graph_is_scored_alone_and_whole),
        cmocka_unit_test(requests_for_other_outputs_are_other_batches),
        cmocka_unit_test(lower_priorities_go_first_then_in_order),
        cmocka_unit_test(a_batch_waits_for_more_rows),
        cmocka_unit_test(a_batch_that_stays_small_is_scored_after_the_delay),
        cmocka_unit_test(queues_of_one_scheduler_are_all_served),
        cmocka_unit_test(a_bad_row_fails_its_own_request_alone),
        cmocka_unit_test(a_bad_row_of_a_long_request_drops_the_rows_behind_it),
    };
    return cmocka_run_group_tests(tests, make_fixture, close_fixture);
}
