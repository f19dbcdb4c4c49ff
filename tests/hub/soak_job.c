/* See soak_job.h. */
#include "hub/soak_job.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "base/thread/clock.h"
#include "base/thread/cpu.h"
#include "support/shard_oracle.h"

enum { MAX_WORKERS = 4, MAX_KEYS = 5, MAX_ITERATIONS = 12, PATIENCE_S = 120 };

enum fate {
    FATE_LEAVE,   /* all come to the end, and leave */
    FATE_RETURN,  /* one dies, and all come back */
    FATE_ABORT,   /* one dies, and with it the job */
    FATE_SHRINK,  /* one dies, the others come to the end */
    FATE_DESTROY, /* the service is destroyed under them */
    NUM_FATES
};

struct soak_job {
    bool has_several_hubs;
    struct ph_hub_service service;
    struct ph_hub_optimizer optimizers[2];
    struct trial_key keys[MAX_KEYS];
    size_t num_keys;
    uint64_t num_iterations;
    enum fate fate;
    uint32_t victim;  /* a rank */
    uint64_t fate_at; /* after which iteration of the victim it comes */
    bool is_saved;    /* rank 0 asks for a checkpoint in the end */
    bool is_decided;  /* the values are the oracle's */
    struct ph__layout *layout;
    struct shard_oracle *oracle; /* with all versions; workers only read it */
};

struct soak_worker {
    const struct soak_job *job;
    struct ph_hub_options options;
    struct ph_hub_client *client;
    uint32_t rank;
    bool is_done_for; /* the victim: it has met its fate */
    ph_status status;
    char text[512];
    pthread_t thread;
};

/* ---- drawing ---- */

static uint32_t draw(struct ph__rng_sequence *chances, uint32_t limit)
{
    return (uint32_t)ph__rng_below(chances, limit);
}

static struct ph_hub_optimizer draw_optimizer(struct ph__rng_sequence *chances)
{
    static const struct ph_hub_optimizer known[] = {
        {.is_none = true},
        {.rule.kind = PH_SGD, .learning_rate = .1F},
        {.rule.kind = PH_MOMENTUM, .learning_rate = .05F, .rule.momentum = .9F, .l2 = 1e-4F},
        {.rule.kind = PH_MOMENTUM, .rule.is_nesterov = true, .learning_rate = .05F, .rule.momentum = .9F},
        {.rule.kind = PH_ADAGRAD, .learning_rate = .05F, .rule.epsilon = 1e-8F},
        {.rule.kind = PH_ADAM,
            .learning_rate = .01F,
            .rule.beta1 = .9F,
            .rule.beta2 = .999F,
            .rule.epsilon = 1e-8F},
        {.rule.kind = PH_ADAMW,
            .learning_rate = .01F,
            .rule.beta1 = .9F,
            .rule.beta2 = .99F,
            .rule.epsilon = 1e-8F,
            .rule.weight_decay = .1F},
    };
    return known[draw(chances, sizeof known / sizeof *known)];
}

static void draw_keys(struct soak_job *job, struct ph__rng_sequence *chances)
{
    static const enum ph_dtype dtypes[] = {PH_F32, PH_F16, PH_BF16};
    static const uint32_t most[] = {3, 300, 3000, 20000};
    job->num_keys = 1 + draw(chances, MAX_KEYS);
    for (size_t i = 0; i < job->num_keys; i++)
        job->keys[i] = (struct trial_key){.num_elements = 1 + draw(chances, most[draw(chances, 4)]),
            .dtype = dtypes[draw(chances, 3)],
            .optimizer = draw(chances, 2)};
}

static void draw_service(struct soak_job *job, struct ph__rng_sequence *chances)
{
    static const uint32_t chunks[] = {0, 256, 4096, 65536};
    struct ph_hub_service *service = &job->service;
    service->num_workers = 1 + draw(chances, MAX_WORKERS);
    service->mode = draw(chances, 5) < 3 ? PH_HUB_SYNCHRONOUS : PH_HUB_ASYNCHRONOUS + draw(chances, 2);
    service->staleness = service->mode == PH_HUB_BOUNDED ? draw(chances, 4) : 0;
    service->order = draw(chances, 4) == 0 ? PH_HUB_ARRIVAL_ORDER : PH_HUB_WORKER_ORDER;
    service->is_mean = draw(chances, 2) == 0;
    service->clip_norm =
        service->mode == PH_HUB_SYNCHRONOUS && !job->has_several_hubs && draw(chances, 3) == 0 ? .5F : 0;
    service->chunk_bytes = chunks[draw(chances, 4)];
    service->depth = 1 + draw(chances, 2);
    service->checkpoint_every = draw(chances, 2) * (1 + draw(chances, 6));
    for (size_t i = 0; i < 2; i++)
        job->optimizers[i] = draw_optimizer(chances);
    service->optimizers = job->optimizers;
    service->num_optimizers = 2;
}

