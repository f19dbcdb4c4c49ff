/* A worker of a job at a parameter hub, in plain C, to copy from. The workers fit y = w x + b by least
 * squares, each to rows of its own: they push their gradients, the hub takes the mean and a step of SGD, and
 * all get the same new w and b.
 *
 *   hub_worker                                     two workers and a hub, all in this process
 *   hub_worker ADDRESS RANK NUM_WORKERS NONCE      one worker; start one for each rank from 0 on
 *
 * `phloem hub` is a hub in a process of its own; it prints the ADDRESS where it is ready. NONCE is a number
 * that all workers of this job share, and that no earlier job had. Build:
 *
 *     cc hub_worker.c $(pkg-config --cflags --libs phloem-hub) */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "phloem/hub_server.h"

enum { NUM_INPUTS = 4, NUM_ROWS = 64, NUM_STEPS = 300 };
enum { WEIGHTS, BIAS, NUM_KEYS };

struct worker {
    const char *address;
    uint32_t rank, num_workers;
    uint64_t nonce;
    ph_status status; /* outcome of the worker */
};

/* Returns input i of a row: small numbers, different on each worker. */
static float input(const struct worker *worker, uint32_t row, uint32_t i)
{
    return (float)((7 * row + 13 * i * i + 29 * worker->rank) % 17) / 8.0f - 1.0f;
}

/* Pushes each key as soon as its gradient is computed: it travels while the next one is computed. */
static ph_status take_step(const struct worker *worker, struct ph_hub_client *client)
{
    const float *weights = ph_hub_parameters(client, WEIGHTS), *bias = ph_hub_parameters(client, BIAS);
    float *weight_gradient = ph_hub_gradient(client, WEIGHTS), *bias_gradient = ph_hub_gradient(client, BIAS);
    float errors[NUM_ROWS];
    *bias_gradient = 0;
    for (uint32_t row = 0; row < NUM_ROWS; row++) {
        errors[row] = *bias + 0.5f; /* the truth: w = (1, 2, 3, 4), b = -0.5 */
        for (uint32_t i = 0; i < NUM_INPUTS; i++)
            errors[row] += (weights[i] - (float)(i + 1)) * input(worker, row, i);
        *bias_gradient += errors[row] / NUM_ROWS;
    }
    PH_TRY(ph_hub_pushpull_start(client, BIAS));
    for (uint32_t i = 0; i < NUM_INPUTS; i++) {
        weight_gradient[i] = 0;
        for (uint32_t row = 0; row < NUM_ROWS; row++)
            weight_gradient[i] += errors[row] * input(worker, row, i) / NUM_ROWS;
    }
    PH_TRY(ph_hub_pushpull_start(client, WEIGHTS));
    PH_TRY(ph_hub_wait(client, BIAS));
    return ph_hub_wait(client, WEIGHTS);
}

static ph_status train(const struct worker *worker, struct ph_hub_client *client)
{
    const struct ph_hub_key keys[NUM_KEYS] = {
        [WEIGHTS] = {.num_elements = NUM_INPUTS, .dtype = PH_F32, .initial = (float[NUM_INPUTS]){0.1f, 0.1f}},
        [BIAS] = {.num_elements = 1, .dtype = PH_F32}, /* from zero */
    };
    PH_TRY(ph_hub_init(client, keys, NUM_KEYS, NULL));
    for (int step = 0; step < NUM_STEPS; step++)
        PH_TRY(take_step(worker, client));
    const float *w = ph_hub_parameters(client, WEIGHTS), *b = ph_hub_parameters(client, BIAS);
    printf("rank %u: w = %.3f %.3f %.3f %.3f, b = %.3f\n", worker->rank, (double)w[0], (double)w[1],
        (double)w[2], (double)w[3], (double)*b);
    return ph_hub_leave(client);
}

static ph_status work(const struct worker *worker)
{
    struct ph_hub_client *client;
    const struct ph_hub_options options = {.size = sizeof options, .address = worker->address};
    const struct ph_hub_optimizer optimizer = {.rule = {.kind = PH_SGD}, .learning_rate = 0.5f};
    const struct ph_hub_service service = {.size = sizeof service,
        .name = "least squares",
        .nonce = worker->nonce,
        .num_workers = worker->num_workers,
        .is_mean = true,
        .optimizers = &optimizer,
        .num_optimizers = 1};
    PH_TRY(ph_hub_create_service(&options, &service)); /* the first worker creates it; the others find it */
    PH_TRY(ph_hub_connect(&options, service.name, service.nonce, worker->rank, &client));
    const ph_status status = train(worker, client);
    ph_hub_client_destroy(client);
    if (status != PH_OK || worker->rank != 0)
        return status;
    return ph_hub_destroy_service(&options, service.name, service.nonce); /* when all have left */
}

/* Prints a worker's error in its own thread, which owns the error's text. */
static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    worker->status = work(worker);
    if (worker->status != PH_OK)
        fprintf(stderr, "hub_worker: rank %u: %s\n", worker->rank, ph_error_text());
    return NULL;
}

static void *run_server(void *server)
{
    if (ph_hub_server_run(server, NULL) != PH_OK)
        fprintf(stderr, "hub_worker: the hub: %s\n", ph_error_text());
    return NULL;
}

static pthread_t start(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, argument) == 0)
        return thread;
    fprintf(stderr, "hub_worker: cannot start a thread\n");
    exit(1);
}

static int run_all_here(void)
{
    struct ph_hub_server *server;
    const ph_status status = ph_hub_server_create(
        &(struct ph_hub_server_options){.size = sizeof(struct ph_hub_server_options)}, &server);
    if (status != PH_OK) {
        fprintf(stderr, "hub_worker: cannot start a hub: %s\n", ph_error_text());
        return ph_status_exit_code(status);
    }
    const char *address = ph_hub_server_address(server);
    struct worker first = {.address = address, .rank = 0, .num_workers = 2, .nonce = 1}, second = first;
    second.rank = 1;
    const pthread_t serving = start(run_server, server), working = start(run_worker, &second);
    run_worker(&first);
    pthread_join(working, NULL);
    ph_hub_server_stop(server);
    pthread_join(serving, NULL);
    ph_hub_server_destroy(server);
    return ph_status_exit_code(first.status != PH_OK ? first.status : second.status);
}

static bool read_number(const char *text, uint64_t limit, uint64_t *number_out)
{
    char *end;
    errno = 0;
    *number_out = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *number_out <= limit;
}

int main(int argc, char **argv)
{
    uint64_t rank, num_workers, nonce;
    if (argc == 1)
        return run_all_here();
    if (argc != 5 || !read_number(argv[2], UINT32_MAX, &rank) ||
        !read_number(argv[3], UINT32_MAX, &num_workers) || !read_number(argv[4], UINT64_MAX, &nonce)) {
        fprintf(stderr, "usage: hub_worker [ADDRESS RANK NUM_WORKERS NONCE]\n");
        return 2;
    }
    struct worker worker = {
        .address = argv[1], .rank = (uint32_t)rank, .num_workers = (uint32_t)num_workers, .nonce = nonce};
    run_worker(&worker);
    return ph_status_exit_code(worker.status);
}
