/* A hub and its workers, in one process, over both transports: what is pulled against a serial loop. */
#include "support/test_support.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread/cpu.h"
#include "kernel/kernel.h"
#include "phloem/hub_server.h"
#include "support/hub_thread.h"

#define NUM_KEYS 4
#define NUM_ITERATIONS 12
#define MAX_WORKERS 4

static const size_t key_elements[NUM_KEYS] = {1, 1000, 20000, 8193};

/* address: NULL for one of the loopback. */
static void start_hub_at(struct hub_thread *hub, const char *address, const char *secret_file)
{
    const struct ph_hub_server_options options = {
        .size = sizeof options, .address = address, .num_threads = 3, .secret_file = secret_file};
    hub_thread_begin(hub, options);
}

static void start_hub(struct hub_thread *hub, const char *secret_file)
{
    start_hub_at(hub, NULL, secret_file);
}

static const char *write_secret(void)
{
    const char *path = test_write_file("secret", "sixteen bytes and some more\n");
    assert_int_equal(chmod(path, 0600), 0);
    return path;
}

/* ---- the oracle ---- */

static float gradient_of(uint32_t worker, size_t key, uint64_t iteration, size_t i)
{
    const uint32_t mixed =
        (uint32_t)(worker * 7919 + key * 104729 + iteration * 1299709 + i * 15485863) * 2654435761u;
    return (float)(int32_t)mixed * 0x1p-31F;
}

static float initial_of(size_t key, size_t i)
{
    return (float)(key + 1) + (float)(i % 17) * .25F;
}

struct trial {
    enum ph_hub_transport transport;
    uint32_t num_workers, depth;
    bool is_mean, has_own_parameters;
    struct ph_hub_optimizer optimizer;
    struct hub_thread *hub;
    float *wanted[NUM_KEYS][NUM_ITERATIONS + 1]; /* parameters after each iteration */
};

static struct ph__optimizer_step step_of(const struct ph_hub_optimizer *optimizer)
{
    return (struct ph__optimizer_step){.kind = optimizer->rule.kind,
        .learning_rate = optimizer->learning_rate,
        .gradient_scale = 1,
        .momentum = (float)optimizer->rule.momentum};
}

static void work_out(struct trial *trial)
{
    enum ph__isa isa;
    assert_ok(ph__cpu_isa(&isa));
    const struct ph__kernels *kernels = ph__kernels_for(isa);
    const struct ph__optimizer_step step = step_of(&trial->optimizer);
    for (size_t key = 0; key < NUM_KEYS; key++) {
        const size_t n = key_elements[key];
        float *sum = calloc(n, sizeof *sum), *m = calloc(n, sizeof *m);
        for (size_t t = 0; t <= NUM_ITERATIONS; t++)
            trial->wanted[key][t] = calloc(n, sizeof(float));
        for (size_t i = 0; i < n; i++)
            trial->wanted[key][0][i] = initial_of(key, i);
        for (uint64_t t = 1; t <= NUM_ITERATIONS; t++) {
            for (size_t i = 0; i < n; i++) {
                sum[i] = gradient_of(0, key, t, i);
                for (uint32_t worker = 1; worker < trial->num_workers; worker++)
                    sum[i] += gradient_of(worker, key, t, i);
                if (trial->is_mean)
                    sum[i] *= 1.0F / (float)trial->num_workers;
            }
            memcpy(trial->wanted[key][t], trial->wanted[key][t - 1], n * sizeof(float));
            if (trial->optimizer.is_none)
                memcpy(trial->wanted[key][t], sum, n * sizeof(float));
            else
                kernels->optimizer_update(&step, n, sum, trial->wanted[key][t], m, NULL);
        }
        free(sum);
        free(m);
    }
}

static void free_oracle(struct trial *trial)
{
    for (size_t key = 0; key < NUM_KEYS; key++) {
        for (size_t t = 0; t <= NUM_ITERATIONS; t++)
            free(trial->wanted[key][t]);
    }
}

/* ---- workers ---- */

struct worker {
    struct trial *trial;
    uint32_t rank;
    pthread_t thread;
};

static struct ph_hub_options options_of(const struct trial *trial)
{
    struct ph_hub_options options = trial->hub->options;
    options.transport = trial->transport;
    options.has_own_parameters = trial->has_own_parameters;
    return options;
}

static void check_parameters(
    const struct trial *trial, struct ph_hub_client *client, size_t key, uint64_t iteration)
{
    assert_memory_equal(
        ph_hub_parameters(client, key), trial->wanted[key][iteration], key_elements[key] * sizeof(float));
}