/* Where a worker that is left behind would wait for one that has left in good order, nobody dies and comes
 * back. */
static void draw_fate(struct soak_job *job, struct ph__rng_sequence *chances)
{
    struct ph_hub_service *service = &job->service;
    const uint32_t drawn = draw(chances, 2 * NUM_FATES);
    job->num_iterations = 2 + draw(chances, MAX_ITERATIONS - 1);
    job->fate_at = draw(chances, (uint32_t)job->num_iterations - 1);
    job->victim = draw(chances, service->num_workers);
    job->fate = drawn < NUM_FATES && service->num_workers > 1 ? (enum fate)drawn : FATE_LEAVE;
    if (job->fate == FATE_RETURN && service->mode != PH_HUB_SYNCHRONOUS)
        job->fate = FATE_LEAVE;
    service->on_death = job->fate == FATE_SHRINK ? PH_HUB_SHRINK : PH_HUB_ABORT;
    job->is_saved = job->fate == FATE_LEAVE && draw(chances, 3) == 0;
}

/* Two numbers have the same sum in any order. */
static bool is_decided(const struct soak_job *job)
{
    const struct ph_hub_service *service = &job->service;
    if (service->num_workers == 1)
        return true;
    return service->mode == PH_HUB_SYNCHRONOUS && job->fate != FATE_SHRINK &&
           (service->order == PH_HUB_WORKER_ORDER || service->num_workers == 2);
}

static void draw_worker(struct soak_worker *worker, const char *address, struct ph__rng_sequence *chances)
{
    static const enum ph_hub_transport transports[] = {PH_HUB_AUTO, PH_HUB_TCP, PH_HUB_SHARED_MEMORY};
    worker->options = (struct ph_hub_options){.size = sizeof(struct ph_hub_options),
        .address = address,
        .transport = transports[draw(chances, worker->job->has_several_hubs ? 2 : 3)],
        .wait = draw(chances, 3) == 0 ? PH_HUB_WAIT_SLEEP : PH_HUB_WAIT_AUTO,
        .timeout_ms = SOAK_TIMEOUT_MS,
        .has_no_thread = draw(chances, 4) == 0,
        .has_own_parameters = draw(chances, 4) == 0};
}

/* ---- the oracle ---- */

static void make_layout(struct soak_job *job)
{
    struct ph__layout_key keys[MAX_KEYS];
    const size_t chunk_bytes = job->service.chunk_bytes > 0 ? job->service.chunk_bytes : 32768;
    for (size_t i = 0; i < job->num_keys; i++)
        keys[i] = (struct ph__layout_key){job->keys[i].num_elements, job->keys[i].dtype};
    trial_require(ph__layout_create(keys, job->num_keys, chunk_bytes, &job->layout) == PH_OK);
}

static void step_all(const struct soak_job *job, uint64_t iteration)
{
    struct oracle_push pushes[MAX_WORKERS];
    for (uint32_t worker = 0; worker < job->service.num_workers; worker++)
        pushes[worker] = (struct oracle_push){worker, iteration};
    for (uint32_t chunk = 0; chunk < job->layout->sizes.num_chunks; chunk++)
        shard_oracle_sum(job->oracle, chunk, pushes, job->service.num_workers);
    for (uint32_t chunk = 0; chunk < job->layout->sizes.num_chunks; chunk++) {
        const uint32_t optimizer = job->keys[job->layout->chunks[chunk].key].optimizer;
        shard_oracle_step(job->oracle, chunk, job->optimizers[optimizer].learning_rate);
    }
}

static void make_oracle(struct soak_job *job, uint64_t seed)
{
    enum ph__isa isa;
    trial_require(ph__cpu_isa(&isa) == PH_OK);
    make_layout(job);
    const struct trial_job trial = {.kernels = ph__kernels_for(isa),
        .keys = job->keys,
        .num_keys = job->num_keys,
        .chunk_bytes = job->layout->chunk_bytes,
        .optimizers = job->optimizers,
        .num_optimizers = 2,
        .is_mean = job->service.is_mean,
        .clip_norm = job->service.clip_norm,
        .seed = seed};
    job->oracle = shard_oracle_create(&trial, job->layout);
    for (uint32_t chunk = 0; chunk < job->layout->sizes.num_chunks; chunk++)
        shard_oracle_assign(job->oracle, chunk);
    for (uint64_t iteration = 1; job->is_decided && iteration <= job->num_iterations; iteration++)
        step_all(job, iteration);
}

