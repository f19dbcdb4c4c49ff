/* A worker of a parameter hub, as a process: trains a small model whose every number is decided by its rank,
 * the iteration and the parameters, and goes on from the hub's checkpoint whenever the hub or another worker
 * has died. So what it ends with tells whether anything was lost, doubled or mixed up on the way.
 *
 *     training_worker address=HOST:PORT rank=R workers=W iterations=N [name=value ...]
 *
 * says on its standard output, a line each: "joined ITERATION", "step ITERATION CONTRIBUTORS", "lost
 * ITERATION WHY" and in the end "done DIGITS", a checksum of the parameters. Ends with the exit code of what
 * it could not overcome. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/sum/checksum.h"
#include "phloem/hub.h"
#include "support/dtype_numbers.h"

enum { NUM_KEYS = 4, MAX_ELEMENTS = 9000 };

static const struct {
    size_t num_elements;
    enum ph_dtype dtype;
} keys_of_model[NUM_KEYS] = {{5000, PH_F32}, {1, PH_F32}, {9000, PH_F16}, {3000, PH_BF16}};

struct worker {
    struct ph_hub_options options;
    struct ph_hub_service service;
    struct ph_hub_optimizer optimizer;
    uint32_t rank, patience_ms, pause_ms;
    uint32_t test_ms; /* > 0: it does not wait, but tests so often */
    uint64_t num_iterations, iteration;
    bool has_child; /* forks one that keeps the hub's descriptors open */
    struct ph_hub_client *client;
};

/* ---- numbers ---- */

/* In [-1/2, 1/2), from a mix of the bits of what it belongs to. */
static float chance(uint64_t key, uint64_t element, uint64_t iteration, uint64_t rank)
{
    uint64_t x = key * 0x9e3779b97f4a7c15u + element * 0xbf58476d1ce4e5b9u + iteration * 0x94d049bb133111ebu +
                 rank * 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 29;
    return (float)(x >> 40) / (float)(1 << 24) - .5F;
}

/* Towards a target of the element's own, with noise of the worker's own. */
static void make_gradient(struct worker *worker, size_t key, uint64_t iteration)
{
    const enum ph_dtype dtype = keys_of_model[key].dtype;
    const void *parameters = ph_hub_parameters(worker->client, key);
    void *gradient = ph_hub_gradient(worker->client, key);
    for (size_t i = 0; i < keys_of_model[key].num_elements; i++) {
        const float distance = dtype_number(parameters, dtype, i) - chance(key, i, 0, UINT32_MAX);
        dtype_number_set(gradient, dtype, i, .1F * distance + .05F * chance(key, i, iteration, worker->rank));
    }
}

static uint64_t sum_of_parameters(const struct worker *worker)
{
    uint64_t sums[NUM_KEYS];
    for (size_t key = 0; key < NUM_KEYS; key++)
        sums[key] = ph__checksum(ph_hub_parameters(worker->client, key),
            keys_of_model[key].num_elements * ph_dtype_size(keys_of_model[key].dtype));
    return ph__checksum(sums, sizeof sums);
}

/* ---- training ---- */

static ph_status join(struct worker *worker)
{
    static char initial[NUM_KEYS][MAX_ELEMENTS * sizeof(float)];
    struct ph_hub_key keys[NUM_KEYS];
    for (size_t key = 0; key < NUM_KEYS; key++) {
        const enum ph_dtype dtype = keys_of_model[key].dtype;
        keys[key] = (struct ph_hub_key){
            .num_elements = keys_of_model[key].num_elements, .dtype = dtype, .initial = initial[key]};
        for (size_t i = 0; i < keys[key].num_elements; i++)
            dtype_number_set(initial[key], dtype, i, chance(key, i, 0, 0));
    }
    PH_TRY(ph_hub_create_service(&worker->options, &worker->service));
    PH_TRY(ph_hub_connect(
        &worker->options, worker->service.name, worker->service.nonce, worker->rank, &worker->client));
    PH_TRY(ph_hub_init(worker->client, keys, NUM_KEYS, &worker->iteration));
    printf("joined %llu\n", (unsigned long long)worker->iteration);
    return PH_OK;
}

/* Rank 0 changes it now and then; in between the hub has to remember it. */
static ph_status set_learning_rate(const struct worker *worker)
{
    if (worker->rank != 0 || worker->iteration % 5 != 0)
        return PH_OK;
    const float rate = worker->optimizer.learning_rate / (1 + .01F * (float)worker->iteration);
    return ph_hub_set_learning_rate(worker->client, 0, rate);
}