static void push_all(struct ph_hub_client *client, uint32_t rank, uint64_t iteration)
{
    for (size_t key = 0; key < NUM_KEYS; key++) {
        float *gradient = ph_hub_gradient(client, key);
        for (size_t i = 0; i < key_elements[key]; i++)
            gradient[i] = gradient_of(rank, key, iteration, i);
        assert_ok(ph_hub_pushpull_start(client, key));
    }
}

static void wait_for_all(const struct trial *trial, struct ph_hub_client *client, uint64_t iteration)
{
    for (size_t key = NUM_KEYS; key-- > 0;) {
        assert_ok(ph_hub_wait(client, key));
        check_parameters(trial, client, key, iteration);
    }
}

static struct ph_hub_client *join_job(const struct trial *trial, uint32_t rank)
{
    const struct ph_hub_options options = options_of(trial);
    struct ph_hub_client *client;
    struct ph_hub_key keys[NUM_KEYS] = {0};
    float *initial[NUM_KEYS];
    uint64_t iteration = 99;
    assert_ok(ph_hub_connect(&options, "trial", 4711, rank, &client));
    for (size_t key = 0; key < NUM_KEYS; key++) {
        initial[key] = calloc(key_elements[key], sizeof(float));
        for (size_t i = 0; i < key_elements[key]; i++)
            initial[key][i] = rank == 0 ? initial_of(key, i) : -1;
        keys[key] =
            (struct ph_hub_key){.num_elements = key_elements[key], .dtype = PH_F32, .initial = initial[key]};
    }
    assert_ok(ph_hub_init(client, keys, NUM_KEYS, &iteration));
    assert_int_equal(iteration, 0);
    for (size_t key = 0; key < NUM_KEYS; key++) {
        check_parameters(trial, client, key, 0);
        free(initial[key]);
    }
    return client;
}

static void *work(void *context)
{
    const struct worker *worker = context;
    const struct trial *trial = worker->trial;
    struct ph_hub_client *client = join_job(trial, worker->rank);
    if (trial->depth == 1) {
        for (uint64_t t = 1; t <= NUM_ITERATIONS; t++) {
            push_all(client, worker->rank, t);
            wait_for_all(trial, client, t);
        }
    } else { /* the next iteration is pushed before this one is waited for */
        push_all(client, worker->rank, 1);
        for (uint64_t t = 1; t < NUM_ITERATIONS; t++) {
            push_all(client, worker->rank, t + 1);
            wait_for_all(trial, client, t);
        }
        wait_for_all(trial, client, NUM_ITERATIONS);
    }
    assert_ok(ph_hub_leave(client));
    ph_hub_client_destroy(client);
    return NULL;
}

static void run_trial(struct trial *trial, const char *secret_file)
{
    struct hub_thread hub;
    struct worker workers[MAX_WORKERS];
    start_hub(&hub, secret_file);
    trial->hub = &hub;
    work_out(trial);
    const struct ph_hub_options options = options_of(trial);
    const struct ph_hub_service service = {.size = sizeof service,
        .name = "trial",
        .nonce = 4711,
        .num_workers = trial->num_workers,
        .is_mean = trial->is_mean,
        .depth = trial->depth,
        .chunk_bytes = 4096,
        .optimizers = &trial->optimizer,
        .num_optimizers = 1};
    assert_ok(ph_hub_create_service(&options, &service));
    for (uint32_t rank = 0; rank < trial->num_workers; rank++) {
        workers[rank] = (struct worker){.trial = trial, .rank = rank};
        assert_int_equal(pthread_create(&workers[rank].thread, NULL, work, &workers[rank]), 0);
    }
    for (uint32_t rank = 0; rank < trial->num_workers; rank++)
        pthread_join(workers[rank].thread, NULL);
    assert_ok(ph_hub_destroy_service(&options, "trial", 4711));
    hub_thread_end(&hub);
    free_oracle(trial);
}

static const struct ph_hub_optimizer momentum = {
    .rule.kind = PH_MOMENTUM, .learning_rate = .125F, .rule.momentum = .75F};

static void shared_memory_brings_the_serial_sums_result(void **state)
{
    (void)state;
    struct trial trial = {
        .transport = PH_HUB_SHARED_MEMORY, .num_workers = 3, .depth = 1, .optimizer = momentum};
    run_trial(&trial, NULL);
}

static void tcp_brings_the_serial_sums_result(void **state)
{
    (void)state;
    struct trial trial = {.transport = PH_HUB_TCP, .num_workers = 3, .depth = 1, .optimizer = momentum};
    run_trial(&trial, NULL);
}

