/* Queues and their workers against a session: the same bits in any batch, and every way for a request to
 * end. Tests that need requests to wait hold the worker in the callback of a first request. */
#include "unit/serve/run_tensors.h"

#include <pthread.h>

#include "base/rng.h"
#include "base/thread/clock.h"
#include "serve/queue/queue_state.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define HOUR_NS ((uint64_t)3600 * 1000000000)

enum { MAX_BATCH = 64, NUM_WORKERS = 3, MAX_OUTPUTS = 8, NUM_SETS = 4 };

static struct {
    struct ph_session *session;
    struct run_tensors run;
    size_t num_outputs;
    float *wanted[MAX_OUTPUTS]; /* (NUM_ROWS, width) of each output */
} fixture;

static int make_fixture(void **state)
{
    (void)state;
    const struct ph_session_options options = {
        .size = sizeof options, .max_batch = MAX_BATCH, .num_threads = NUM_WORKERS};
    size_t outputs[MAX_OUTPUTS];
    run_tensors_fill(&fixture.run);
    assert_ok(ph_session_open(make_run_folder("dnn"), &options, &fixture.session));
    fixture.num_outputs = ph_session_num_outputs(fixture.session);
    assert_true(fixture.num_outputs >= 4 && fixture.num_outputs <= MAX_OUTPUTS);
    for (size_t i = 0; i < fixture.num_outputs; i++) {
        outputs[i] = i;
        fixture.wanted[i] = calloc(NUM_ROWS * ph_session_output_width(fixture.session, i), sizeof(float));
        assert_non_null(fixture.wanted[i]);
    }
    assert_ok(ph_session_score_outputs(
        fixture.session, NUM_ROWS, fixture.run.cells, fixture.num_outputs, outputs, fixture.wanted));
    return 0;
}

static int close_fixture(void **state)
{
    (void)state;
    for (size_t i = 0; i < fixture.num_outputs; i++)
        free(fixture.wanted[i]);
    ph_session_close(fixture.session);
    return 0;
}

/* ---- requests ---- */

struct job {
    struct ph__work work; /* first: the callback knows the job by it */
    struct ph__tensor tensors[RUN_NUM_COLUMNS];
    struct ph__arena arena;
    size_t first, count, outputs[MAX_OUTPUTS], order;
    float *values[MAX_OUTPUTS];
    bool is_plug, is_done; /* with the lock of the events */
};

static struct {
    pthread_mutex_t lock; /* guards all below, and what jobs say of being done */
    pthread_cond_t has_changed;
    size_t num_done;
    bool is_held, is_open; /* a worker is held by a plug; it may go on */
} events = {.lock = PTHREAD_MUTEX_INITIALIZER, .has_changed = PTHREAD_COND_INITIALIZER};

static void on_done(void *context, struct ph__work *work)
{
    struct job *job = (struct job *)work;
    (void)context;
    pthread_mutex_lock(&events.lock);
    assert_false(job->is_done);
    job->is_done = true;
    job->order = events.num_done++;
    events.is_held = job->is_plug;
    pthread_cond_broadcast(&events.has_changed);
    while (job->is_plug && !events.is_open)
        pthread_cond_wait(&events.has_changed, &events.lock);
    pthread_mutex_unlock(&events.lock);
}

static void on_batch_done(void *context)
{
    (void)context;
}

static bool is_done(const struct job *job)
{
    pthread_mutex_lock(&events.lock);
    const bool done = job->is_done;
    pthread_mutex_unlock(&events.lock);
    return done;
}

static void await(const struct job *job)
{
    pthread_mutex_lock(&events.lock);
    while (!job->is_done)
        pthread_cond_wait(&events.has_changed, &events.lock);
    pthread_mutex_unlock(&events.lock);
}

/* Sets the outputs that a job wants: a set of each kind. */
static void want(struct job *job, unsigned set)
{
    static const size_t sets[NUM_SETS][MAX_OUTPUTS] = {{0}, {1, 0}, {2}, {3, 0, 2}}, counts[] = {1, 2, 1, 3};
    memcpy(job->outputs, sets[set], sizeof sets[set]);
    for (size_t i = 0; i < counts[set]; i++) {
        const size_t width = ph_session_output_width(fixture.session, job->outputs[i]);
        job->values[i] = calloc(job->count * width + 1, sizeof(float));
        assert_non_null(job->values[i]);
    }
    job->work.wanted = (struct ph__wanted){counts[set], job->outputs, job->values};
}

static struct job *make_job(const struct ph__tensor *tensors, size_t num_tensors, size_t first, unsigned set)
{
    struct job *job = calloc(1, sizeof *job);
    assert_non_null(job);
    memcpy(job->tensors, tensors, num_tensors * sizeof *tensors);
    assert_ok(
        ph__tensor_rows_match(fixture.session, job->tensors, num_tensors, &job->arena, &job->work.rows));
    job->first = first;
    job->count = job->work.rows.num_rows;
    job->work.deadline_ns = UINT64_MAX;
    want(job, set);
    return job;
}

