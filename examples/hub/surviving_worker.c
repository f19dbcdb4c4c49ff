/* A worker that survives the deaths of its hub and of the job's other workers, in plain C, to copy from: when
 * the hub or another worker has died it connects again, and goes on from the hub's last checkpoint. The
 * workers shift numbers towards targets of their own; the hub steps with the mean of their gradients.
 *
 *   surviving_worker ADDRESS RANK NUM_WORKERS NONCE      one worker; start one for each rank from 0 on
 *
 * The hub needs a folder to keep checkpoints in, and a fixed ADDRESS:
 *
 *     phloem hub --address 127.0.0.1:4711 --set hub.checkpoint_folder=checkpoints
 *
 * Restarting dead hubs and workers is up to you, but do not restart rank 0 when it has finished: it would
 * begin anew. hub_worker.c explains more of a worker. Build:
 *
 *     cc surviving_worker.c $(pkg-config --cflags --libs phloem-hub) */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "phloem/hub.h"

enum {
    NUM_ELEMENTS = 1000,
    CHECKPOINT_EVERY = 20,
    MAX_TRIES = 20, /* in a row without a finished step */
    FIRST_PAUSE_MS = 100,
    LONGEST_PAUSE_MS = 10000
};

static const uint64_t num_iterations = 1000;
static const char service_name[] = "survivors";

struct worker {
    const char *address;
    uint64_t rank, num_workers, nonce; /* rank and num_workers are small */
};

static ph_status connect_and_init(
    const struct worker *worker, struct ph_hub_client **client_out, uint64_t *iteration_out)
{
    const struct ph_hub_options options = {.size = sizeof options, .address = worker->address};
    const struct ph_hub_optimizer optimizer = {
        .rule = {.kind = PH_MOMENTUM, .momentum = 0.9}, .learning_rate = 0.01f};
    const struct ph_hub_service service = {.size = sizeof service,
        .name = service_name,
        .nonce = worker->nonce,
        .num_workers = (uint32_t)worker->num_workers,
        .is_mean = true,
        .checkpoint_every = CHECKPOINT_EVERY,
        .optimizers = &optimizer,
        .num_optimizers = 1};
    const struct ph_hub_key key = {.num_elements = NUM_ELEMENTS, .dtype = PH_F32}; /* from zero */
    if (worker->rank == 0) /* the others find no service before that, nor after the end of the job */
        PH_TRY(ph_hub_create_service(&options, &service));
    PH_TRY(ph_hub_connect(&options, service.name, service.nonce, (uint32_t)worker->rank, client_out));
    PH_TRY(ph_hub_init(*client_out, &key, 1, iteration_out));
    printf("rank %u begins at %llu\n", (unsigned int)worker->rank, (unsigned long long)*iteration_out);
    return PH_OK;
}

static ph_status take_step(const struct worker *worker, struct ph_hub_client *client)
{
    const struct timespec pause = {.tv_nsec = 2000000}; /* instead of a model's computation */
    const float *parameters = ph_hub_parameters(client, 0);
    float *gradient = ph_hub_gradient(client, 0);
    for (uint32_t i = 0; i < NUM_ELEMENTS; i++)
        gradient[i] = parameters[i] - (float)(i % 10 + worker->rank);
    nanosleep(&pause, NULL);
    PH_TRY(ph_hub_pushpull_start(client, 0));
    return ph_hub_wait(client, 0);
}

/* Prints the result, then leaves. The result survives should the hub die now. The service ends, with its
 * checkpoint, when all workers have left. */
static void finish(const struct worker *worker, struct ph_hub_client *client)
{
    const struct ph_hub_options options = {.size = sizeof options, .address = worker->address};
    double sum = 0;
    for (uint32_t i = 0; i < NUM_ELEMENTS; i++)
        sum += (double)((const float *)ph_hub_parameters(client, 0))[i];
    printf("rank %u ends with a sum of %a\n", (unsigned int)worker->rank, sum);
    ph_status status = ph_hub_leave(client);
    if (status == PH_OK && worker->rank == 0)
        status = ph_hub_destroy_service(&options, service_name, worker->nonce);
    if (status != PH_OK)
        fprintf(stderr, "surviving_worker: rank %u: %s\n", (unsigned int)worker->rank, ph_error_text());
}

/* Prints the error, and pauses, longer each time. Some errors outlast any number of tries: the name is not
 * registered, the secret is another one, the rank is taken, or the service is gone. */
static bool may_try_again(const struct worker *worker, int num_tries)
{
    long pause_ms = FIRST_PAUSE_MS;
    fprintf(stderr, "surviving_worker: rank %u: %s\n", (unsigned int)worker->rank, ph_error_text());
    if (num_tries >= MAX_TRIES)
        return false;
    for (int i = 1; i < num_tries && pause_ms < LONGEST_PAUSE_MS; i++)
        pause_ms *= 2;
    if (pause_ms > LONGEST_PAUSE_MS)
        pause_ms = LONGEST_PAUSE_MS;
    const struct timespec pause = {.tv_sec = pause_ms / 1000, .tv_nsec = pause_ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
    return true;
}

static ph_status work(const struct worker *worker)
{
    struct ph_hub_client *client;
    uint64_t iteration;
    ph_status status;
    int num_tries = 0;
    do {
        client = NULL; /* no client to destroy after an error of connect */
        num_tries++;
        status = connect_and_init(worker, &client, &iteration);
        while (status == PH_OK && iteration < num_iterations) {
            status = take_step(worker, client);
            iteration++;
            num_tries = status == PH_OK ? 0 : num_tries;
        }
        if (status == PH_OK)
            finish(worker, client);
        ph_hub_client_destroy(client);
    } while (status == PH_ERROR_PEER && may_try_again(worker, num_tries));
    return status;
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
    struct worker worker = {.address = argc > 1 ? argv[1] : NULL};
    if (argc != 5 || !read_number(argv[2], PH_HUB_MAX_WORKERS, &worker.rank) ||
        !read_number(argv[3], PH_HUB_MAX_WORKERS, &worker.num_workers) ||
        !read_number(argv[4], UINT64_MAX, &worker.nonce)) {
        fprintf(stderr, "usage: surviving_worker ADDRESS RANK NUM_WORKERS NONCE\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    const ph_status status = work(&worker);
    if (status != PH_OK && status != PH_ERROR_PEER) /* PH_ERROR_PEER was printed before */
        fprintf(stderr, "surviving_worker: rank %u: %s\n", (unsigned int)worker.rank, ph_error_text());
    return ph_status_exit_code(status);
}
