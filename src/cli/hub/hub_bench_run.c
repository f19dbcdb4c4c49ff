/* Measures a hub, for phloem hub bench. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/statistics.h"
#include "base/sum/random_bytes.h"
#include "base/thread/clock.h"
#include "base/thread/stop.h"
#include "cli/hub/hub_verbs.h"

#define WARM_UP_ROUNDS 3
#define FAREWELL_MS 2000                      /* for an answer of a hub that may have failed */
#define MOST_TOUCHED_BYTES ((size_t)64 << 10) /* of a key that stays in the hub's caches */
#define LINE_ELEMENTS 16                      /* in a cache line */

/* ---- the service ---- */

/* Returns true when a hub may have created the service in spite of the failure: it had no time to answer, or
 * was the first of several. */
static bool may_exist(const struct ph_hub_options *options, ph_status creation)
{
    return ph__is_stop_status(creation) || strchr(options->address, ',') != NULL;
}

ph_status cli_bench_service_create(
    const struct ph_hub_options *options, uint32_t num_workers, struct cli_bench_service *service_out)
{
    static const struct ph_hub_optimizer momentum = {
        .rule.kind = PH_MOMENTUM, .learning_rate = 1e-6F, .rule.momentum = 0.9F};
    struct cli_bench_service bench = {.options = *options, .num_workers = num_workers};
    PH_TRY(ph__random_bytes(&bench.nonce, sizeof bench.nonce));
    snprintf(
        bench.name, sizeof bench.name, "bench-%ld-%016llx", (long)getpid(), (unsigned long long)bench.nonce);
    const struct ph_hub_service service = {.size = sizeof service,
        .name = bench.name,
        .nonce = bench.nonce,
        .num_workers = num_workers,
        .optimizers = &momentum,
        .num_optimizers = 1};
    const ph_status status = ph_hub_create_service(options, &service);
    if (status != PH_OK)
        return may_exist(options, status) ? cli_bench_service_end(&bench, status) : status;
    *service_out = bench;
    return PH_OK;
}

static ph_status tell_may_be_left(
    const struct cli_bench_service *service, ph_status status, const char *reason)
{
    const struct ph_hub_options *options = &service->options;
    const bool has_secret = options->secret_file != NULL;
    return ph_fail(status,
        "%s; service '%s' may be left, since the hub does not answer: run phloem hub destroy %s %s%s%s",
        reason, service->name, options->address, service->name, has_secret ? " --secret-file " : "",
        has_secret ? options->secret_file : "");
}

ph_status cli_bench_service_end(const struct cli_bench_service *service, ph_status measured)
{
    struct ph_hub_options options = service->options;
    char reason[1024];
    snprintf(reason, sizeof reason, "%s", ph_error_text());
    if (measured != PH_OK)
        options.timeout_ms = FAREWELL_MS;
    const ph_status ended = ph_hub_destroy_service(&options, service->name, service->nonce);
    if (measured == PH_OK && ended != PH_OK)
        snprintf(reason, sizeof reason, "%s", ph_error_text());
    const ph_status status = measured != PH_OK ? measured : ended;
    if (ended == PH_ERROR_PEER || ph__is_stop_status(ended))
        return tell_may_be_left(service, status, reason);
    return status != PH_OK ? ph_fail(status, "%s", reason) : PH_OK;
}

/* ---- a worker, in a thread of its own ---- */

struct worker {
    const struct cli_bench_service *service;
    enum ph_hub_transport transport;
    uint32_t rank;
    size_t num_elements, num_rounds;
    size_t num_touched;              /* elements written and read in each round; 0: too many */
    double *seconds;                 /* (num_rounds) of the first worker; else NULL */
    struct cli_bench_result *result; /* of the first worker; else NULL */
    bool was_refused;
    ph_status status;
    char error[1024];
    pthread_t thread;
};

/* Writes a number in each cache line of a small key's gradient, with the same value, as training does between
 * two steps: otherwise nothing but messages would move. */
static void write_gradient(const struct worker *worker, struct ph_hub_client *client)
{
    volatile float *gradient = ph_hub_gradient(client, 0);
    for (size_t i = 0; i < worker->num_touched; i += LINE_ELEMENTS)
        gradient[i] = 1;
}

static void read_parameters(const struct worker *worker, struct ph_hub_client *client)
{
    const volatile float *parameters = ph_hub_parameters(client, 0);
    for (size_t i = 0; i < worker->num_touched; i += LINE_ELEMENTS)
        (void)parameters[i];
}

static ph_status run_round(const struct worker *worker, struct ph_hub_client *client)
{
    if (ph__is_stopped(worker->service->options.stop_signal))
        return ph_fail(ph__stop_status(worker->service->options.stop_signal), "stopped by a signal");
    write_gradient(worker, client);
    PH_TRY(ph_hub_pushpull_start(client, 0));
    PH_TRY(ph_hub_wait(client, 0));
    read_parameters(worker, client);
    return PH_OK;
}