/* Makes a request for rows [first, first + count) of the run, as lines. */
static struct job *make_lines(size_t first, size_t count, unsigned set)
{
    const struct ph__tensor lines =
        run_tensor("lines", PH_TENSOR_BYTES, fixture.run.line_texts + first, count);
    return make_job(&lines, 1, first, set);
}

static struct job *make_texts(size_t first, size_t count, unsigned set)
{
    struct ph__tensor tensors[RUN_NUM_COLUMNS];
    run_text_tensors(&fixture.run, first, count, tensors);
    return make_job(tensors, RUN_NUM_COLUMNS, first, set);
}

static void free_job(struct job *job)
{
    for (size_t i = 0; i < job->work.wanted.num_outputs; i++)
        free(job->values[i]);
    ph__arena_fini(&job->arena);
    free(job);
}

/* Waits for a request, and asserts that its numbers are the session's, bit for bit. */
static void assert_scored(struct job *job)
{
    await(job);
    if (job->work.code != PH_OIP_OK)
        fail_msg("code %d: %s", (int)job->work.code, job->work.error);
    for (size_t i = 0; i < job->work.wanted.num_outputs; i++) {
        const size_t output = job->outputs[i], width = ph_session_output_width(fixture.session, output);
        assert_memory_equal(
            job->values[i], fixture.wanted[output] + job->first * width, job->count * width * sizeof(float));
    }
    const struct ph__work_times *times = &job->work.times;
    assert_true(times->queued > 0 && times->begun >= times->queued && times->encoded >= times->begun &&
                times->scored >= times->encoded && times->done >= times->scored);
    free_job(job);
}

static void assert_ended(struct job *job, enum ph__oip_code code, const char *part)
{
    await(job);
    assert_int_equal(job->work.code, code);
    if (strstr(job->work.error, part) == NULL)
        fail_msg("'%s' lacks '%s'", job->work.error, part);
    free_job(job);
}

/* ---- queues ---- */

struct bench {
    struct ph__scheduler *scheduler;
    struct ph__queue *queue;
    struct job *plug; /* holds the only worker; NULL: none */
};

static struct ph__queue_options queue_options(size_t max_batch)
{
    return (struct ph__queue_options){.session = fixture.session,
        .max_batch = max_batch,
        .max_rows = (size_t)1 << 40,
        .max_bytes = (uint64_t)1 << 40};
}

static struct bench open_bench(size_t num_workers, const struct ph__queue_options *options)
{
    struct bench bench = {NULL};
    const struct ph__scheduler_options scheduler = {num_workers, on_done, on_batch_done, NULL};
    assert_ok(ph__scheduler_create(&scheduler, &bench.scheduler));
    assert_ok(ph__queue_create(bench.scheduler, options, &bench.queue));
    return bench;
}

static void put(const struct bench *bench, struct job *job)
{
    if (ph__queue_put(bench->queue, &job->work) != PH_OIP_OK)
        fail_msg("%s", ph_error_text());
}

/* Opens a queue whose only worker is held: what is put waits. */
static struct bench open_held(const struct ph__queue_options *options)
{
    struct bench bench = open_bench(1, options);
    bench.plug = make_lines(0, options->max_batch, 0);
    bench.plug->is_plug = true;
    events.is_open = events.is_held = false;
    put(&bench, bench.plug);
    ph__scheduler_kick(bench.scheduler);
    pthread_mutex_lock(&events.lock);
    while (!events.is_held)
        pthread_cond_wait(&events.has_changed, &events.lock);
    pthread_mutex_unlock(&events.lock);
    return bench;
}

static void release(struct bench *bench)
{
    pthread_mutex_lock(&events.lock);
    events.is_open = true;
    pthread_cond_broadcast(&events.has_changed);
    pthread_mutex_unlock(&events.lock);
    ph__scheduler_kick(bench->scheduler);
}

static struct ph__queue_figures figures_of(const struct bench *bench)
{
    struct ph__queue_figures figures;
    ph__queue_figures(bench->queue, &figures);
    return figures;
}

static void close_bench(struct bench *bench)
{
    const struct ph__queue_figures figures = figures_of(bench);
    assert_true(figures.num_waiting == 0 && figures.waiting_rows == 0 && figures.waiting_bytes == 0);
    ph__queue_destroy(bench->queue);
    ph__scheduler_destroy(bench->scheduler);
    if (bench->plug != NULL)
        assert_scored(bench->plug);
}

/* ---- bits ---- */

enum { IN_FLIGHT = 40 };

static size_t draw(uint64_t *number, size_t below)
{
    *number = ph__hash_bytes(number, sizeof *number);
    return (size_t)(*number >> 11) % below;
}

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

