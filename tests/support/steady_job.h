/* A job in its steady state, for tests that measure there: one hub in a thread, or several, and two workers
 * in two other threads, all in this process. steady_job_begin() runs the job until everything has happened
 * once; the test measures before steady_job_end(). */
#ifndef PH_TEST_STEADY_JOB_H
#define PH_TEST_STEADY_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "hub/server/server_state.h"
#include "phloem/hub_server.h"
#include "support/hub_thread.h"
#include "support/test_support.h"
#include "tensor/float16.h"

#define STEADY_WORKERS 2
#define STEADY_KEYS 3
#define STEADY_MAX_HUBS 2
#define STEADY_WARM_ITERATIONS 5
#define STEADY_ITERATIONS 50
#define STEADY_CHUNK_BYTES 16384 /* large enough for TCP to send payloads from their pages */

static const size_t steady_elements[STEADY_KEYS] = {1, 40000, 16384};

struct steady_job {
    const char *name;
    enum ph_hub_transport transport;
    enum ph_hub_wait_policy wait; /* of core threads and workers */
    enum ph_hub_mode mode;
    enum ph_hub_order order;
    uint32_t depth;    /* 0: 1 */
    uint32_t num_hubs; /* 0: 1 */
    float clip_norm;
    bool has_no_thread, has_own_parameters, has_secret;
    bool is_pulled_apart; /* push, wait, pull instead of pushpull */
    bool is_narrow;       /* keys of F16 and BF16, and one of F32 */
    bool is_wide;
    /* Made by steady_job_begin(). */
    const char *secret_file;
    struct hub_thread hubs[STEADY_MAX_HUBS];
    char addresses[STEADY_MAX_HUBS * PH_ADDRESS_BYTES];
    struct steady_worker {
        struct steady_job *job;
        uint32_t rank;
        pthread_t thread;
        struct ph_hub_client *client;
    } workers[STEADY_WORKERS];
    atomic_uint num_arrived; /* workers, at the ends of phases */
    atomic_uint phase;       /* that workers may begin: 1 the iterations, 2 the end */
};

static inline void steady_nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* ---- the workers ---- */

static inline struct ph_hub_options steady_options(const struct steady_job *job)
{
    return (struct ph_hub_options){.size = sizeof(struct ph_hub_options),
        .address = job->addresses,
        .secret_file = job->secret_file,
        .transport = job->transport,
        .wait = job->wait,
        .has_no_thread = job->has_no_thread,
        .has_own_parameters = job->has_own_parameters};
}

static inline uint32_t steady_num_hubs(const struct steady_job *job)
{
    return job->num_hubs > 0 ? job->num_hubs : 1;
}

static inline enum ph_dtype steady_dtype(const struct steady_job *job, size_t key)
{
    static const enum ph_dtype narrow[STEADY_KEYS] = {PH_F32, PH_F16, PH_BF16};
    return job->is_narrow ? narrow[key] : PH_F32;
}

static inline void steady_join(struct steady_worker *worker)
{
    const struct ph_hub_options options = steady_options(worker->job);
    struct ph_hub_key keys[STEADY_KEYS];
    for (size_t i = 0; i < STEADY_KEYS; i++)
        keys[i] =
            (struct ph_hub_key){.num_elements = steady_elements[i], .dtype = steady_dtype(worker->job, i)};
    assert_ok(ph_hub_connect(&options, "steady", 1, worker->rank, &worker->client));
    assert_ok(ph_hub_init(worker->client, keys, STEADY_KEYS, NULL));
}

static inline void steady_fill(void *array, enum ph_dtype dtype, size_t num_elements, float number)
{
    const uint16_t narrow = dtype == PH_F16 ? ph__half_from_float(number) : ph__bfloat_from_float(number);
    for (size_t i = 0; dtype == PH_F32 && i < num_elements; i++)
        ((float *)array)[i] = number;
    for (size_t i = 0; dtype != PH_F32 && i < num_elements; i++)
        ((uint16_t *)array)[i] = narrow;
}

/* Fills each key's gradient with one number for the iteration. */
static inline void steady_write(struct steady_worker *worker, uint64_t iteration)
{
    for (size_t key = 0; key < STEADY_KEYS; key++)
        steady_fill(ph_hub_gradient(worker->client, key), steady_dtype(worker->job, key),
            steady_elements[key], (float)(iteration % 8 + key) * .125F);
}

static inline void steady_start(struct steady_worker *worker, uint64_t iteration)
{
    struct ph_hub_client *client = worker->client;
    steady_write(worker, iteration);
    if (worker->rank == 0)
        assert_ok(ph_hub_set_learning_rate(client, 0, .5F / (float)(iteration + 1)));
    for (size_t key = 0; key < STEADY_KEYS; key++)
        assert_ok(worker->job->is_pulled_apart ? ph_hub_push_start(client, key)
                                               : ph_hub_pushpull_start(client, key));
}

