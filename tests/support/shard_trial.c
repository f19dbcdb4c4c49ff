#include "support/shard_trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/link/shared_link.h"

static bool is_synchronous(const struct shard_trial *trial)
{
    return trial->options.mode == PH_HUB_SYNCHRONOUS;
}

static bool has_payloads(const struct shard_trial *trial, uint32_t worker)
{
    return trial->options.transports[worker] == TRIAL_PAYLOADS;
}

/* ---- messages at a shard ---- */

static void note_push(struct trial_link *link, const struct ph__message *message)
{
    struct shard_trial *trial = link->trial;
    struct trial_chunk *chunk = &trial->chunks[message->chunk];
    shard_trial_request(trial, link->worker, message->chunk)->delivered = message->iteration;
    chunk->pushes = realloc(chunk->pushes, (chunk->num_pushes + 1) * sizeof *chunk->pushes);
    trial_require(chunk->pushes != NULL);
    chunk->pushes[chunk->num_pushes++] =
        (struct oracle_push){.worker = link->worker, .iteration = message->iteration};
    const uint32_t optimizer = trial->optimizer_of_key[trial->layout->chunks[message->chunk].key];
    if (link->worker == 0)
        chunk->learning_rates[message->iteration % PH_HUB_MAX_DEPTH] =
            trial->learning_rates[link->shard][optimizer];
}

static ph_status hub_place(
    void *context, const struct ph__message *message, size_t payload_bytes, void **memory_out)
{
    const struct trial_link *link = context;
    return link->hub.place(link->hub.context, message, payload_bytes, memory_out);
}

static ph_status hub_arrived(void *context, const struct ph__message *message)
{
    struct trial_link *link = context;
    const bool is_push = message->kind == PH_HUB_PUSH || message->kind == PH_HUB_PUSHPULL;
    if (is_push && !link->trial->options.is_lawless)
        note_push(link, message);
    if (message->kind == PH_HUB_LEARNING_RATE)
        memcpy(&link->trial->learning_rates[link->shard][message->count], &message->chunk, sizeof(float));
    return link->hub.arrived(link->hub.context, message);
}

static void hub_sent(void *context, const struct ph__message *message)
{
    const struct trial_link *link = context;
    link->hub.sent(link->hub.context, message);
}

static void wake_others(void *context)
{
    ((struct trial_link *)context)->trial->num_wakes++;
}

static void copied(void *context)
{
    ((struct trial_link *)context)->trial->num_copied++;
}

static void reached(void *context)
{
    ((struct trial_link *)context)->trial->num_reached++;
}

static void worker_failed(void *context, uint32_t worker)
{
    struct shard_trial *trial = ((struct trial_link *)context)->trial;
    trial->num_failures[worker]++;
    snprintf(trial->failure, sizeof trial->failure, "%s", ph_error_text());
}

/* ---- messages at a worker ---- */

/* Returns the place where the worker reads the parameters of this iteration. */
static const char *value_at(
    const struct shard_trial *trial, uint32_t worker, uint32_t chunk, uint64_t iteration)
{
    const struct ph__job_memory *memory = &trial->memory;
    const char *region = trial->options.transports[worker] == TRIAL_OWN
                             ? memory->workers[worker].parameters[iteration % memory->depth]
                             : memory->results[iteration % memory->num_versions];
    return region + trial->layout->chunks[chunk].gradient_offset;
}

/* Returns the version of the parameters, one of those that they may have. */
static uint64_t version_of(const struct shard_trial *trial, uint32_t worker, uint32_t chunk,
    const struct ph__message *message, bool is_pull, const void *numbers)
{
    const struct trial_request *request = shard_trial_request(trial, worker, chunk);
    uint64_t version = message->iteration, last = version;
    if (!is_synchronous(trial)) {
        version = version > 0 ? request->version_of_push[version % PH_HUB_MAX_DEPTH] : 0;
        last = trial->options.mode == PH_HUB_BOUNDED || is_pull ? shard_oracle_version(trial->oracle, chunk)
                                                                : version;
    }
    while (version <= last && !(shard_oracle_is(trial->oracle, chunk, version, numbers) &&
                                  shard_oracle_contributors(trial->oracle, chunk, version) == message->count))
        version++;
    trial_require(version <= last);
    return version;
}

