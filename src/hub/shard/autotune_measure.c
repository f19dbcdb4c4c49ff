/* Measures chunk sizes; see autotune_measure.h. All sizes share one job's memory, shard and links, so that
 * each finds the same pages and the same connection: between two runs the memory gets another layout of the
 * same key, and the chunks' state is cleared. Memory and shard are sized for the first layout, of the
 * smallest chunks. */
#include "hub/shard/autotune_measure.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "base/thread/cpu.h"
#include "hub/layout/job_memory.h"
#include "hub/shard/shard_state.h"
#include "net/link/shared_link.h"
#include "net/link/socket.h"
#include "net/link/tcp_link.h"
#include "net/waiter.h"

#define KEY_BYTES ((size_t)4 << 20) /* more than the caches of a core */
#define MAX_WORKERS 2
#define RING_MESSAGES 512 /* one for each of the smallest chunks */
#define BYTES_A_TURN ((size_t)256 << 10)
#define MESSAGES_A_TURN 512
#define CONNECT_MS 1000

struct trial {
    uint32_t num_workers;
    bool has_payloads;
    struct ph__layout *layouts[PH_AUTOTUNE_NUM_SIZES];
    struct ph__job_memory *memory;
    uint16_t *core_of_chunk;
    struct ph__chunk_lists chunks_of_core;
    struct ph__shard_job job;
    struct ph__shard *shard;
    struct ph__link *links[MAX_WORKERS]; /* the workers' ends */
    struct ph__region region;            /* gradients and parameters of a worker over TCP */
    size_t num_missing;                  /* answers */
    double deadline_seconds;
    bool has_failed;
};

static const struct ph_hub_optimizer momentum = {
    .rule.kind = PH_MOMENTUM, .learning_rate = .01F, .rule.momentum = .9F};
static const uint32_t optimizer_of_key = 0;

/* ---- the workers' ends ---- */

static ph_status place(
    void *context, const struct ph__message *message, size_t payload_bytes, void **memory_out)
{
    const struct trial *trial = context;
    const struct ph__layout *layout = trial->memory->layout;
    if (message->chunk >= layout->sizes.num_chunks ||
        payload_bytes != (trial->has_payloads ? layout->chunks[message->chunk].gradient_bytes : 0))
        return ph_fail(
            PH_ERROR_PEER, "chunk %u came with a wrong size of %zu bytes", message->chunk, payload_bytes);
    *memory_out = NULL;
    if (trial->has_payloads)
        *memory_out =
            (char *)trial->region.memory + KEY_BYTES + layout->chunks[message->chunk].gradient_offset;
    return PH_OK;
}

static ph_status arrived(void *context, const struct ph__message *message)
{
    (void)message;
    ((struct trial *)context)->num_missing--;
    return PH_OK;
}

static void sent(void *context, const struct ph__message *message)
{
    (void)context;
    (void)message;
}

static struct ph__link_owner worker_owner(struct trial *trial)
{
    return (struct ph__link_owner){.context = trial, .place = place, .arrived = arrived, .sent = sent};
}

/* ---- links ---- */

static ph_status link_shared(struct trial *trial, uint32_t worker)
{
    int ends[2];
    struct ph__link *link;
    PH_TRY(ph__doorbell_create(ends));
    struct ph__shared_link_options options = {.memory = trial->memory->workers[worker].region.memory,
        .capacity = RING_MESSAGES,
        .is_hub = true,
        .doorbell = ends[0],
        .owner = ph__shard_link_owner(trial->shard, worker)};
    ph_status status = ph__shared_link_create(&options, &link);
    if (status != PH_OK) {
        close(ends[0]);
        close(ends[1]);
        return status;
    }
    ph__shard_attach(trial->shard, worker, link, false);
    options.is_hub = false;
    options.doorbell = ends[1];
    options.owner = worker_owner(trial);
    status = ph__shared_link_create(&options, &trial->links[worker]);
    if (status != PH_OK)
        close(ends[1]);
    return status;
}

/* Accepts the waiting connection, if it is our own. */
static ph_status accept_own(int listening, int connected, int *accepted_out)
{
    char ours[PH_ADDRESS_BYTES], theirs[PH_ADDRESS_BYTES];
    int accepted;
    struct pollfd polled = {.fd = listening, .events = POLLIN};
    poll(&polled, 1, CONNECT_MS);
    PH_TRY(ph__socket_accept(listening, &accepted));
    if (accepted < 0)
        return ph_fail(PH_ERROR_PEER, "the hub cannot connect to itself");
    ph_status status = ph__socket_address(connected, ours);
    if (status == PH_OK)
        status = ph__socket_peer(accepted, theirs);
    if (status == PH_OK && strcmp(ours, theirs) != 0)
        status = ph_fail(PH_ERROR_PEER, "another process connected first");
    if (status != PH_OK) {
        close(accepted);
        return status;
    }
    *accepted_out = accepted;
    return PH_OK;
}