static inline void steady_pull(struct steady_worker *worker)
{
    assert_ok(ph_hub_wait_all(worker->client));
    for (size_t key = 0; key < STEADY_KEYS; key++)
        assert_ok(ph_hub_pull_start(worker->client, key));
}

/* Runs iterations; with a depth of 2, waits for an iteration when the next one is on its way. */
static inline void steady_iterate(struct steady_worker *worker, uint64_t first, uint64_t last)
{
    for (uint64_t iteration = first; iteration <= last; iteration++) {
        steady_start(worker, iteration);
        if (worker->job->is_pulled_apart)
            steady_pull(worker);
        if (worker->job->depth < 2)
            assert_ok(ph_hub_wait_all(worker->client));
        for (size_t key = 0; worker->job->depth == 2 && iteration > first && key < STEADY_KEYS; key++)
            assert_ok(ph_hub_wait(worker->client, key));
    }
    assert_ok(ph_hub_wait_all(worker->client));
}

static inline void steady_arrive(struct steady_job *job, unsigned phase)
{
    atomic_fetch_add(&job->num_arrived, 1);
    while (atomic_load(&job->phase) < phase)
        steady_nap();
}

static inline void *steady_work(void *context)
{
    struct steady_worker *worker = context;
    steady_join(worker);
    steady_iterate(worker, 1, STEADY_WARM_ITERATIONS);
    steady_arrive(worker->job, 1);
    steady_iterate(worker, STEADY_WARM_ITERATIONS + 1, STEADY_WARM_ITERATIONS + STEADY_ITERATIONS);
    steady_arrive(worker->job, 2);
    assert_ok(ph_hub_leave(worker->client));
    ph_hub_client_destroy(worker->client);
    return NULL;
}

/* ---- the job ---- */

static inline void steady_start_hubs(struct steady_job *job)
{
    if (job->has_secret) {
        job->secret_file = test_write_file("secret", "sixteen bytes and some more\n");
        assert_int_equal(chmod(job->secret_file, 0600), 0);
    }
    const struct ph_hub_server_options options = {.size = sizeof options,
        .num_threads = 2,
        .wait = job->wait,
        .secret_file = job->secret_file,
        .aggregation = job->is_wide ? PH_HUB_WIDE : PH_HUB_TALL};
    size_t used = 0;
    for (uint32_t i = 0; i < steady_num_hubs(job); i++) {
        hub_thread_begin(&job->hubs[i], options);
        used += (size_t)snprintf(job->addresses + used, sizeof job->addresses - used, "%s%s",
            i > 0 ? "," : "", job->hubs[i].address);
    }
}

static inline void steady_await(struct steady_job *job, unsigned num_arrived)
{
    while (atomic_load(&job->num_arrived) < num_arrived)
        steady_nap();
}

/* Starts hubs and workers, and returns when all workers have done their warm iterations. */
static inline void steady_job_begin(struct steady_job *job)
{
    steady_start_hubs(job);
    const struct ph_hub_optimizer momentum = {
        .rule.kind = PH_MOMENTUM, .learning_rate = .5F, .rule.momentum = .75F};
    const struct ph_hub_service service = {.size = sizeof service,
        .name = "steady",
        .nonce = 1,
        .num_workers = STEADY_WORKERS,
        .mode = job->mode,
        .order = job->order,
        .staleness = 2,
        .depth = job->depth,
        .clip_norm = job->clip_norm,
        .chunk_bytes = STEADY_CHUNK_BYTES,
        .optimizers = &momentum,
        .num_optimizers = 1};
    const struct ph_hub_options options = steady_options(job);
    assert_ok(ph_hub_create_service(&options, &service));
    for (uint32_t rank = 0; rank < STEADY_WORKERS; rank++) {
        job->workers[rank] = (struct steady_worker){.job = job, .rank = rank};
        assert_int_equal(
            pthread_create(&job->workers[rank].thread, NULL, steady_work, &job->workers[rank]), 0);
    }
    steady_await(job, STEADY_WORKERS);
}

/* Runs the iterations, and returns when all workers have done theirs. */
static inline void steady_job_run(struct steady_job *job)
{
    atomic_store(&job->phase, 1);
    steady_await(job, 2 * STEADY_WORKERS);
}

static inline void steady_job_end(struct steady_job *job)
{
    atomic_store(&job->phase, 2);
    for (uint32_t rank = 0; rank < STEADY_WORKERS; rank++)
        pthread_join(job->workers[rank].thread, NULL);
    for (uint32_t i = 0; i < steady_num_hubs(job); i++)
        hub_thread_end(&job->hubs[i]);
}

#endif