static void take_value(struct shard_trial *trial, uint32_t worker, const struct ph__message *message,
    bool is_pull, const void *payload)
{
    struct trial_request *request = shard_trial_request(trial, worker, message->chunk);
    const void *numbers =
        payload != NULL ? payload : value_at(trial, worker, message->chunk, message->iteration);
    request->value = message->iteration;
    request->value_version = version_of(trial, worker, message->chunk, message, is_pull, numbers);
    request->has_value = payload == NULL;
    trial->num_values++;
}

static void spoil_gradient(struct shard_trial *trial, uint32_t worker, uint32_t chunk, uint64_t iteration)
{
    const struct ph__chunk_place *place = &trial->layout->chunks[chunk];
    if (!has_payloads(trial, worker))
        memset(
            trial->memory.workers[worker].gradients[iteration % trial->memory.depth] + place->gradient_offset,
            0xff, place->gradient_bytes);
}

/* Checks that no worker gets further ahead of the slowest than the staleness allows. */
static void check_staleness(const struct shard_trial *trial, uint32_t chunk, uint64_t iteration)
{
    uint64_t slowest = UINT64_MAX;
    for (uint32_t worker = 0; worker < trial->options.num_workers; worker++) {
        const struct trial_request *request = shard_trial_request(trial, worker, chunk);
        if (trial->links[trial->core_of_chunk[chunk]][worker].is_live && request->used < slowest)
            slowest = request->used;
    }
    trial_require(iteration <= slowest + trial->options.staleness);
}

static void take_push_answer(
    struct shard_trial *trial, uint32_t worker, const struct ph__message *message, bool is_value)
{
    struct trial_request *request = shard_trial_request(trial, worker, message->chunk);
    const uint8_t kind = request->kinds[message->iteration % PH_HUB_MAX_DEPTH];
    request->answered++;
    trial_require(message->iteration == request->answered && request->answered <= request->used);
    trial_require(kind == (is_value ? PH_HUB_PUSHPULL : PH_HUB_PUSH));
    if (trial->options.mode == PH_HUB_BOUNDED)
        check_staleness(trial, message->chunk, message->iteration);
    spoil_gradient(trial, worker, message->chunk, message->iteration);
}

static void take_reply(
    struct shard_trial *trial, uint32_t worker, const struct ph__message *message, const void *payload)
{
    const bool is_value = message->kind == PH_HUB_VALUE;
    trial->num_replies++;
    if (trial->options.is_lawless)
        return;
    trial_require(message->chunk < trial->layout->sizes.num_chunks);
    trial_require(is_value || message->kind == PH_HUB_TAKEN);
    struct trial_request *request = shard_trial_request(trial, worker, message->chunk);
    const bool is_assignment = !is_value && message->iteration == 0;
    const bool is_push =
        !is_assignment && message->iteration == request->answered + 1 &&
        (!is_value || request->kinds[message->iteration % PH_HUB_MAX_DEPTH] == PH_HUB_PUSHPULL);
    if (is_assignment)
        spoil_gradient(trial, worker, message->chunk, 0);
    else if (is_push)
        take_push_answer(trial, worker, message, is_value);
    else
        trial_require(is_value && request->is_pulling && message->iteration == request->pulled &&
                      request->answered >= request->pulled);
    if (is_value)
        take_value(trial, worker, message, !is_push, payload);
    if (!is_push && is_value)
        request->is_pulling = false;
}

static ph_status worker_place(
    void *context, const struct ph__message *message, size_t payload_bytes, void **memory_out)
{
    (void)context, (void)message;
    trial_require(payload_bytes == 0);
    *memory_out = NULL;
    return PH_OK;
}

static ph_status worker_arrived(void *context, const struct ph__message *message)
{
    const struct trial_link *link = context;
    take_reply(link->trial, link->worker, message, NULL);
    return PH_OK;
}

static void worker_sent(void *context, const struct ph__message *message)
{
    (void)context, (void)message;
}

static void worker_received(
    void *context, const struct ph__message *message, const void *payload, size_t payload_bytes)
{
    const struct trial_link *link = context;
    const bool is_value = message->kind == PH_HUB_VALUE;
    trial_require(
        payload_bytes == (is_value ? link->trial->layout->chunks[message->chunk].gradient_bytes : 0));
    take_reply(link->trial, link->worker, message, payload);
}

/* ---- actions of workers ---- */

