/* Queues over a session of the run folder, and requests that know what they must get. Tests that need
 * requests to wait hold the worker in the callback of a first request. */
#ifndef PH_TEST_QUEUE_BENCH_H
#define PH_TEST_QUEUE_BENCH_H

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

static inline int make_fixture(void **state)
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

static inline int close_fixture(void **state)
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

static inline void on_done(void *context, struct ph__work *work)
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

static inline void on_batch_done(void *context)
{
    (void)context;
}

static inline bool is_done(const struct job *job)
{
    pthread_mutex_lock(&events.lock);
    const bool done = job->is_done;
    pthread_mutex_unlock(&events.lock);
    return done;
}

static inline void await(const struct job *job)
{
    pthread_mutex_lock(&events.lock);
    while (!job->is_done)
        pthread_cond_wait(&events.has_changed, &events.lock);
    pthread_mutex_unlock(&events.lock);
}

/* Sets the outputs that a job wants: a set of each kind. */
static inline void want(struct job *job, unsigned set)
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

static inline struct job *make_job(
    const struct ph__tensor *tensors, size_t num_tensors, size_t first, unsigned set)
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
static inline struct job *make_lines(size_t first, size_t count, unsigned set)
{
    const struct ph__tensor lines =
        run_tensor("lines", PH_TENSOR_BYTES, fixture.run.line_texts + first, count);
    return make_job(&lines, 1, first, set);
}

static inline struct job *make_texts(size_t first, size_t count, unsigned set)
{
    struct ph__tensor tensors[RUN_NUM_COLUMNS];
    run_text_tensors(&fixture.run, first, count, tensors);
    return make_job(tensors, RUN_NUM_COLUMNS, first, set);
}

static inline void free_job(struct job *job)
{
    for (size_t i = 0; i < job->work.wanted.num_outputs; i++)
        free(job->values[i]);
    ph__arena_fini(&job->arena);
    free(job);
}

/* Waits for a request, and asserts that its numbers are the session's, bit for bit. */
static inline void assert_scored(struct job *job)
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

static inline void assert_ended(struct job *job, enum ph__oip_code code, const char *part)
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

static inline struct ph__queue_options queue_options(size_t max_batch)
{
    return (struct ph__queue_options){.session = fixture.session,
        .max_batch = max_batch,
        .max_rows = (size_t)1 << 40,
        .max_bytes = (uint64_t)1 << 40};
}

static inline struct bench open_bench(size_t num_workers, const struct ph__queue_options *options)
{
    struct bench bench = {.queue = NULL};
    const struct ph__scheduler_options scheduler = {num_workers, on_done, on_batch_done, NULL};
    assert_ok(ph__scheduler_create(&scheduler, &bench.scheduler));
    assert_ok(ph__queue_create(bench.scheduler, options, &bench.queue));
    return bench;
}

static inline void put(const struct bench *bench, struct job *job)
{
    if (ph__queue_put(bench->queue, &job->work) != PH_OIP_OK)
        fail_msg("%s", ph_error_text());
}

/* Opens a queue whose only worker is held: what is put waits. */
static inline struct bench open_held(const struct ph__queue_options *options)
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

static inline void release(struct bench *bench)
{
    pthread_mutex_lock(&events.lock);
    events.is_open = true;
    pthread_cond_broadcast(&events.has_changed);
    pthread_mutex_unlock(&events.lock);
    ph__scheduler_kick(bench->scheduler);
}

static inline struct ph__queue_figures figures_of(const struct bench *bench)
{
    struct ph__queue_figures figures;
    ph__queue_figures(bench->queue, &figures);
    return figures;
}

static inline void close_bench(struct bench *bench)
{
    const struct ph__queue_figures figures = figures_of(bench);
    assert_true(figures.num_waiting == 0 && figures.waiting_rows == 0 && figures.waiting_bytes == 0);
    ph__queue_destroy(bench->queue);
    ph__scheduler_destroy(bench->scheduler);
    if (bench->plug != NULL)
        assert_scored(bench->plug);
}

/* ---- draws, and long requests ---- */

static inline size_t draw(uint64_t *number, size_t below)
{
    *number = ph__hash_bytes(number, sizeof *number);
    return (size_t)(*number >> 11) % below;
}

/* Makes a request of many rows, which are all row 0. */
static inline struct job *make_long(size_t count)
{
    struct ph__bytes *texts = calloc(count, sizeof *texts);
    assert_non_null(texts);
    for (size_t i = 0; i < count; i++)
        texts[i] = fixture.run.line_texts[0];
    const struct ph__tensor lines = run_tensor("lines", PH_TENSOR_BYTES, texts, count);
    return make_job(&lines, 1, 0, 0);
}

static inline void free_texts(const struct job *job)
{
    free((void *)(uintptr_t)job->tensors[0].values);
}

static inline void await_idle(const struct bench *bench, size_t num_workers)
{
    size_t num_idle;
    do {
        pthread_mutex_lock(&bench->scheduler->lock);
        num_idle = bench->scheduler->num_idle;
        pthread_mutex_unlock(&bench->scheduler->lock);
    } while (num_idle < num_workers);
}

#endif