static ph_status connect_self(int sockets_out[2])
{
    char address[PH_ADDRESS_BYTES];
    int listening;
    PH_TRY(ph__socket_listen("127.0.0.1:0", &listening));
    ph_status status = ph__socket_address(listening, address);
    if (status == PH_OK)
        status = ph__socket_connect(address, CONNECT_MS, &sockets_out[0]);
    if (status == PH_OK) {
        status = accept_own(listening, sockets_out[0], &sockets_out[1]);
        if (status != PH_OK)
            close(sockets_out[0]);
    }
    close(listening);
    return status;
}

/* Makes a TCP link. Both ends, which own their sockets, are in this thread: neither writes to a closed
 * one. */
static ph_status link_tcp(struct trial *trial, uint32_t worker)
{
    int sockets[2];
    struct ph__link *link;
    PH_TRY(connect_self(sockets));
    struct ph__tcp_link_options options = {.socket = sockets[0],
        .capacity = RING_MESSAGES,
        .registered = &trial->memory->region,
        .owner = ph__shard_link_owner(trial->shard, worker)};
    ph_status status = ph__tcp_link_create(&options, &link);
    if (status != PH_OK) {
        close(sockets[0]);
        close(sockets[1]);
        return status;
    }
    ph__shard_attach(trial->shard, worker, link, true);
    options.socket = sockets[1];
    options.registered = &trial->region;
    options.owner = worker_owner(trial);
    status = ph__tcp_link_create(&options, &trial->links[worker]);
    if (status != PH_OK)
        close(sockets[1]);
    return status;
}

/* ---- making a trial ---- */

static void worker_failed(void *context, uint32_t worker)
{
    (void)worker;
    ((struct trial *)context)->has_failed = true;
}

/* Makes the worker's region, with pages like a worker's. */
static ph_status make_region(struct trial *trial)
{
    PH_TRY(ph__region_create("phloem-hub-trial", 2 * KEY_BYTES, &trial->region));
    ph__region_enlarge_pages(&trial->region, trial->region.memory, trial->region.size);
    return PH_OK;
}

static ph_status make_memory(struct trial *trial)
{
    const struct ph__layout_key key = {.num_elements = KEY_BYTES / sizeof(float), .dtype = PH_F32};
    const struct ph__worker_region_sizes sizes = {
        .num_cores = 1, .ring_capacity = RING_MESSAGES, .gradient_bytes = KEY_BYTES, .depth = 1};
    for (size_t i = 0; i < PH_AUTOTUNE_NUM_SIZES; i++)
        PH_TRY(ph__layout_create(&key, 1, ph__autotune_size(i), &trial->layouts[i]));
    const struct ph__job_memory_options options = {.layout = trial->layouts[0],
        .num_workers = trial->num_workers,
        .depth = 1,
        .num_versions = trial->has_payloads ? 2 : 1,
        .has_m = true};
    PH_TRY(ph__job_memory_create(&options, &trial->memory));
    for (uint32_t i = 0; i < trial->num_workers; i++)
        PH_TRY(ph__job_memory_add_worker(trial->memory, i, !trial->has_payloads, &sizes));
    return trial->has_payloads ? make_region(trial) : PH_OK;
}

static ph_status make_shard(struct trial *trial, const struct ph__kernels *kernels, bool is_non_temporal)
{
    const struct ph__shard_callbacks callbacks = {.context = trial, .worker_failed = worker_failed};
    trial->core_of_chunk = calloc(trial->layouts[0]->sizes.num_chunks, sizeof *trial->core_of_chunk);
    if (trial->core_of_chunk == NULL)
        return ph__out_of_memory("chunks");
    PH_TRY(ph__chunk_lists_init(
        &trial->chunks_of_core, trial->core_of_chunk, trial->layouts[0]->sizes.num_chunks, 1));
    trial->job = (struct ph__shard_job){.kernels = kernels,
        .memory = trial->memory,
        .core_of_chunk = trial->core_of_chunk,
        .chunks_of_core = &trial->chunks_of_core,
        .service = {.num_workers = trial->num_workers,
            .depth = 1,
            .optimizers = &momentum,
            .num_optimizers = 1},
        .is_non_temporal = is_non_temporal,
        .optimizer_of_key = &optimizer_of_key};
    return ph__shard_create(&trial->job, 0, &callbacks, &trial->shard);
}

static ph_status make_trial(struct trial *trial, const struct ph__kernels *kernels, bool is_non_temporal)
{
    PH_TRY(make_memory(trial));
    PH_TRY(make_shard(trial, kernels, is_non_temporal));
    for (uint32_t i = 0; i < trial->num_workers; i++)
        PH_TRY(trial->has_payloads ? link_tcp(trial, i) : link_shared(trial, i));
    return PH_OK;
}