/* ---- a worker's numbers ---- */

/* A chunk of the oracle's among the numbers of its key: the hub may cut the key in another way. */
static size_t offset_in_key(const struct soak_job *job, uint32_t chunk)
{
    const struct ph__chunk_place *place = &job->layout->chunks[chunk];
    return place->gradient_offset - job->layout->keys[place->key].gradient_offset;
}

static void fill_key(
    const struct soak_job *job, size_t key, uint32_t rank, uint64_t iteration, void *numbers_out)
{
    const struct ph__key_place *place = &job->layout->keys[key];
    for (uint32_t i = 0; i < place->num_chunks; i++) {
        const uint32_t chunk = place->first_chunk + i;
        shard_oracle_gradient(
            job->oracle, rank, chunk, iteration, (char *)numbers_out + offset_in_key(job, chunk));
    }
}

static ph_status check_key(const struct soak_worker *worker, size_t key, uint64_t iteration)
{
    const struct soak_job *job = worker->job;
    const struct ph__key_place *place = &job->layout->keys[key];
    const char *numbers = ph_hub_parameters(worker->client, key);
    for (uint32_t i = 0; job->is_decided && i < place->num_chunks; i++) {
        const uint32_t chunk = place->first_chunk + i;
        if (!shard_oracle_is(job->oracle, chunk, iteration, numbers + offset_in_key(job, chunk)))
            return ph_fail(PH_ERROR_DATA, "worker %u has wrong parameters of key %zu after iteration %llu",
                worker->rank, key, (unsigned long long)iteration);
    }
    return PH_OK;
}

/* ---- a worker's life ---- */