static void two_iterations_may_be_under_way(void **state)
{
    (void)state;
    struct trial trial = {
        .transport = PH_HUB_SHARED_MEMORY, .num_workers = 2, .depth = 2, .optimizer = momentum};
    run_trial(&trial, NULL);
    trial.transport = PH_HUB_TCP;
    run_trial(&trial, NULL);
}

static void a_mean_without_an_optimizer_comes_back_as_it_is(void **state)
{
    (void)state;
    struct trial trial = {.transport = PH_HUB_SHARED_MEMORY,
        .num_workers = 4,
        .depth = 1,
        .is_mean = true,
        .has_own_parameters = true,
        .optimizer = {.is_none = true}};
    run_trial(&trial, NULL);
    trial.transport = PH_HUB_TCP;
    run_trial(&trial, NULL);
}

static void a_secret_protects_both_transports(void **state)
{
    (void)state;
    const char *secret_file = write_secret();
    struct trial trial = {
        .transport = PH_HUB_SHARED_MEMORY, .num_workers = 2, .depth = 1, .optimizer = momentum};
    run_trial(&trial, secret_file);
    trial.transport = PH_HUB_TCP;
    run_trial(&trial, secret_file);
}

static void who_does_not_know_the_secret_stays_outside(void **state)
{
    (void)state;
    struct hub_thread hub;
    const char *wrong = test_write_file("wrong", "another secret, as long as it must be\n");
    assert_int_equal(chmod(wrong, 0600), 0);
    start_hub(&hub, write_secret());
    const struct ph_hub_service service = {.size = sizeof service,
        .name = "trial",
        .nonce = 1,
        .num_workers = 1,
        .optimizers = &momentum,
        .num_optimizers = 1};
    struct ph_hub_options options = {.size = sizeof options, .address = hub.address, .timeout_ms = 5000};
    assert_fails(ph_hub_create_service(&options, &service), PH_ERROR_CONFIG, "secret");
    options.secret_file = wrong;
    assert_fails(ph_hub_create_service(&options, &service), PH_ERROR_PEER, "hub");
    hub_thread_end(&hub);
}

static void a_hub_without_the_secret_is_not_believed(void **state)
{
    (void)state;
    struct hub_thread hub;
    start_hub(&hub, NULL);
    const struct ph_hub_service service = {.size = sizeof service,
        .name = "trial",
        .nonce = 1,
        .num_workers = 1,
        .optimizers = &momentum,
        .num_optimizers = 1};
    const struct ph_hub_options options = {
        .size = sizeof options, .address = hub.address, .timeout_ms = 5000, .secret_file = write_secret()};
    assert_fails(ph_hub_create_service(&options, &service), PH_ERROR_CONFIG, "secret");
    hub_thread_end(&hub);
}

static void beyond_loopback_a_hub_needs_a_secret(void **state)
{
    (void)state;
    struct ph_hub_server *server;
    const struct ph_hub_server_options options = {
        .size = sizeof options, .num_threads = 1, .address = "0.0.0.0:0"};
    assert_fails(ph_hub_server_create(&options, &server), PH_ERROR_CONFIG, "secret");
}

/* What it listens at are all addresses of this host; whoever connects to that gets to the loopback. */
static void beyond_loopback_a_hub_with_a_secret_serves(void **state)
{
    (void)state;
    struct hub_thread hub;
    start_hub_at(&hub, "0.0.0.0:0", write_secret());
    const struct ph_hub_service service = {.size = sizeof service,
        .name = "trial",
        .nonce = 1,
        .num_workers = 1,
        .optimizers = &momentum,
        .num_optimizers = 1};
    struct ph_hub_options options = {.size = sizeof options, .address = hub.address, .timeout_ms = 5000};
    assert_fails(ph_hub_create_service(&options, &service), PH_ERROR_CONFIG, "secret");
    options.secret_file = hub.options.secret_file;
    assert_ok(ph_hub_create_service(&options, &service));
    hub_thread_end(&hub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_memory_brings_the_serial_sums_result),
        cmocka_unit_test(tcp_brings_the_serial_sums_result),
        cmocka_unit_test(two_iterations_may_be_under_way),
        cmocka_unit_test(a_mean_without_an_optimizer_comes_back_as_it_is),
        cmocka_unit_test(a_secret_protects_both_transports),
        cmocka_unit_test(who_does_not_know_the_secret_stays_outside),
        cmocka_unit_test(a_hub_without_the_secret_is_not_believed),
        cmocka_unit_test(beyond_loopback_a_hub_needs_a_secret),
        cmocka_unit_test(beyond_loopback_a_hub_with_a_secret_serves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
