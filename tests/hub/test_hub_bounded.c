/* A bounded job whose keys several hubs share: a worker that stands still holds the other, on each hub, after
 * as many iterations as staleness and depth allow, and what both have pushed is in the parameters in the end.
 */
#include "support/test_support.h"

#include <stdio.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "hub/client/client_operator.h"
#include "hub/several_hubs.h"

enum {
    NONCE = 4711,
    NUM_WORKERS = 2,
    NUM_HUBS = 2,
    NUM_ELEMENTS = 3000,
    NUM_ITERATIONS = 12,
    STAND_AT = 3,       /* after which iteration worker 0 does */
    LIMIT_MS = 20000,   /* until what is allowed has come */
    MORE_TIME_MS = 200, /* for what is not */
    INITIAL = 5,
};

static const float learning_rate = .25F;

struct bounded_job {
    struct several_hubs hubs;
    struct ph_hub_service service;
    _Atomic uint64_t num_done[NUM_WORKERS]; /* each worker tells its own */
    atomic_bool may_go_on;                  /* the test says so */
    pthread_barrier_t all_pushed;
    float last[NUM_WORKERS][NUM_ELEMENTS];
};

/* A small whole number, so that sums are exact in any order. */
static float gradient(uint32_t rank, uint64_t iteration, size_t element)
{
    return (float)((rank * 5 + iteration * 3 + element) % 7) - 3;
}

static ph_status join(struct test_worker *worker)
{
    const struct bounded_job *job = worker->context;
    const struct ph_hub_options *options = &job->hubs.all.options;
    float initial[NUM_ELEMENTS];
    const struct ph_hub_key key = {.num_elements = NUM_ELEMENTS, .dtype = PH_F32, .initial = initial};
    for (size_t i = 0; i < NUM_ELEMENTS; i++)
        initial[i] = INITIAL;
    PH_TRY(ph_hub_create_service(options, &job->service));
    PH_TRY(ph_hub_connect(options, job->service.name, NONCE, worker->rank, &worker->client));
    return ph_hub_init(worker->client, &key, 1, NULL);
}

static ph_status push(const struct test_worker *worker, uint64_t iteration)
{
    float *numbers = ph_hub_gradient(worker->client, 0);
    for (size_t i = 0; i < NUM_ELEMENTS; i++)
        numbers[i] = gradient(worker->rank, iteration, i);
    return ph_hub_pushpull_start(worker->client, 0);
}

static void stand_still(const struct bounded_job *job)
{
    while (!atomic_load(&job->may_go_on))
        usleep(1000);
}

/* As many iterations under way as may be; but none when worker 0 stands still. */
static ph_status push_all(const struct test_worker *worker)
{
    struct bounded_job *job = worker->context;
    uint64_t pushed = 0;
    for (uint64_t done = 0; done < NUM_ITERATIONS; done++) {
        const uint64_t end = worker->rank == 0 && done < STAND_AT ? STAND_AT : NUM_ITERATIONS;
        if (worker->rank == 0 && done == STAND_AT)
            stand_still(job);
        while (pushed < end && pushed < done + job->service.depth)
            PH_TRY(push(worker, ++pushed));
        PH_TRY(ph_hub_wait(worker->client, 0));
        atomic_store(&job->num_done[worker->rank], done + 1);
    }
    return PH_OK;
}

/* When all updates have been made. */
static ph_status take_last(const struct test_worker *worker)
{
    struct bounded_job *job = worker->context;
    PH_TRY(ph_hub_pull_start(worker->client, 0));
    PH_TRY(ph_hub_wait(worker->client, 0));
    const float *parameters = ph_hub_parameters(worker->client, 0);
    for (size_t i = 0; i < NUM_ELEMENTS; i++)
        job->last[worker->rank][i] = parameters[i];
    return ph_hub_leave(worker->client);
}

static ph_status work(struct test_worker *worker)
{
    struct bounded_job *job = worker->context;
    ph_status status = join(worker);
    if (status == PH_OK)
        status = push_all(worker);
    pthread_barrier_wait(&job->all_pushed);
    return status == PH_OK ? take_last(worker) : status;
}

/* ---- what the test sees ---- */

/* Of the chunk that has had the fewest. */
static ph_status count_updates(const struct hub_thread *hub, uint64_t *count_out)
{
    struct ph__json *status;
    PH_TRY(ph__hub_status(&hub->options, "job", &status));
    const struct ph__json *job = ph__json_at(ph__json_get(status, "jobs"), 0);
    *count_out = (uint64_t)ph__json_as_integer(ph__json_get(job, "iteration"), 0);
    ph__json_destroy(status);
    return PH_OK;
}