static ph_status initialise(struct soak_worker *worker, uint64_t *iteration_out)
{
    const struct soak_job *job = worker->job;
    struct ph_hub_key keys[MAX_KEYS];
    char *initial = malloc(job->layout->sizes.gradient_bytes);
    if (initial == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a test");
    for (size_t i = 0; i < job->num_keys; i++) {
        char *numbers = initial + job->layout->keys[i].gradient_offset;
        fill_key(job, i, ORACLE_INITIAL, 0, numbers);
        keys[i] = (struct ph_hub_key){.num_elements = job->keys[i].num_elements,
            .dtype = job->keys[i].dtype,
            .optimizer = job->keys[i].optimizer,
            .initial = worker->rank == 0 ? numbers : NULL};
    }
    const ph_status status = ph_hub_init(worker->client, keys, job->num_keys, iteration_out);
    free(initial);
    return status;
}

static ph_status join(struct soak_worker *worker, uint64_t *iteration_out)
{
    const struct ph_hub_service *service = &worker->job->service;
    PH_TRY(ph_hub_create_service(&worker->options, service));
    PH_TRY(ph_hub_connect(&worker->options, service->name, service->nonce, worker->rank, &worker->client));
    PH_TRY(initialise(worker, iteration_out));
    for (size_t key = 0; key < worker->job->num_keys; key++)
        PH_TRY(check_key(worker, key, *iteration_out));
    return PH_OK;
}

static ph_status push(const struct soak_worker *worker, uint64_t iteration)
{
    for (size_t key = 0; key < worker->job->num_keys; key++) {
        fill_key(worker->job, key, worker->rank, iteration, ph_hub_gradient(worker->client, key));
        PH_TRY(ph_hub_pushpull_start(worker->client, key));
    }
    return PH_OK;
}

static ph_status take(const struct soak_worker *worker, uint64_t iteration)
{
    for (size_t key = 0; key < worker->job->num_keys; key++) {
        PH_TRY(ph_hub_wait(worker->client, key));
        PH_TRY(check_key(worker, key, iteration));
    }
    return PH_OK;
}

/* PH_ERROR_PEER: it is to die. */
static ph_status meet_fate(struct soak_worker *worker, uint64_t iteration)
{
    const struct soak_job *job = worker->job;
    if (job->fate == FATE_LEAVE || worker->is_done_for || worker->rank != job->victim ||
        iteration < job->fate_at)
        return PH_OK;
    worker->is_done_for = true;
    if (job->fate == FATE_DESTROY)
        return ph_hub_destroy_service(&worker->options, job->service.name, job->service.nonce);
    return ph_fail(PH_ERROR_PEER, "worker %u dies, as it should", worker->rank);
}

/* From where the hub says to the end, with as many iterations under way as may be. */
static ph_status live(struct soak_worker *worker)
{
    const struct soak_job *job = worker->job;
    uint64_t done;
    PH_TRY(join(worker, &done));
    for (uint64_t pushed = done; done < job->num_iterations; done++) {
        PH_TRY(meet_fate(worker, done));
        while (pushed < job->num_iterations && pushed < done + job->service.depth)
            PH_TRY(push(worker, ++pushed));
        PH_TRY(take(worker, done + 1));
    }
    if (job->is_saved && worker->rank == 0)
        PH_TRY(ph_hub_checkpoint(worker->client));
    return ph_hub_leave(worker->client);
}

static void *work(void *context)
{
    struct soak_worker *worker = context;
    const struct timespec pause = {.tv_nsec = 2000000};
    const double deadline = ph__clock_seconds() + PATIENCE_S;
    for (;;) {
        worker->status = live(worker);
        snprintf(worker->text, sizeof worker->text, "%s", ph_error_text());
        ph_hub_client_destroy(worker->client);
        worker->client = NULL;
        if (worker->job->fate != FATE_RETURN || worker->status != PH_ERROR_PEER ||
            ph__clock_seconds() > deadline)
            return NULL;
        nanosleep(&pause, NULL);
    }
}

/* ---- a job ---- */

/* Whether it is what the worker's fate may come to. Where all wait for each other, nobody comes to the end
 * without the victim. */
static bool is_as_fated(const struct soak_worker *worker)
{
    const struct soak_job *job = worker->job;
    const bool is_victim = worker->rank == job->victim;
    switch (job->fate) {
    case FATE_ABORT:
        return worker->status == PH_ERROR_PEER ||
               (worker->status == PH_OK && !is_victim && job->service.mode != PH_HUB_SYNCHRONOUS);
    case FATE_SHRINK:
        return worker->status == (is_victim ? PH_ERROR_PEER : PH_OK);
    case FATE_DESTROY:
        return worker->status == PH_ERROR_PEER ||
               (worker->status == PH_OK && !is_victim && job->service.mode != PH_HUB_SYNCHRONOUS);
    default:
        return worker->status == PH_OK;
    }
}

static ph_status tell(const struct soak_worker *worker, uint64_t seed)
{
    static const char *const fates[] = {"leave", "return", "abort", "shrink", "destroy"};
    const struct soak_job *job = worker->job;
    const struct ph_hub_service *service = &job->service;
    const ph_status status = worker->status != PH_OK ? worker->status : PH_ERROR_DATA;
    return ph_fail(status,
        "job %llu (fate %s, %s, mode %d, order %d, depth %u, %u workers, clip %g, chunks of %u, %zu keys, "
        "victim %u at %llu of %llu): worker %u, transport %d: %s",
        (unsigned long long)seed, fates[job->fate], job->has_several_hubs ? "several hubs" : "one hub",
        service->mode, service->order, service->depth, service->num_workers, (double)service->clip_norm,
        service->chunk_bytes, job->num_keys, job->victim, (unsigned long long)job->fate_at,
        (unsigned long long)job->num_iterations, worker->rank, worker->options.transport,
        worker->status != PH_OK ? worker->text : "it ends well, unexpectedly");
}

static ph_status run_workers(struct soak_worker *workers, uint32_t count, uint64_t seed)
{
    ph_status status = PH_OK;
    for (uint32_t rank = 0; rank < count; rank++)
        trial_require(pthread_create(&workers[rank].thread, NULL, work, &workers[rank]) == 0);
    for (uint32_t rank = 0; rank < count; rank++)
        pthread_join(workers[rank].thread, NULL);
    for (uint32_t rank = 0; rank < count && status == PH_OK; rank++)
        status = is_as_fated(&workers[rank]) ? PH_OK : tell(&workers[rank], seed);
    return status;
}

ph_status soak_job_run(const char *address, const char *name, uint64_t seed)
{
    struct ph__rng_sequence chances = {.key = {.seed = seed}};
    struct soak_worker workers[MAX_WORKERS] = {0};
    struct soak_job job = {.has_several_hubs = strchr(address, ',') != NULL,
        .service = {.size = sizeof(struct ph_hub_service), .name = name, .nonce = SOAK_NONCE}};
    draw_service(&job, &chances);
    draw_keys(&job, &chances);
    draw_fate(&job, &chances);
    job.is_decided = is_decided(&job);
    make_oracle(&job, seed);
    for (uint32_t rank = 0; rank < job.service.num_workers; rank++) {
        workers[rank].job = &job;
        workers[rank].rank = rank;
        draw_worker(&workers[rank], address, &chances);
    }
    ph_status status = run_workers(workers, job.service.num_workers, seed);
    if (status == PH_OK && job.fate != FATE_DESTROY)
        status = ph_hub_destroy_service(&workers[0].options, name, SOAK_NONCE);
    shard_oracle_destroy(job.oracle);
    ph__layout_destroy(job.layout);
    return status;
}
