/* See kept_job.h. */
#include "hub/kept_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/dtype_numbers.h"
#include "support/test_support.h"

#define MAX_ELEMENTS 3000

const size_t trial_key_elements[TRIAL_KEYS] = {3000, 1, 1300};
const size_t trial_first_number[TRIAL_KEYS] = {0, 3000, 3001};
const struct ph_hub_optimizer trial_momentum = {
    .rule.kind = PH_MOMENTUM, .learning_rate = .5F, .rule.momentum = .875F};

/* ---- a job ---- */

struct kept_job kept_job_make(struct ph_hub_optimizer optimizer)
{
    return (struct kept_job){.service = {.size = sizeof(struct ph_hub_service),
                                 .name = "job",
                                 .nonce = TRIAL_NONCE,
                                 .num_workers = TRIAL_WORKERS,
                                 .chunk_bytes = 256},
        .optimizer = optimizer,
        .has_left = true};
}

float kept_job_gradient(uint32_t rank, uint64_t iteration, size_t number)
{
    const uint32_t mixed =
        (uint32_t)(rank * 7919 + iteration * 1299709 + number * 15485863 + 12345) * 2654435761u;
    return (float)(int32_t)mixed * 0x1p-31F;
}

float kept_job_learning_rate(const struct kept_job *trial, uint64_t iteration)
{
    const uint64_t num_changes = iteration > 0 ? (iteration - 1) / 7 : 0;
    return trial->optimizer.learning_rate / (float)(1 + num_changes);
}

static void record(const struct ph_hub_client *client, size_t key, enum ph_dtype dtype, float *numbers_out)
{
    for (size_t i = 0; i < trial_key_elements[key]; i++)
        numbers_out[trial_first_number[key] + i] = dtype_number(ph_hub_parameters(client, key), dtype, i);
}

static ph_status push(struct test_worker *worker, uint64_t iteration)
{
    const struct kept_job *trial = worker->context;
    if (worker->rank == 0 && iteration % 7 == 1) /* in between the hub has to remember it */
        PH_TRY(ph_hub_set_learning_rate(worker->client, 0, kept_job_learning_rate(trial, iteration)));
    for (size_t key = 0; key < TRIAL_KEYS; key++) {
        void *gradient = ph_hub_gradient(worker->client, key);
        for (size_t i = 0; i < trial_key_elements[key]; i++)
            dtype_number_set(gradient, trial->dtype, i,
                kept_job_gradient(worker->rank, iteration, trial_first_number[key] + i));
        PH_TRY(ph_hub_pushpull_start(worker->client, key));
    }
    return PH_OK;
}

static ph_status take(struct test_worker *worker, uint64_t iteration)
{
    struct kept_job *trial = worker->context;
    for (size_t key = 0; key < TRIAL_KEYS; key++) {
        PH_TRY(ph_hub_wait(worker->client, key));
        if (worker->rank == 0)
            record(worker->client, key, trial->dtype,
                trial->pulled != NULL ? trial->pulled + iteration * TRIAL_NUMBERS : trial->last);
    }
    return PH_OK;
}

static ph_status join(struct test_worker *worker, uint64_t *iteration_out)
{
    const struct kept_job *trial = worker->context;
    float initial[MAX_ELEMENTS];
    struct ph_hub_key keys[TRIAL_KEYS];
    for (size_t i = 0; i < MAX_ELEMENTS; i++)
        dtype_number_set(initial, trial->dtype, i, (float)(i % 17) * .25F);
    for (size_t key = 0; key < TRIAL_KEYS; key++)
        keys[key] = (struct ph_hub_key){
            .num_elements = trial_key_elements[key], .dtype = trial->dtype, .initial = initial};
    struct ph_hub_service service = trial->service;
    service.optimizers = &trial->optimizer;
    service.num_optimizers = 1;
    PH_TRY(ph_hub_create_service(&trial->hub->options, &service));
    PH_TRY(ph_hub_connect(&trial->hub->options, service.name, TRIAL_NONCE, worker->rank, &worker->client));
    return ph_hub_init(worker->client, keys, TRIAL_KEYS, iteration_out);
}

/* As many iterations under way as the service's depth. */
ph_status kept_job_train(struct test_worker *worker)
{
    struct kept_job *trial = worker->context;
    const uint64_t depth = trial->service.depth > 0 ? trial->service.depth : 1;
    uint64_t done;
    PH_TRY(join(worker, &done));
    if (worker->rank == 0) {
        trial->first_iteration = done;
        for (size_t key = 0; key < TRIAL_KEYS; key++)
            record(worker->client, key, trial->dtype, trial->first);
    }
    for (uint64_t pushed = done; done < trial->stop_at; done++) {
        while (pushed < trial->stop_at && pushed < done + depth)
            PH_TRY(push(worker, ++pushed));
        PH_TRY(take(worker, done + 1));
        if (worker->rank == 0 && done + 1 == trial->save_at)
            PH_TRY(ph_hub_checkpoint(worker->client));
    }
    if (trial->is_saved && worker->rank == 0)
        PH_TRY(ph_hub_checkpoint(worker->client));
    return trial->has_left ? ph_hub_leave(worker->client) : PH_OK;
}

ph_status kept_job_run(struct kept_job *trial)
{
    struct test_worker workers[TRIAL_WORKERS];
    for (uint32_t rank = 0; rank < TRIAL_WORKERS; rank++)
        workers[rank] = (struct test_worker){.rank = rank, .function = kept_job_train, .context = trial};
    return test_workers_run(workers, TRIAL_WORKERS);
}

/* ---- folders and files ---- */

const char *kept_job_path(const char *folder, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

const char *kept_job_file(const char *folder)
{
    return kept_job_path(folder, "job.safetensors");
}

void kept_job_begin_hub(struct hub_thread *hub, const char *folder)
{
    hub_thread_begin(hub, (struct ph_hub_server_options){.checkpoint_folder = folder});
}

struct ph__snapshot *kept_job_read_file(const struct kept_job *trial, const char *path)
{
    struct ph__init_key keys[TRIAL_KEYS];
    struct ph__service_settings settings;
    struct ph__snapshot *snapshot;
    struct ph_hub_service service = trial->service;
    service.optimizers = &trial->optimizer;
    service.num_optimizers = 1;
    ph__service_copy(&service, &(struct ph__hub_share){.num_hubs = 1}, &settings);
    for (size_t key = 0; key < TRIAL_KEYS; key++)
        keys[key] = (struct ph__init_key){trial_key_elements[key], trial->dtype, 0};
    assert_ok(ph__snapshot_create(&settings, keys, TRIAL_KEYS, trial->service.chunk_bytes, &snapshot));
    assert_ok(ph__job_checkpoint_read(path, snapshot));
    return snapshot;
}

uint64_t kept_job_iteration_of_file(const char *folder)
{
    struct ph__job_checkpoint_head head;
    assert_ok(ph__job_checkpoint_read_head(kept_job_file(folder), &head));
    return head.iteration;
}

/* ---- on a hub of its own ---- */

void kept_job_run_until(struct kept_job *trial, const char *folder, uint64_t iteration)
{
    struct hub_thread hub;
    kept_job_begin_hub(&hub, folder);
    hub.options.transport = trial->transport;
    hub.options.has_own_parameters = trial->has_own_parameters;
    trial->hub = &hub;
    trial->stop_at = iteration;
    trial->is_saved = folder != NULL;
    assert_ok(kept_job_run(trial));
    hub_thread_end(&hub);
}