struct sight {
    uint64_t num_done[NUM_WORKERS], num_updates[NUM_HUBS];
};

static ph_status look(const struct bounded_job *job, struct sight *sight_out)
{
    for (uint32_t rank = 0; rank < NUM_WORKERS; rank++)
        sight_out->num_done[rank] = atomic_load(&job->num_done[rank]);
    for (uint32_t hub = 0; hub < NUM_HUBS; hub++)
        PH_TRY(count_updates(&job->hubs.hubs[hub], &sight_out->num_updates[hub]));
    return PH_OK;
}

static bool is_all_that_may_be(const struct bounded_job *job, const struct sight *sight)
{
    const uint64_t ahead = STAND_AT + job->service.staleness;
    bool is_all = sight->num_done[0] == STAND_AT && sight->num_done[1] == ahead;
    for (uint32_t hub = 0; hub < NUM_HUBS; hub++)
        is_all &= sight->num_updates[hub] == STAND_AT + ahead + job->service.depth;
    return is_all;
}

/* Until worker 1 is as far ahead as it may be, and then time to come further. */
static ph_status watch(
    const struct bounded_job *job, const struct test_worker *workers, struct sight *sight_out)
{
    const double deadline = ph__clock_seconds() + LIMIT_MS / 1e3;
    bool has_ended = false;
    PH_TRY(look(job, sight_out));
    while (!is_all_that_may_be(job, sight_out) && !has_ended && ph__clock_seconds() < deadline) {
        usleep(1000);
        PH_TRY(look(job, sight_out));
        for (uint32_t rank = 0; rank < NUM_WORKERS; rank++)
            has_ended |= test_worker_has_failed(&workers[rank]);
    }
    usleep(MORE_TIME_MS * 1000);
    return look(job, sight_out);
}

static void assert_last(const struct bounded_job *job)
{
    for (size_t i = 0; i < NUM_ELEMENTS; i++) {
        float sum = 0;
        for (uint32_t rank = 0; rank < NUM_WORKERS; rank++) {
            for (uint64_t iteration = 1; iteration <= NUM_ITERATIONS; iteration++)
                sum += gradient(rank, iteration, i);
        }
        for (uint32_t rank = 0; rank < NUM_WORKERS; rank++)
            assert_true(job->last[rank][i] == INITIAL - learning_rate * sum);
    }
}

static void waits_for_the_slowest(uint32_t staleness, uint32_t depth)
{
    static const struct ph_hub_server_options no_options[NUM_HUBS];
    const struct ph_hub_optimizer sgd = {.rule.kind = PH_SGD, .learning_rate = learning_rate};
    struct test_worker workers[NUM_WORKERS];
    struct sight sight;
    struct bounded_job job = {.service = {.size = sizeof(struct ph_hub_service),
                                  .name = "job",
                                  .nonce = NONCE,
                                  .num_workers = NUM_WORKERS,
                                  .mode = PH_HUB_BOUNDED,
                                  .staleness = staleness,
                                  .depth = depth,
                                  .chunk_bytes = 256,
                                  .optimizers = &sgd,
                                  .num_optimizers = 1}};
    several_hubs_begin(&job.hubs, NUM_HUBS, no_options);
    assert_int_equal(pthread_barrier_init(&job.all_pushed, NULL, NUM_WORKERS), 0);
    for (uint32_t rank = 0; rank < NUM_WORKERS; rank++) {
        workers[rank] = (struct test_worker){.rank = rank, .function = work, .context = &job};
        test_worker_begin(&workers[rank]);
    }
    const ph_status watched = watch(&job, workers, &sight);
    atomic_store(&job.may_go_on, true);
    for (uint32_t rank = 0; rank < NUM_WORKERS; rank++)
        assert_ok(test_worker_end(&workers[rank]));
    pthread_barrier_destroy(&job.all_pushed);
    several_hubs_end(&job.hubs);
    assert_ok(watched);
    if (!is_all_that_may_be(&job, &sight))
        fail_msg("staleness %u, depth %u: worker 1 is at iteration %llu and the hubs at updates %llu and "
                 "%llu, while worker 0 "
                 "stands at %d",
            staleness, depth, (unsigned long long)sight.num_done[1], (unsigned long long)sight.num_updates[0],
            (unsigned long long)sight.num_updates[1], STAND_AT);
    assert_last(&job);
}

static void over_two_hubs_nobody_gets_further_ahead_than_staleness_and_depth(void **state)
{
    (void)state;
    for (uint32_t depth = 1; depth <= 2; depth++) {
        for (uint32_t staleness = 0; staleness <= 2; staleness++)
            waits_for_the_slowest(staleness, depth);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_two_hubs_nobody_gets_further_ahead_than_staleness_and_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
