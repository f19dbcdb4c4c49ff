#include "support/hub_thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/dtype_numbers.h"

static void *serve(void *context)
{
    struct hub_thread *hub = context;
    hub->status = ph_hub_server_run(hub->server, NULL);
    return NULL;
}

void hub_thread_begin(struct hub_thread *hub, struct ph_hub_server_options options)
{
    options.size = sizeof options;
    if (options.num_threads == 0)
        options.num_threads = 2;
    *hub = (struct hub_thread){0};
    assert_ok(ph_hub_server_create(&options, &hub->server));
    snprintf(hub->address, sizeof hub->address, "%s", ph_hub_server_address(hub->server));
    hub->options = (struct ph_hub_options){.size = sizeof(struct ph_hub_options),
        .address = hub->address,
        .secret_file = options.secret_file,
        .timeout_ms = HUB_THREAD_TIMEOUT_MS};
    assert_int_equal(pthread_create(&hub->thread, NULL, serve, hub), 0);
}

void hub_thread_end(struct hub_thread *hub)
{
    ph_hub_server_stop(hub->server);
    pthread_join(hub->thread, NULL);
    ph_hub_server_destroy(hub->server);
    assert_int_equal(hub->status, PH_OK);
}

struct ph_hub_service hub_thread_service(const char *name, uint32_t num_workers)
{
    static const struct ph_hub_optimizer none = {.is_none = true};
    return (struct ph_hub_service){.size = sizeof(struct ph_hub_service),
        .name = name,
        .nonce = HUB_THREAD_NONCE,
        .num_workers = num_workers,
        .optimizers = &none,
        .num_optimizers = 1};
}

/* ---- a worker ---- */

float hub_thread_gradient(uint32_t rank, size_t key, uint64_t iteration, size_t element)
{
    const uint32_t mixed =
        (uint32_t)(rank * 7919 + key * 104729 + iteration * 1299709 + element * 15485863) * 2654435761u;
    return (float)(int32_t)mixed * 0x1p-31F;
}

static ph_status start_key(
    const struct hub_worker *worker, struct ph_hub_client *client, size_t key, uint64_t iteration)
{
    void *gradient = ph_hub_gradient(client, key);
    for (size_t i = 0; i < worker->keys[key].num_elements; i++)
        dtype_number_set(
            gradient, worker->keys[key].dtype, i, hub_thread_gradient(worker->rank, key, iteration, i));
    return ph_hub_pushpull_start(client, key);
}

static ph_status keep_parameters(struct hub_worker *worker, const struct ph_hub_client *client)
{
    for (size_t key = 0; key < worker->num_keys; key++) {
        const size_t size = worker->keys[key].num_elements * ph_dtype_size(worker->keys[key].dtype);
        worker->parameters[key] = malloc(size);
        if (worker->parameters[key] == NULL)
            return ph_fail(PH_ERROR_MEMORY, "no memory for a test");
        memcpy(worker->parameters[key], ph_hub_parameters(client, key), size);
    }
    return PH_OK;
}

static ph_status push_and_pull(struct hub_worker *worker, struct ph_hub_client *client)
{
    PH_TRY(ph_hub_init(client, worker->keys, worker->num_keys, NULL));
    for (uint64_t iteration = 1; iteration <= worker->num_iterations; iteration++) {
        for (size_t key = 0; key < worker->num_keys; key++)
            PH_TRY(start_key(worker, client, key, iteration));
        PH_TRY(ph_hub_wait_all(client));
    }
    return keep_parameters(worker, client);
}

static void *work(void *context)
{
    struct hub_worker *worker = context;
    struct ph_hub_client *client = NULL;
    struct ph_hub_options options = worker->hub->options;
    options.transport = worker->transport;
    worker->status =
        ph_hub_connect(&options, worker->service->name, worker->service->nonce, worker->rank, &client);
    if (worker->status == PH_OK)
        worker->status = push_and_pull(worker, client);
    pthread_barrier_wait(worker->gate);
    pthread_barrier_wait(worker->gate);
    if (worker->status == PH_OK)
        worker->status = ph_hub_leave(client);
    if (worker->status != PH_OK)
        snprintf(worker->error, sizeof worker->error, "%s", ph_error_text());
    ph_hub_client_destroy(client);
    return NULL;
}

/* ---- all workers ---- */

void hub_workers_begin(struct hub_workers *workers, const struct hub_thread *hub,
    const struct ph_hub_service *service, const struct ph_hub_key *keys, size_t num_keys,
    uint32_t num_iterations, enum ph_hub_transport transport)
{
    workers->count = service->num_workers;
    workers->workers = calloc(workers->count, sizeof *workers->workers);
    assert_non_null(workers->workers);
    assert_int_equal(pthread_barrier_init(&workers->gate, NULL, workers->count + 1), 0);
    for (uint32_t rank = 0; rank < workers->count; rank++) {
        struct hub_worker *worker = &workers->workers[rank];
        *worker = (struct hub_worker){.hub = hub,
            .service = service,
            .keys = keys,
            .num_keys = num_keys,
            .rank = rank,
            .num_iterations = num_iterations,
            .transport = transport,
            .parameters = calloc(num_keys, sizeof *worker->parameters),
            .gate = &workers->gate};
        assert_non_null(worker->parameters);
        assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
    }
}

void hub_workers_wait(struct hub_workers *workers)
{
    pthread_barrier_wait(&workers->gate);
}

void hub_workers_end(struct hub_workers *workers)
{
    pthread_barrier_wait(&workers->gate);
    for (uint32_t rank = 0; rank < workers->count; rank++)
        pthread_join(workers->workers[rank].thread, NULL);
    for (uint32_t rank = 0; rank < workers->count; rank++)
        assert_string_equal(workers->workers[rank].error, "");
}

void hub_workers_fini(struct hub_workers *workers)
{
    for (uint32_t rank = 0; rank < workers->count; rank++) {
        for (size_t key = 0; key < workers->workers[rank].num_keys; key++)
            free(workers->workers[rank].parameters[key]);
        free(workers->workers[rank].parameters);
    }
    free(workers->workers);
    pthread_barrier_destroy(&workers->gate);
}