static void pause_for(uint32_t duration_ms)
{
    const struct timespec pause = {
        .tv_sec = duration_ms / 1000, .tv_nsec = (long)(duration_ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
}

/* Until a wait would return at once. */
static ph_status test_all(struct worker *worker)
{
    for (size_t key = 0; key < NUM_KEYS; key++) {
        bool is_done;
        PH_TRY(ph_hub_test(worker->client, key, &is_done));
        while (!is_done) {
            pause_for(worker->test_ms);
            PH_TRY(ph_hub_test(worker->client, key, &is_done));
        }
    }
    return PH_OK;
}

static ph_status step(struct worker *worker)
{
    struct ph_hub_client_info info;
    PH_TRY(set_learning_rate(worker));
    for (size_t key = 0; key < NUM_KEYS; key++) {
        make_gradient(worker, key, worker->iteration);
        PH_TRY(ph_hub_pushpull_start(worker->client, key));
    }
    if (worker->test_ms > 0)
        PH_TRY(test_all(worker));
    PH_TRY(ph_hub_wait_all(worker->client));
    worker->iteration++;
    ph_hub_client_describe(worker->client, &info);
    printf("step %llu %u\n", (unsigned long long)worker->iteration, info.num_contributors);
    if (worker->pause_ms > 0)
        pause_for(worker->pause_ms);
    return PH_OK;
}

/* From the checkpoint, or the beginning, to the end. */
static ph_status train(struct worker *worker)
{
    PH_TRY(join(worker));
    if (worker->has_child && fork() == 0) {
        for (int i = STDIN_FILENO; i <= STDERR_FILENO;
             i++) /* all but these, whose other ends wait for the test's end */
            close(i);
        sleep(10);
        _exit(0);
    }
    while (worker->iteration < worker->num_iterations)
        PH_TRY(step(worker));
    const uint64_t sum = sum_of_parameters(worker);
    PH_TRY(ph_hub_leave(worker->client));
    printf("done %016llx\n", (unsigned long long)sum);
    return PH_OK;
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* What a program needs to survive the deaths of others: it connects again, and goes on from where the hub
 * says. */
static ph_status train_through(struct worker *worker)
{
    uint64_t progress_ms = now_ms(), most = 0;
    for (;;) {
        const ph_status status = train(worker);
        ph_hub_client_destroy(worker->client);
        worker->client = NULL;
        if (worker->iteration > most) {
            most = worker->iteration;
            progress_ms = now_ms();
        }
        if (status != PH_ERROR_PEER || now_ms() - progress_ms >= worker->patience_ms)
            return status;
        printf("lost %llu %s\n", (unsigned long long)worker->iteration, ph_error_text());
    }
}

/* ---- options ---- */

static bool set_optimizer(struct worker *worker, const char *value)
{
    static const struct {
        const char *name;
        struct ph_hub_optimizer optimizer;
    } known[] = {
        {"sgd", {.rule.kind = PH_SGD, .learning_rate = .1F}},
        {"momentum", {.rule.kind = PH_MOMENTUM, .learning_rate = .05F, .rule.momentum = .9F, .l2 = 1e-4F}},
        {"nesterov", {.rule.kind = PH_MOMENTUM,
                         .rule.is_nesterov = true,
                         .learning_rate = .05F,
                         .rule.momentum = .9F}},
        {"adam", {.rule.kind = PH_ADAM,
                     .learning_rate = .01F,
                     .rule.beta1 = .9F,
                     .rule.beta2 = .999F,
                     .rule.epsilon = 1e-8F}},
        {"adagrad", {.rule.kind = PH_ADAGRAD, .learning_rate = .05F, .rule.epsilon = 1e-8F}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, value) == 0) {
            worker->optimizer = known[i].optimizer;
            return true;
        }
    }
    return false;
}

static bool set_option(struct worker *worker, const char *name, const char *value)
{
    const struct {
        const char *name;
        uint32_t *number;
    } numbers[] = {{"rank", &worker->rank}, {"workers", &worker->service.num_workers},
        {"chunk_bytes", &worker->service.chunk_bytes}, {"timeout_ms", &worker->options.timeout_ms},
        {"patience_ms", &worker->patience_ms}, {"pause_ms", &worker->pause_ms},
        {"test_ms", &worker->test_ms}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(name, numbers[i].name) == 0) {
            *numbers[i].number = (uint32_t)strtoul(value, NULL, 10);
            return true;
        }
    }
    if (strcmp(name, "optimizer") == 0)
        return set_optimizer(worker, value);
    if (strcmp(name, "address") == 0)
        worker->options.address = value;
    else if (strcmp(name, "secret") == 0)
        worker->options.secret_file = value;
    else if (strcmp(name, "service") == 0)
        worker->service.name = value;
    else if (strcmp(name, "iterations") == 0)
        worker->num_iterations = strtoull(value, NULL, 10);
    else if (strcmp(name, "checkpoint_every") == 0)
        worker->service.checkpoint_every = strtoull(value, NULL, 10);
    else if (strcmp(name, "clip_norm") == 0)
        worker->service.clip_norm = strtof(value, NULL);
    else if (strcmp(name, "shrink") == 0)
        worker->service.on_death = PH_HUB_SHRINK;
    else if (strcmp(name, "tcp") == 0)
        worker->options.transport = PH_HUB_TCP;
    else if (strcmp(name, "child") == 0)
        worker->has_child = true;
    else
        return false;
    return true;
}

static bool parse(struct worker *worker, char *argument)
{
    char *equals = strchr(argument, '=');
    if (equals != NULL)
        *equals = '\0';
    if (equals != NULL && set_option(worker, argument, equals + 1))
        return true;
    fprintf(stderr, "training_worker: no such option: %s\n", argument);
    return false;
}

int main(int argc, char **argv)
{
    struct worker worker = {.service = {.size = sizeof(struct ph_hub_service),
                                .name = "worker",
                                .nonce = 1,
                                .num_optimizers = 1,
                                .chunk_bytes = 4096,
                                .is_mean = true},
        .patience_ms = 30000};
    set_optimizer(&worker, "momentum");
    worker.service.optimizers = &worker.optimizer;
    worker.options.size = sizeof worker.options;
    worker.options.timeout_ms = 20000;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        if (!parse(&worker, argv[i]))
            return 2;
    }
    const ph_status status = train_through(&worker);
    if (status != PH_OK)
        fprintf(stderr, "training_worker %u: %s\n", worker.rank, ph_error_text());
    return ph_status_exit_code(status);
}
