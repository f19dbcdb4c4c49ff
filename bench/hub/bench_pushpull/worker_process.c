/* Runs a worker of the benchmark; see worker_process.h. */
#include "worker_process.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sum/checksum.h"
#include "base/thread/clock.h"
#include "base/thread/cpu.h"
#include "figures.h"
#include "hub/client/client_state.h"
#include "kernel/kernel.h"
#include "peers/peer_model.h"
#include "pinned.h"

enum {
    NONCE = 6,
    SPINS = 200 /* before yielding the processor, maybe to those waited for */
};

static const struct ph_hub_optimizer momentum = {
    .rule.kind = PH_MOMENTUM, .learning_rate = 0.01F, .rule.momentum = 0.9F};

struct worker {
    struct worker_options options;
    struct ph_hub_client *client;
    const struct ph__kernels *kernels;
    float sum[PEER_PERIOD]; /* the workers' mean */
    struct peer_expected expected;
    bool is_right;
    double samples[WORKER_MAX_SAMPLES + 1];
};

/* Returns the elements of a key. */
static size_t count_of(const struct worker *worker, size_t key)
{
    const struct worker_options *options = &worker->options;
    return options->shapes != NULL ? options->shapes->elements[key] : options->key_bytes / sizeof(float);
}

/* ---- joining ---- */

static void connect_worker(struct worker *worker)
{
    const struct worker_options *options = &worker->options;
    const struct ph_hub_options hub = {.size = sizeof hub,
        .address = options->address,
        .transport = options->transport,
        .wait = options->wait,
        .has_no_thread = options->has_no_thread};
    const struct ph_hub_service service = {.size = sizeof service,
        .name = options->job,
        .nonce = NONCE,
        .num_workers = options->num_workers,
        .is_mean = true,
        .chunk_bytes = options->chunk_bytes,
        .depth = options->depth,
        .optimizers = &momentum,
        .num_optimizers = 1};
    bench_check(ph_hub_create_service(&hub, &service));
    bench_check(ph_hub_connect(&hub, options->job, NONCE, options->rank, &worker->client));
}

static void initialise_keys(struct worker *worker)
{
    const size_t num_keys = worker->options.num_keys;
    struct ph_hub_key *keys = calloc(num_keys, sizeof *keys);
    if (keys == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu keys", num_keys));
    for (size_t key = 0; key < num_keys; key++)
        keys[key] = (struct ph_hub_key){.num_elements = count_of(worker, key), .dtype = PH_F32};
    bench_check(ph_hub_init(worker->client, keys, num_keys, NULL));
    free(keys);
}

static void expect_sum(struct worker *worker)
{
    enum ph__isa isa;
    bench_check(ph__cpu_isa(&isa));
    worker->kernels = ph__kernels_for(isa);
    peer_expected_sum(worker->sum, (int)worker->options.num_workers);
    for (size_t i = 0; i < PEER_PERIOD; i++)
        worker->sum[i] *= worker->options.scale * (1.0F / (float)worker->options.num_workers);
}

/* ---- expected results ---- */

static void expect_steps(struct worker *worker, uint64_t count)
{
    const struct ph__optimizer_step step = {.kind = momentum.rule.kind,
        .learning_rate = momentum.learning_rate,
        .gradient_scale = 1,
        .momentum = (float)momentum.rule.momentum};
    for (uint64_t i = 0; i < count; i++)
        worker->kernels->optimizer_update(
            &step, PEER_PERIOD, worker->sum, worker->expected.weights, worker->expected.velocity, NULL);
}

static void compare(struct worker *worker, size_t first_key, size_t end_key)
{
    for (size_t key = first_key; key < end_key; key++)
        worker->is_right &= peer_repeats(
            ph_hub_parameters(worker->client, key), count_of(worker, key), worker->expected.weights);
}

/* Returns the checksum of the keys' checksums. */
static uint64_t checksum_parameters(const struct worker *worker)
{
    const size_t num_keys = worker->options.num_keys;
    uint64_t *sums = calloc(num_keys, sizeof *sums);
    if (sums == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu checksums", num_keys));
    for (size_t key = 0; key < num_keys; key++)
        sums[key] =
            ph__checksum(ph_hub_parameters(worker->client, key), count_of(worker, key) * sizeof(float));
    const uint64_t sum = ph__checksum(sums, num_keys * sizeof *sums);
    free(sums);
    return sum;
}

/* ---- orders ---- */

/* Returns when all workers of the job have come. */
static void meet(const struct worker *worker)
{
    struct meeting *meeting = worker->options.meeting;
    const unsigned count = atomic_load_explicit(&meeting->num_meetings, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&meeting->num_there, 1, memory_order_acq_rel) + 1 ==
        worker->options.num_workers) {
        atomic_store_explicit(&meeting->num_there, 0, memory_order_relaxed);
        atomic_store_explicit(&meeting->num_meetings, count + 1, memory_order_release);
        return;
    }
    for (size_t i = 0; atomic_load_explicit(&meeting->num_meetings, memory_order_acquire) == count; i++)
        if (i % SPINS == SPINS - 1)
            sched_yield();
}

static void push_all(const struct worker *worker)
{
    for (size_t key = 0; key < worker->options.num_keys; key++)
        bench_check(ph_hub_pushpull_start(worker->client, key));
    bench_check(ph_hub_wait_all(worker->client));
}

/* Measures rounds. Compares the parameters after the last: each step builds on the former, and a comparison
 * between two rounds would empty the caches. */
static void play_rounds(struct worker *worker, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        meet(worker);
        const double start = ph__clock_seconds();
        push_all(worker);
        worker->samples[i] = ph__clock_seconds() - start;
    }
    expect_steps(worker, count);
    compare(worker, 0, worker->options.num_keys);
}