void shard_trial_send(struct shard_trial *trial, uint16_t shard, uint32_t worker,
    const struct ph__message *message, size_t payload_bytes)
{
    struct trial_link *link = &trial->links[shard][worker];
    size_t num_moved;
    if (has_payloads(trial, worker)) {
        void *payload = calloc(1, payload_bytes + 1);
        trial_require(payload != NULL);
        if (!trial->options.is_lawless && payload_bytes > 0)
            shard_oracle_gradient(trial->oracle, message->kind == PH_HUB_ASSIGN ? ORACLE_INITIAL : worker,
                message->chunk, message->iteration, payload);
        payload_link_put(link->hub_link, message, payload, payload_bytes, true);
        free(payload);
        return;
    }
    trial_require(ph__link_send(link->worker_link, message, NULL, 0) == PH_OK);
    trial_require(ph__link_progress(link->worker_link, 0, &num_moved) == PH_OK);
}

/* Sends a message about a chunk, with its numbers in their place. */
static void send_about(struct shard_trial *trial, uint32_t worker, uint32_t chunk,
    enum ph__hub_message_kind kind, uint64_t iteration)
{
    const struct ph__message message = {.kind = (uint8_t)kind, .chunk = chunk, .iteration = iteration};
    const struct ph__chunk_place *place = &trial->layout->chunks[chunk];
    const bool has_numbers = kind != PH_HUB_PULL;
    if (has_numbers && !has_payloads(trial, worker))
        shard_oracle_gradient(trial->oracle, kind == PH_HUB_ASSIGN ? ORACLE_INITIAL : worker, chunk,
            iteration,
            trial->memory.workers[worker].gradients[iteration % trial->memory.depth] +
                place->gradient_offset);
    shard_trial_send(
        trial, trial->core_of_chunk[chunk], worker, &message, has_numbers ? place->gradient_bytes : 0);
}

bool shard_trial_may_push(const struct shard_trial *trial, uint32_t worker, uint32_t chunk)
{
    const struct trial_request *request = shard_trial_request(trial, worker, chunk);
    return trial->links[trial->core_of_chunk[chunk]][worker].is_live &&
           request->pushed < request->answered + trial->options.depth &&
           (!request->is_pulling || request->pushed + 1 < request->pulled + trial->options.depth);
}

void shard_trial_push(
    struct shard_trial *trial, uint32_t worker, uint32_t chunk, enum ph__hub_message_kind kind)
{
    struct trial_request *request = shard_trial_request(trial, worker, chunk);
    request->pushed++;
    if (request->has_value && request->value + trial->options.depth >= request->pushed)
        trial_require(shard_oracle_is(
            trial->oracle, chunk, request->value_version, value_at(trial, worker, chunk, request->value)));
    request->kinds[request->pushed % PH_HUB_MAX_DEPTH] = (uint8_t)kind;
    send_about(trial, worker, chunk, kind, request->pushed);
}

void shard_trial_pull(struct shard_trial *trial, uint32_t worker, uint32_t chunk)
{
    struct trial_request *request = shard_trial_request(trial, worker, chunk);
    trial_require(!request->is_pulling);
    request->is_pulling = true;
    request->pulled = request->pushed;
    send_about(trial, worker, chunk, PH_HUB_PULL, request->pushed);
}

void shard_trial_assign(struct shard_trial *trial, uint32_t chunk)
{
    shard_oracle_assign(trial->oracle, chunk);
    send_about(trial, 0, chunk, PH_HUB_ASSIGN, 0);
}

void shard_trial_set_learning_rate(struct shard_trial *trial, uint32_t optimizer, float rate)
{
    struct ph__message message = {.kind = PH_HUB_LEARNING_RATE, .count = (uint16_t)optimizer};
    memcpy(&message.chunk, &rate, sizeof rate);
    for (uint16_t shard = 0; shard < trial->options.num_shards; shard++) {
        if (trial->links[shard][0].is_live)
            shard_trial_send(trial, shard, 0, &message, 0);
    }
}

/* ---- creation ---- */

static void *zeroed(size_t size)
{
    const size_t rounded = (size + 63) / 64 * 64;
    void *memory = aligned_alloc(64, rounded > 0 ? rounded : 64);
    trial_require(memory != NULL);
    memset(memory, 0, rounded);
    return memory;
}

static bool is_all_fp32(const struct shard_trial *trial)
{
    for (size_t i = 0; i < trial->options.job.num_keys; i++) {
        if (trial->options.job.keys[i].dtype != PH_F32)
            return false;
    }
    return true;
}