static ph_status run_rounds(struct worker *worker, struct ph_hub_client *client)
{
    float *gradient = ph_hub_gradient(client, 0);
    for (size_t i = 0; i < worker->num_elements; i++)
        gradient[i] = 1;
    for (size_t i = 0; i < WARM_UP_ROUNDS; i++)
        PH_TRY(run_round(worker, client));
    for (size_t i = 0; i < worker->num_rounds; i++) {
        const double before = ph__clock_seconds();
        PH_TRY(run_round(worker, client));
        if (worker->seconds != NULL)
            worker->seconds[i] = ph__clock_seconds() - before;
    }
    return PH_OK;
}

static void describe(const struct ph_hub_client *client, struct cli_bench_result *result)
{
    struct ph_hub_client_info info;
    ph_hub_client_describe(client, &info);
    result->num_chunks = info.num_chunks;
    snprintf(result->why, sizeof result->why, "%s", info.why);
}

static ph_status work(struct worker *worker, struct ph_hub_client *client)
{
    const struct ph_hub_key key = {.num_elements = worker->num_elements, .dtype = PH_F32};
    PH_TRY(ph_hub_init(client, &key, 1, NULL));
    if (worker->result != NULL)
        describe(client, worker->result);
    PH_TRY(run_rounds(worker, client));
    return ph_hub_leave(client);
}

static void *run(void *context)
{
    struct worker *worker = context;
    struct ph_hub_client *client = NULL;
    struct ph_hub_options options = worker->service->options;
    options.transport = worker->transport;
    worker->status =
        ph_hub_connect(&options, worker->service->name, worker->service->nonce, worker->rank, &client);
    worker->was_refused = worker->status != PH_OK;
    if (!worker->was_refused)
        worker->status = work(worker, client);
    if (worker->status != PH_OK)
        snprintf(worker->error, sizeof worker->error, "%s", ph_error_text());
    ph_hub_client_destroy(client);
    return NULL;
}

/* ---- all workers ---- */

static ph_status start_all(struct worker *workers, uint32_t num_workers, uint32_t *num_started_out)
{
    for (*num_started_out = 0; *num_started_out < num_workers; (*num_started_out)++) {
        struct worker *worker = &workers[*num_started_out];
        const int error = pthread_create(&worker->thread, NULL, run, worker);
        if (error != 0)
            return ph_fail(PH_ERROR_MEMORY, "cannot start a thread for a worker: %s", strerror(error));
    }
    return PH_OK;
}

/* Joins the workers. Fails with the failure of a worker that was stopped by a signal, if there is one: it may
 * have caused the others. */
static ph_status join_all(struct worker *workers, uint32_t num_started, struct cli_bench_result *result)
{
    const struct worker *failed = NULL;
    for (uint32_t i = 0; i < num_started; i++) {
        pthread_join(workers[i].thread, NULL);
        result->was_refused |= workers[i].was_refused;
        if (workers[i].status != PH_OK && (failed == NULL || ph__is_stop_status(workers[i].status)))
            failed = &workers[i];
    }
    return failed != NULL ? ph_fail(failed->status, "%s", failed->error) : PH_OK;
}

static ph_status run_all(struct worker *workers, uint32_t num_workers, struct cli_bench_result *result)
{
    uint32_t num_started;
    const ph_status started = start_all(workers, num_workers, &num_started);
    const ph_status joined = join_all(workers, num_started, result);
    return started != PH_OK ? started : joined;
}

/* ---- figures ---- */

/* Computes the figures. Sorts the seconds. */
static void summarize(const struct worker *worker, double *seconds, struct cli_bench_result *result)
{
    const size_t count = worker->num_rounds;
    const double num_workers = worker->service->num_workers;
    ph__sort_numbers(seconds, count);
    result->median_s = ph__sorted_median(seconds, count);
    result->p99_s = seconds[(count * 99 + 99) / 100 - 1];
    result->bytes_per_s = 2 * num_workers * (double)(worker->num_elements * sizeof(float)) / result->median_s;
    result->messages_per_s = 2 * num_workers * result->num_chunks / result->median_s;
}

ph_status cli_bench_measure(const struct cli_bench_service *service, enum ph_hub_transport transport,
    size_t num_elements, size_t num_rounds, struct cli_bench_result *result_out)
{
    struct worker *workers = calloc(service->num_workers, sizeof *workers);
    double *seconds = calloc(num_rounds, sizeof *seconds);
    ph_status status =
        workers == NULL || seconds == NULL ? ph__out_of_memory("%u workers", service->num_workers) : PH_OK;
    *result_out = (struct cli_bench_result){0};
    for (uint32_t i = 0; status == PH_OK && i < service->num_workers; i++)
        workers[i] = (struct worker){.service = service,
            .transport = transport,
            .rank = i,
            .num_elements = num_elements,
            .num_rounds = num_rounds,
            .num_touched = num_elements * sizeof(float) <= MOST_TOUCHED_BYTES ? num_elements : 0,
            .seconds = i == 0 ? seconds : NULL,
            .result = i == 0 ? result_out : NULL};
    if (status == PH_OK)
        status = run_all(workers, service->num_workers, result_out);
    if (status == PH_OK)
        summarize(&workers[0], seconds, result_out);
    free(workers);
    free(seconds);
    return status;
}