/* Rewrites the gradient and pushes it. Otherwise a small key would stay in the hub's caches, and only
 * messages would change hands. */
static void write_and_push(const struct worker *worker, size_t key)
{
    const float unit = worker->options.scale * (float)(worker->options.rank + 1);
    peer_rewrite(ph_hub_gradient(worker->client, key), count_of(worker, key), unit);
    bench_check(ph_hub_pushpull_start(worker->client, key));
}

static void wait_and_read(const struct worker *worker, size_t key)
{
    bench_check(ph_hub_wait(worker->client, key));
    peer_look_at(ph_hub_parameters(worker->client, key), count_of(worker, key));
}

static void measure_latency(struct worker *worker, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double start = ph__clock_seconds();
        write_and_push(worker, 0);
        wait_and_read(worker, 0);
        worker->samples[i] = ph__clock_seconds() - start;
    }
    expect_steps(worker, count);
    compare(worker, 0, 1);
}

static void stream(struct worker *worker, size_t count, size_t wanted)
{
    const size_t num_keys = worker->options.num_keys, all = count * num_keys;
    const size_t in_flight = wanted > 0 ? wanted : num_keys * worker->options.depth;
    worker->samples[0] = ph__clock_seconds();
    for (size_t i = 0; i < all + in_flight; i++) {
        if (i >= in_flight) {
            const size_t done = i - in_flight;
            wait_and_read(worker, done % num_keys);
            if (done % num_keys == num_keys - 1)
                worker->samples[done / num_keys + 1] = ph__clock_seconds();
        }
        if (i < all)
            write_and_push(worker, i % num_keys);
    }
    expect_steps(worker, count);
    compare(worker, 0, num_keys);
}

static void answer_counters(const struct worker *worker, int to)
{
    struct worker_counters counters = {0};
    for (size_t core = 0; core < worker->client->num_links; core++) {
        const struct ph__link_counters *link = &worker->client->links[core]->counters;
        counters.messages += link->messages_sent + link->messages_received;
        counters.system_calls += link->system_calls;
        counters.doorbells += link->doorbells;
    }
    child_answer(to, &counters, sizeof counters);
}

static void answer_samples(const struct worker *worker, uint32_t count, int to)
{
    const struct worker_answer answer = {
        .count = count, .is_right = worker->is_right, .checksum = checksum_parameters(worker)};
    child_answer(to, &answer, sizeof answer);
    child_answer(to, worker->samples, count * sizeof *worker->samples);
}

static void carry_out(struct worker *worker, const struct order *order, int to)
{
    const size_t most = WORKER_MAX_SAMPLES, count = order->count < most ? order->count : most;
    switch (order->verb) {
    case VERB_ROUNDS:
        play_rounds(worker, count);
        break;
    case VERB_LATENCY:
        measure_latency(worker, count);
        break;
    case VERB_STREAM:
        stream(worker, count, order->in_flight);
        break;
    case VERB_COUNTERS:
        answer_counters(worker, to);
        return;
    }
    answer_samples(worker, (uint32_t)count + (order->verb == VERB_STREAM), to);
}

/* Fills the gradients of the first `depth` pushes, each in its own place; later pushes use these again. */
static void fill_gradients(struct worker *worker)
{
    for (uint32_t i = 0; i < worker->options.depth; i++) {
        for (size_t key = 0; key < worker->options.num_keys; key++) {
            float *gradient = ph_hub_gradient(worker->client, key);
            const size_t count = count_of(worker, key);
            peer_gradient(gradient, count, (int)worker->options.rank);
            for (size_t k = 0; k < count; k++)
                gradient[k] *= worker->options.scale;
        }
        push_all(worker);
    }
    expect_steps(worker, worker->options.depth);
    compare(worker, 0, worker->options.num_keys);
}

static void tell_joined(const struct worker *worker, int to)
{
    struct ph_hub_client_info info;
    struct worker_joined joined = {0};
    ph_hub_client_describe(worker->client, &info);
    snprintf(joined.transport, sizeof joined.transport, "%s", info.transport);
    joined.chunk_bytes = info.chunk_bytes;
    joined.num_chunks = info.num_chunks;
    joined.num_cores = info.num_cores;
    child_answer(to, &joined, sizeof joined);
}

void worker_process(void *context, int from, int to)
{
    static struct worker worker;
    struct order order;
    worker.options = *(const struct worker_options *)context;
    worker.is_right = true;
    if (worker.options.processor >= 0)
        bench_stay_on(worker.options.processor);
    connect_worker(&worker);
    initialise_keys(&worker);
    expect_sum(&worker);
    fill_gradients(&worker);
    tell_joined(&worker, to);
    while (child_has_order(from, &order, sizeof order))
        carry_out(&worker, &order, to);
    PH_IGNORE(ph_hub_leave(worker.client)); /* other workers may have ended the job already */
    ph_hub_client_destroy(worker.client);
}