static void end_trial(struct trial *trial)
{
    for (uint32_t i = 0; i < trial->num_workers; i++)
        ph__link_destroy(trial->links[i]);
    ph__shard_destroy(trial->shard);
    if (trial->memory != NULL)
        trial->memory->layout = trial->layouts[0];
    ph__job_memory_destroy(trial->memory);
    ph__region_close(&trial->region);
    for (size_t i = 0; i < PH_AUTOTUNE_NUM_SIZES; i++)
        ph__layout_destroy(trial->layouts[i]);
    free(trial->core_of_chunk);
    ph__chunk_lists_fini(&trial->chunks_of_core);
}

/* ---- running a trial ---- */

static void use_layout(struct trial *trial, size_t size)
{
    struct ph__job_memory *memory = trial->memory;
    const size_t num_chunks = trial->layouts[size]->sizes.num_chunks;
    memory->layout = trial->layouts[size];
    memset(memory->chunks, 0, num_chunks * sizeof *memory->chunks);
    memset(memory->requests, 0, num_chunks * memory->num_workers * sizeof *memory->requests);
    ph__shard_deal_places(trial->shard);
}

static ph_status push_all(struct trial *trial)
{
    const struct ph__layout *layout = trial->memory->layout;
    struct ph__message message = {.kind = PH_HUB_PUSHPULL, .iteration = 1};
    for (uint32_t worker = 0; worker < trial->num_workers; worker++) {
        for (message.chunk = 0; message.chunk < layout->sizes.num_chunks; message.chunk++) {
            const struct ph__chunk_place *chunk = &layout->chunks[message.chunk];
            PH_TRY(ph__link_send(trial->links[worker], &message,
                trial->has_payloads ? (char *)trial->region.memory + chunk->gradient_offset : NULL,
                trial->has_payloads ? chunk->gradient_bytes : 0));
        }
    }
    return PH_OK;
}

static ph_status turn(struct trial *trial)
{
    size_t moved, bytes;
    for (uint32_t i = 0; i < trial->num_workers; i++)
        PH_TRY(ph__link_progress(trial->links[i], MESSAGES_A_TURN, &moved));
    ph__shard_run(trial->shard, BYTES_A_TURN, &bytes);
    if (trial->has_failed)
        return PH_ERROR_PEER; /* the link that failed has set the error */
    if (ph__clock_seconds() > trial->deadline_seconds)
        return ph_fail(PH_ERROR_PEER, "the measurement takes too long");
    return PH_OK;
}

/* Returns the processor time of this thread, which other threads do not add to. */
static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Runs one iteration of all workers. */
static ph_status run(struct trial *trial, size_t size, double *seconds_out)
{
    use_layout(trial, size);
    trial->num_missing = trial->num_workers * trial->memory->layout->sizes.num_chunks;
    const double begin = processor_seconds();
    PH_TRY(push_all(trial));
    while (trial->num_missing > 0)
        PH_TRY(turn(trial));
    *seconds_out = processor_seconds() - begin;
    return PH_OK;
}

static ph_status run_rounds(struct trial *trial, double thread_seconds, struct ph__autotune_times *times)
{
    double warming;
    times->num_rounds = 0;
    PH_TRY(run(trial, 0, &warming)); /* touches pages; the connection finds its speed */
    const double end = processor_seconds() + thread_seconds;
    while (times->num_rounds < PH_AUTOTUNE_MAX_ROUNDS &&
           (times->num_rounds < PH_AUTOTUNE_MIN_ROUNDS || processor_seconds() < end)) {
        for (size_t size = 0; size < PH_AUTOTUNE_NUM_SIZES; size++)
            PH_TRY(run(trial, size, &times->seconds[times->num_rounds][size]));
        times->num_rounds++;
    }
    return PH_OK;
}

ph_status ph__autotune_measure(enum ph__autotune_path path, const struct ph__kernels *kernels,
    bool is_non_temporal, const struct ph__autotune_patience *patience, struct ph__autotune_times *times_out)
{
    fenv_t former;
    struct trial trial = {.num_workers = path == PH_AUTOTUNE_TCP ? 1 : MAX_WORKERS,
        .has_payloads = path == PH_AUTOTUNE_TCP,
        .deadline_seconds = ph__clock_seconds() + patience->seconds,
        .region.descriptor = -1};
    ph__cpu_float_enter(true, &former); /* like core threads */
    ph_status status = make_trial(&trial, kernels, is_non_temporal);
    if (status == PH_OK)
        status = run_rounds(&trial, patience->thread_seconds, times_out);
    end_trial(&trial);
    ph__cpu_float_leave(&former);
    return status;
}