static uint32_t choose_versions(const struct shard_trial_options *options)
{
    bool sends = false;
    for (uint32_t worker = 0; worker < options->num_workers; worker++)
        sends |= options->transports[worker] == TRIAL_PAYLOADS;
    if (options->num_versions > 0)
        return options->num_versions;
    return options->depth > 1 || sends ? 2 : 1;
}

static void make_memory(struct shard_trial *trial)
{
    const struct shard_trial_options *options = &trial->options;
    const struct ph__layout_sizes *sizes = &trial->layout->sizes;
    struct ph__job_memory *memory = &trial->memory;
    *memory = (struct ph__job_memory){.layout = trial->layout,
        .gradient_bytes = sizes->gradient_bytes,
        .num_workers = options->num_workers,
        .depth = options->depth,
        .num_versions = choose_versions(options),
        .m = zeroed(sizes->num_weights * sizeof(float)),
        .s = zeroed(sizes->num_weights * sizeof(float)),
        .workers = zeroed(options->num_workers * sizeof *memory->workers),
        .chunks = zeroed(sizes->num_chunks * sizeof *memory->chunks),
        .requests = zeroed(sizes->num_chunks * options->num_workers * sizeof *memory->requests)};
    for (uint32_t i = 0; i < memory->num_versions; i++) {
        memory->weights[i] = zeroed(sizes->num_weights * sizeof(float));
        memory->results[i] = is_all_fp32(trial) ? (char *)memory->weights[i] : zeroed(sizes->gradient_bytes);
    }
    for (uint32_t i = 0; i < memory->depth; i++) {
        memory->sums[i] = zeroed(sizes->num_weights * sizeof(float));
        for (uint32_t worker = 0; worker < options->num_workers; worker++) {
            memory->workers[worker].gradients[i] = zeroed(sizes->gradient_bytes);
            if (options->transports[worker] == TRIAL_OWN)
                memory->workers[worker].parameters[i] = zeroed(sizes->gradient_bytes);
        }
    }
}

static void make_layout(struct shard_trial *trial)
{
    const struct trial_job *job = &trial->options.job;
    struct ph__layout_key *keys = zeroed(job->num_keys * sizeof *keys);
    trial->optimizer_of_key = zeroed(job->num_keys * sizeof *trial->optimizer_of_key);
    for (size_t i = 0; i < job->num_keys; i++) {
        keys[i] =
            (struct ph__layout_key){.num_elements = job->keys[i].num_elements, .dtype = job->keys[i].dtype};
        trial->optimizer_of_key[i] = job->keys[i].optimizer;
    }
    trial_require(ph__layout_create(keys, job->num_keys, job->chunk_bytes, &trial->layout) == PH_OK);
    free(keys);
    trial->core_of_chunk = zeroed(trial->layout->sizes.num_chunks * sizeof *trial->core_of_chunk);
    for (size_t i = 0; i < trial->layout->sizes.num_chunks; i++)
        trial->core_of_chunk[i] = (uint16_t)(i % trial->options.num_shards);
    trial_require(ph__chunk_lists_init(&trial->chunks_of_core, trial->core_of_chunk,
                      trial->layout->sizes.num_chunks, trial->options.num_shards) == PH_OK);
}

static struct ph__shard_job describe_job(struct shard_trial *trial)
{
    const struct shard_trial_options *options = &trial->options;
    return (struct ph__shard_job){.kernels = options->job.kernels,
        .memory = &trial->memory,
        .core_of_chunk = trial->core_of_chunk,
        .chunks_of_core = &trial->chunks_of_core,
        .service = {.mode = options->mode,
            .order = options->order,
            .num_workers = options->num_workers,
            .depth = options->depth,
            .staleness = options->staleness,
            .is_mean = options->job.is_mean,
            .clip_norm = options->job.clip_norm,
            .optimizers = options->job.optimizers,
            .num_optimizers = options->job.num_optimizers},
        .is_non_temporal = options->is_non_temporal,
        .optimizer_of_key = trial->optimizer_of_key};
}

static size_t ring_capacity(const struct shard_trial *trial)
{
    size_t capacity = 4;
    while (capacity < trial->layout->sizes.num_chunks * 8 + 64)
        capacity *= 2;
    return trial->options.ring_capacity > 0 ? trial->options.ring_capacity : capacity;
}