/* Makes a request of many rows, which are all row 0. */
static struct job *make_long(size_t count)
{
    struct ph__bytes *texts = calloc(count, sizeof *texts);
    assert_non_null(texts);
    for (size_t i = 0; i < count; i++)
        texts[i] = fixture.run.line_texts[0];
    const struct ph__tensor lines = run_tensor("lines", PH_TENSOR_BYTES, texts, count);
    return make_job(&lines, 1, 0, 0);
}

static void free_texts(const struct job *job)
{
    free((void *)(uintptr_t)job->tensors[0].values);
}

static void await_idle(const struct bench *bench, size_t num_workers)
{
    size_t num_idle;
    do {
        pthread_mutex_lock(&bench->scheduler->lock);
        num_idle = bench->scheduler->num_idle;
        pthread_mutex_unlock(&bench->scheduler->lock);
    } while (num_idle < num_workers);
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
    assert_non_null(strstr(bad->work.error, "price"));
    assert_ended(bad, PH_OIP_INVALID, "row 1: ");
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
    assert_ended(late, PH_OIP_DEADLINE, "the deadline passed while the request waited");
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
    struct job *job = make_lines(0, 3, 0), *large = make_lines(0, 1, 0);
    job->work.deadline_ns = 1;
    assert_int_equal(ph__queue_put(bench.queue, &job->work), PH_OIP_DEADLINE);
    assert_non_null(strstr(ph_error_text(), "the deadline cannot be met"));
    large->work.rows.num_rows = (size_t)((double)(2 * HOUR_NS) / figures_of(&bench).row_ns);
    large->work.deadline_ns = ph__clock_ns() + HOUR_NS; /* its own rows take longer */
    assert_int_equal(ph__queue_put(bench.queue, &large->work), PH_OIP_DEADLINE);
    large->work.deadline_ns = UINT64_MAX;
    put(&bench, large);
    job->work.deadline_ns = ph__clock_ns() + HOUR_NS; /* what waits takes longer */
    assert_int_equal(ph__queue_put(bench.queue, &job->work), PH_OIP_DEADLINE);
    assert_false(is_done(job));
    ph__work_cancel(&large->work);
    assert_ended(large, PH_OIP_CANCELLED, "");
    put(&bench, job);
    release(&bench);
    assert_scored(job);
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
    assert_int_equal(ph__queue_admit(bench.queue, 0), PH_OIP_UNAVAILABLE);
    ph__work_cancel(&large->work);
    assert_ended(large, PH_OIP_CANCELLED, "");
    put(&bench, first);
    assert_full(&bench, large = make_lines(0, 6, 0));
    assert_int_equal(ph__queue_admit(bench.queue, 0), PH_OIP_OK);
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
    assert_int_equal(ph__queue_admit(bench.queue, 5000), PH_OIP_OK); /* alone it may */
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
    assert_int_equal(ph__queue_admit(bench.queue, 401), PH_OIP_UNAVAILABLE);
    assert_int_equal(ph__queue_admit(bench.queue, 400), PH_OIP_OK);
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
        cmocka_unit_test(random_requests_give_the_bits_of_a_session),
        cmocka_unit_test(a_request_larger_than_a_batch_is_scored_in_pieces),
        cmocka_unit_test(pieces_of_a_request_are_scored_by_several_workers),
        cmocka_unit_test(a_request_without_rows_is_done_at_once),
        cmocka_unit_test(requests_that_wait_are_one_batch),
        cmocka_unit_test(requests_for_other_outputs_are_other_batches),
        cmocka_unit_test(lower_priorities_go_first_then_in_order),
        cmocka_unit_test(a_batch_waits_for_more_rows),
        cmocka_unit_test(a_batch_that_stays_small_is_scored_after_the_delay),
        cmocka_unit_test(queues_of_one_scheduler_are_all_served),
        cmocka_unit_test(a_bad_row_fails_its_own_request_alone),
        cmocka_unit_test(a_bad_row_of_a_long_request_drops_the_rows_behind_it),
        cmocka_unit_test(a_request_that_waits_is_cancelled_at_once),
        cmocka_unit_test(a_request_that_runs_is_cancelled_between_batches),
        cmocka_unit_test(cancelling_what_is_done_changes_nothing),
        cmocka_unit_test(cancelling_at_any_moment_ends_every_request_once),
        cmocka_unit_test(a_deadline_may_pass_in_the_queue),
        cmocka_unit_test(a_deadline_that_is_far_is_met),
        cmocka_unit_test(a_deadline_that_cannot_be_met_is_refused_at_the_door),
        cmocka_unit_test(a_queue_is_full_by_its_rows),
        cmocka_unit_test(a_queue_is_full_by_its_bytes),
    };
    return cmocka_run_group_tests(tests, make_fixture, close_fixture);
}