static void make_shared_link(struct trial_link *link, struct ph__link_owner owner)
{
    struct ph__shared_link_options options = {
        .capacity = ring_capacity(link->trial), .is_hub = true, .doorbell = -1, .owner = owner};
    link->ring = options.memory = zeroed(ph__shared_link_bytes(options.capacity));
    trial_require(ph__shared_link_create(&options, &link->hub_link) == PH_OK);
    options.is_hub = false;
    options.owner = (struct ph__link_owner){
        .context = link, .place = worker_place, .arrived = worker_arrived, .sent = worker_sent};
    trial_require(ph__shared_link_create(&options, &link->worker_link) == PH_OK);
}

static void make_link(struct shard_trial *trial, uint16_t shard, uint32_t worker)
{
    struct trial_link *link = &trial->links[shard][worker];
    const struct ph__link_owner owner = {
        .context = link, .place = hub_place, .arrived = hub_arrived, .sent = hub_sent};
    *link = (struct trial_link){.trial = trial, .worker = worker, .shard = shard, .is_live = true};
    link->hub = ph__shard_link_owner(trial->shards[shard], worker);
    if (has_payloads(trial, worker))
        link->hub_link = payload_link_create(owner, worker_received, link);
    else
        make_shared_link(link, owner);
    ph__shard_attach(trial->shards[shard], worker, link->hub_link, has_payloads(trial, worker));
}

static void make_shard(struct shard_trial *trial, uint16_t shard)
{
    const struct ph__shard_callbacks callbacks = {.context = &trial->links[shard][0],
        .wake_others = wake_others,
        .worker_failed = worker_failed,
        .copied = copied,
        .reached = reached};
    trial_require(ph__shard_create(&trial->job, shard, &callbacks, &trial->shards[shard]) == PH_OK);
    for (uint32_t worker = 0; worker < trial->options.num_workers; worker++)
        make_link(trial, shard, worker);
    for (uint32_t i = 0; i < trial->options.job.num_optimizers; i++)
        trial->learning_rates[shard][i] = trial->options.job.optimizers[i].learning_rate;
}

struct shard_trial *shard_trial_create(const struct shard_trial_options *options)
{
    struct shard_trial *trial = zeroed(sizeof *trial);
    trial->options = *options;
    make_layout(trial);
    make_memory(trial);
    trial->oracle = shard_oracle_create(&options->job, trial->layout);
    trial->requests =
        zeroed(trial->layout->sizes.num_chunks * options->num_workers * sizeof *trial->requests);
    trial->chunks = zeroed(trial->layout->sizes.num_chunks * sizeof *trial->chunks);
    trial->job = describe_job(trial);
    for (uint16_t shard = 0; shard < options->num_shards; shard++)
        make_shard(trial, shard);
    return trial;
}

static void free_memory(struct ph__job_memory *memory)
{
    for (uint32_t i = 0; i < PH_HUB_MAX_DEPTH; i++) {
        if (memory->results[i] != (char *)memory->weights[i])
            free(memory->results[i]);
        free(memory->weights[i]);
        free(memory->sums[i]);
        for (uint32_t worker = 0; worker < memory->num_workers; worker++) {
            free(memory->workers[worker].gradients[i]);
            free(memory->workers[worker].parameters[i]);
        }
    }
    free(memory->m);
    free(memory->s);
    free(memory->workers);
    free(memory->chunks);
    free(memory->requests);
}

void shard_trial_destroy(struct shard_trial *trial)
{
    for (uint16_t shard = 0; shard < trial->options.num_shards; shard++) {
        ph__shard_destroy(trial->shards[shard]);
        for (uint32_t worker = 0; worker < trial->options.num_workers; worker++) {
            ph__link_destroy(trial->links[shard][worker].worker_link);
            free(trial->links[shard][worker].ring);
        }
    }
    for (size_t i = 0; i < trial->layout->sizes.num_chunks; i++)
        free(trial->chunks[i].pushes);
    shard_oracle_destroy(trial->oracle);
    free_memory(&trial->memory);
    free(trial->chunks);
    free(trial->requests);
    free(trial->core_of_chunk);
    ph__chunk_lists_fini(&trial->chunks_of_core);
    free(trial->optimizer_of_key);
    ph__layout_destroy(trial->layout);
    free(trial);
}
