/* Builds a tenant until a run can start (tenant_run.c), and counts its memory. See tenant.h. */
#include "hub/shard/tenant.h"

#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/sum/checksum.h"
#include "hub/layout/optimizer_slots.h"
#include "hub/layout/spread.h"
#include "hub/shard/shard_trace.h"
#include "hub/shard/shard_wide.h"
#include "net/link/tcp_link.h"

/* ---- memory of the hub that a tenant takes, counted from the sizes of a layout before it is made ---- */

/* Returns true if parameters are sent to at least one worker. */
static bool sends_parameters(const struct ph__tenant *tenant)
{
    for (uint32_t i = 0; i < tenant->settings.service.num_workers; i++) {
        if (!tenant->members[i].is_shared)
            return true;
    }
    return false;
}

/* Returns the options of its memory, without a layout. */
static struct ph__job_memory_options memory_options(
    const struct ph__tenant *tenant, const struct ph__tenant_options *options)
{
    const struct ph_hub_service *service = &tenant->settings.service;
    return (struct ph__job_memory_options){
        .num_workers = service->num_workers,
        .depth = service->depth,
        .num_versions = service->depth > 1 || sends_parameters(tenant) ? 2 : 1,
        .has_m = ph__service_has_m(service),
        .has_s = ph__service_has_s(service),
        .has_sums = options->is_wide || service->clip_norm > 0 || service->order == PH_HUB_ARRIVAL_ORDER,
    };
}

/* ---- a worker ---- */

/* Returns the capacity of a ring with room for all that can be under way at once: pushes, each with a new
 * learning rate before it, a pull and an assignment. */
static size_t ring_capacity_for(const struct ph__tenant *tenant, size_t num_fullest)
{
    const size_t wanted = num_fullest * (2 * tenant->settings.service.depth + 2) + 64;
    size_t capacity = 4;
    while (capacity < wanted)
        capacity *= 2;
    return capacity;
}

static struct ph__worker_region_sizes region_sizes(
    const struct ph__tenant *tenant, uint32_t worker, size_t gradient_bytes, size_t ring_capacity)
{
    return (struct ph__worker_region_sizes){
        .num_cores = tenant->num_cores,
        .ring_capacity = ring_capacity,
        .gradient_bytes = gradient_bytes,
        .depth = tenant->settings.service.depth,
        .has_own_parameters = tenant->members[worker].has_own_parameters,
    };
}

struct ph__worker_region_sizes ph__tenant_region_sizes(const struct ph__tenant *tenant, uint32_t worker)
{
    return region_sizes(tenant, worker, tenant->layout->sizes.gradient_bytes, tenant->ring_capacity);
}

static uint64_t worker_bytes(
    const struct ph__tenant *tenant, uint32_t worker, size_t gradient_bytes, size_t ring_capacity)
{
    const struct ph__worker_region_sizes sizes = region_sizes(tenant, worker, gradient_bytes, ring_capacity);
    if (tenant->members[worker].is_shared)
        return ph__worker_region(&sizes).size;
    return gradient_bytes * sizes.depth + tenant->num_cores * ph__tcp_link_bytes(ring_capacity);
}

/* ---- all of it ---- */

uint64_t ph__tenant_bytes(const struct ph__tenant *tenant)
{
    const struct ph__tenant_saves *saves = &tenant->saves;
    const bool is_of_run = tenant->num_bytes > 0 && saves->task_run == saves->num_runs;
    uint64_t bytes = tenant->num_bytes;
    if (saves->task != NULL && !is_of_run)
        bytes += ph__checkpoint_task_bytes(saves->task);
    for (uint32_t i = 0; i < tenant->settings.service.num_workers; i++)
        bytes += tenant->members[i].keys_bytes;
    return bytes;
}

static uint64_t book_bytes(const struct ph__tenant *tenant, const struct ph__tenant_options *options,
    const struct ph__layout_sizes *sizes, size_t num_fullest)
{
    const size_t a_key = sizeof *tenant->keys + sizeof *tenant->optimizer_of_key;
    const size_t traced = options->trace != NULL ? PH_HUB_MAX_DEPTH * sizeof(struct ph__chunk_times) : 0;
    return ph__layout_bytes(sizes) + sizes->num_keys * a_key +
           sizes->num_chunks *
               (sizeof *tenant->core_of_chunk + sizeof *tenant->chunks_of_core.chunks + traced) +
           tenant->num_cores * ph__shard_bytes(&tenant->settings.service, num_fullest);
}

/* Sets num_bytes to all memory of a job with a layout of these sizes, whose fullest core thread has
 * num_fullest chunks. PH_ERROR_MEMORY where that, and the memory for spreading chunks, are beyond
 * max_bytes. */
static ph_status check_quota(struct ph__tenant *tenant, const struct ph__tenant_options *options,
    const struct ph__layout_sizes *sizes, size_t num_fullest)
{
    const uint64_t max_bytes = options->max_bytes;
    const struct ph__job_memory_options memory = memory_options(tenant, options);
    const size_t ring_capacity = ring_capacity_for(tenant, num_fullest);
    uint64_t bytes = ph__job_memory_bytes(&memory, sizes) + book_bytes(tenant, options, sizes, num_fullest);
    if (options->has_snapshots)
        bytes += ph__snapshot_bytes(&tenant->settings, sizes);
    for (uint32_t i = 0; i < tenant->settings.service.num_workers; i++)
        bytes += worker_bytes(tenant, i, sizes->gradient_bytes, ring_capacity);
    const uint64_t at_most = bytes + ph__spread_bytes(sizes->num_chunks); /* while chunks are spread */
    if (at_most > max_bytes)
        return ph_fail(PH_ERROR_MEMORY,
            "service '%s' takes %llu bytes on the hub, but %llu are left for it: raise hub.max_bytes or "
            "hub.max_job_bytes",
            tenant->settings.name, (unsigned long long)at_most, (unsigned long long)max_bytes);
    tenant->num_bytes = bytes;
    return PH_OK;
}

/* ---- creation ---- */

struct ph__tenant_listener {
    struct ph__tenant *tenant;
    uint16_t core;
    ph__tenant_failure failure;
    ph__tenant_news has_news;
    void *context;
};

ph_status ph__tenant_create(const struct ph__service_settings *settings, struct ph__tenant **tenant_out)
{
    const struct ph_hub_service *service = &settings->service;
    struct ph__tenant *tenant = calloc(1, sizeof *tenant);
    if (tenant == NULL || (tenant->members = calloc(service->num_workers, sizeof *tenant->members)) == NULL) {
        free(tenant);
        return ph__out_of_memory("service '%s': %u workers", service->name, service->num_workers);
    }
    ph__service_copy(service, &settings->share, &tenant->settings);
    tenant->saves.parts.here.kept = PH_NO_ITERATION;
    *tenant_out = tenant;
    return PH_OK;
}

void ph__tenant_destroy(struct ph__tenant *tenant)
{
    if (tenant == NULL)
        return;
    ph__tenant_stop(tenant);
    free(tenant->members);
    free(tenant);
}

/* ---- resuming ---- */

/* Restores the versions and iterations of chunks and workers, before the shards are made. */
static void restore_books(struct ph__tenant *tenant)
{
    const struct ph__job_memory *memory = tenant->memory;
    for (uint32_t chunk = 0; chunk < tenant->layout->sizes.num_chunks; chunk++) {
        if (!ph__chunk_is_here(&tenant->layout->chunks[chunk]))
            continue;
        memory->chunks[chunk].version = tenant->saves.snapshot->chunks[chunk].version;
        for (uint32_t worker = 0; worker < memory->num_workers; worker++) {
            struct ph__chunk_worker *request = ph__request(memory, chunk, worker);
            request->pushed = request->counted = request->answered = tenant->first_iteration;
        }
    }
}

/* Makes the shards begin by reading the snapshot back, before they start. */
static void begin_restore(struct ph__tenant *tenant)
{
    tenant->saves.is_restoring = true;
    atomic_store(&tenant->saves.num_shards, tenant->num_cores);
    for (uint16_t core = 0; core < tenant->num_cores; core++)
        ph__shard_begin_restore(tenant->shards[core], tenant->saves.snapshot);
}

/* ---- building ---- */

ph_status ph__tenant_check_keys(
    const struct ph__tenant *tenant, const struct ph__init_key *keys, size_t num_keys)
{
    const struct ph_hub_service *service = &tenant->settings.service;
    const size_t chunk_bytes = service->chunk_bytes > 0 ? service->chunk_bytes : PH_HUB_MAX_CHUNK_BYTES;
    struct ph__layout_sizes sizes;
    for (size_t i = 0; i < num_keys; i++) {
        if (keys[i].optimizer >= service->num_optimizers)
            return ph_fail(PH_ERROR_USAGE, "key %zu: optimizer %u does not exist: service '%s' has %zu", i,
                keys[i].optimizer, service->name, service->num_optimizers);
    }
    struct ph__layout_key *wanted = ph__layout_keys(keys, num_keys);
    if (wanted == NULL)
        return ph__out_of_memory("%zu keys", num_keys);
    const ph_status status = ph__layout_measure(wanted, num_keys, chunk_bytes, &sizes);
    free(wanted);
    return status;
}

/* Returns what the choice of a chunk size depends on. A resumed job keeps its size, which its bits follow. */
static struct ph__autotune_job describe_chunks(const struct ph__tenant *tenant)
{
    const struct ph_hub_service *service = &tenant->settings.service;
    struct ph__autotune_job job = {.wanted_bytes = service->chunk_bytes,
        .path = sends_parameters(tenant) ? PH_AUTOTUNE_TCP : PH_AUTOTUNE_SHARED,
        .num_cores = tenant->num_cores,
        .clips = service->clip_norm > 0,
        .is_of_several_hubs = tenant->settings.share.num_hubs > 1};
    if (tenant->is_restored)
        job.wanted_bytes = (uint32_t)tenant->saves.snapshot->layout->chunk_bytes;
    for (size_t i = 0; i < tenant->num_keys; i++)
        job.num_bytes += tenant->keys[i].num_elements * ph_dtype_size(tenant->keys[i].dtype);
    return job;
}

/* Checks the quota before anything is made of a worker's keys. With several hubs the chunks that live here
 * are not known yet: their bytes are counted later. */
static ph_status check_measured(struct ph__tenant *tenant, const struct ph__layout_key *keys,
    size_t chunk_bytes, const struct ph__tenant_options *options)
{
    struct ph__layout_sizes sizes;
    PH_TRY(ph__layout_measure(keys, tenant->num_keys, chunk_bytes, &sizes));
    if (tenant->settings.share.num_hubs > 1)
        sizes.num_here = sizes.gradient_bytes = sizes.num_weights = 0;
    return check_quota(tenant, options, &sizes, ph__divide_up(sizes.num_here, tenant->num_cores));
}

static ph_status build_layout(struct ph__tenant *tenant, const struct ph__tenant_options *options)
{
    struct ph__layout_key *keys = ph__layout_keys(tenant->keys, tenant->num_keys);
    tenant->optimizer_of_key = calloc(tenant->num_keys, sizeof *tenant->optimizer_of_key);
    if (keys == NULL || tenant->optimizer_of_key == NULL) {
        free(keys);
        return ph__out_of_memory("%zu keys", tenant->num_keys);
    }
    for (size_t i = 0; i < tenant->num_keys; i++)
        tenant->optimizer_of_key[i] = tenant->keys[i].optimizer;
    tenant->chunks = describe_chunks(tenant);
    const size_t chunk_bytes = ph__autotune_chunk_bytes(options->tuning, &tenant->chunks);
    ph_status status = check_measured(tenant, keys, chunk_bytes, options);
    if (status == PH_OK)
        status = ph__layout_create(keys, tenant->num_keys, chunk_bytes, &tenant->layout);
    free(keys);
    return status;
}

static size_t count_fullest(const struct ph__tenant *tenant)
{
    const size_t *first = tenant->chunks_of_core.first;
    size_t most = 0;
    for (uint16_t core = 0; core < tenant->num_cores; core++)
        most = ph__max(most, first[core + 1] - first[core]);
    return most;
}

static ph_status spread_chunks(struct ph__tenant *tenant, const struct ph__tenant_options *options)
{
    const size_t num_chunks = tenant->layout->sizes.num_chunks;
    tenant->core_of_chunk = calloc(num_chunks, sizeof *tenant->core_of_chunk);
    if (tenant->core_of_chunk == NULL)
        return ph__out_of_memory("%zu chunks", num_chunks);
    PH_TRY(
        ph__spread_share(tenant->layout, &tenant->settings.share, tenant->num_cores, tenant->core_of_chunk));
    ph__layout_keep(tenant->layout, tenant->core_of_chunk);
    tenant->cores_sum = ph__checksum(tenant->core_of_chunk, num_chunks * sizeof *tenant->core_of_chunk);
    PH_TRY(
        ph__chunk_lists_init(&tenant->chunks_of_core, tenant->core_of_chunk, num_chunks, tenant->num_cores));
    const size_t num_fullest = count_fullest(tenant);
    tenant->ring_capacity = ring_capacity_for(tenant, num_fullest);
    return check_quota(tenant, options, &tenant->layout->sizes, num_fullest);
}

static ph_status build_memory(struct ph__tenant *tenant, const struct ph__tenant_options *job)
{
    const struct ph_hub_service *service = &tenant->settings.service;
    struct ph__job_memory_options options = memory_options(tenant, job);
    options.layout = tenant->layout;
    PH_TRY(ph__job_memory_create(&options, &tenant->memory));
    for (uint32_t i = 0; i < service->num_workers; i++) {
        const struct ph__worker_region_sizes sizes = ph__tenant_region_sizes(tenant, i);
        PH_TRY(ph__job_memory_add_worker(tenant->memory, i, tenant->members[i].is_shared, &sizes));
    }
    if (!job->has_snapshots || tenant->saves.snapshot != NULL)
        return PH_OK;
    return ph__snapshot_create(&tenant->settings, tenant->keys, tenant->num_keys, tenant->layout->chunk_bytes,
        &tenant->saves.snapshot);
}

static void wake_others(void *context)
{
    const struct ph__tenant_listener *listener = context;
    ph__core_wake_others(listener->tenant->cores[listener->core]);
}

static void worker_failed(void *context, uint32_t worker)
{
    const struct ph__tenant_listener *listener = context;
    listener->failure(listener->context, listener->tenant, worker);
}

static void touched(void *context)
{
    const struct ph__tenant_listener *listener = context;
    if (atomic_fetch_add(&listener->tenant->num_touched, 1) + 1 == listener->tenant->num_cores)
        listener->has_news(listener->context);
}

static void copied(void *context)
{
    const struct ph__tenant_listener *listener = context;
    if (atomic_fetch_sub(&listener->tenant->saves.num_shards, 1) == 1)
        listener->has_news(listener->context);
}

static void reached(void *context)
{
    const struct ph__tenant_listener *listener = context;
    atomic_store(&listener->tenant->saves.has_reached, true);
    listener->has_news(listener->context);
}

/* Returns true if results are written past the caches. Chosen where they are sent and exceed the caches: the
 * kernel copies what it sends, wherever that lies. */
static bool is_non_temporal(const struct ph__tenant *tenant, enum ph_hub_results results)
{
    if (results != PH_HUB_RESULTS_AUTO)
        return results == PH_HUB_RESULTS_NON_TEMPORAL;
    return sends_parameters(tenant) &&
           tenant->layout->sizes.gradient_bytes > tenant->num_cores * ph__cpu_own_cache_bytes();
}

static void describe_job(struct ph__tenant *tenant, const struct ph__tenant_options *options)
{
    tenant->job.kernels = options->kernels;
    tenant->job.memory = tenant->memory;
    tenant->job.core_of_chunk = tenant->core_of_chunk;
    tenant->job.chunks_of_core = &tenant->chunks_of_core;
    tenant->job.service = tenant->settings.service;
    tenant->job.is_non_temporal = is_non_temporal(tenant, options->results);
    tenant->job.optimizer_of_key = tenant->optimizer_of_key;
    atomic_store(&tenant->job.num_summed, 0);
    atomic_store(&tenant->job.rounds_clipped, 0);
}

static ph_status build_shards(struct ph__tenant *tenant, const struct ph__tenant_options *options)
{
    describe_job(tenant, options);
    if (options->trace != NULL)
        PH_TRY(ph__job_trace_create(options->trace, options->trace_name, tenant->layout->sizes.num_chunks,
            tenant->num_cores, &tenant->job.trace));
    if (options->is_wide)
        PH_TRY(ph__wide_create(
            tenant->num_keys, tenant->settings.service.num_workers, tenant->num_cores, &tenant->job.wide));
    tenant->shards = calloc(tenant->num_cores, sizeof *tenant->shards);
    tenant->listeners = calloc(tenant->num_cores, sizeof *tenant->listeners);
    if (tenant->shards == NULL || tenant->listeners == NULL)
        return ph__out_of_memory("%u shards", tenant->num_cores);
    for (uint16_t core = 0; core < tenant->num_cores; core++) {
        tenant->listeners[core] = (struct ph__tenant_listener){.tenant = tenant,
            .core = core,
            .failure = options->failure,
            .has_news = options->has_news,
            .context = options->context};
        const struct ph__shard_callbacks callbacks = {.context = &tenant->listeners[core],
            .wake_others = wake_others,
            .worker_failed = worker_failed,
            .touched = touched,
            .copied = copied,
            .reached = reached};
        PH_TRY(ph__shard_create(&tenant->job, core, &callbacks, &tenant->shards[core]));
    }
    return PH_OK;
}

static ph_status build_all(struct ph__tenant *tenant, const struct ph__tenant_options *options)
{
    PH_TRY(build_layout(tenant, options));
    PH_TRY(spread_chunks(tenant, options));
    PH_TRY(build_memory(tenant, options));
    if (tenant->is_restored)
        restore_books(tenant);
    PH_TRY(build_shards(tenant, options));
    if (tenant->is_restored)
        begin_restore(tenant);
    return PH_OK;
}

ph_status ph__tenant_build(struct ph__tenant *tenant, const struct ph__tenant_options *options)
{
    tenant->cores = options->cores;
    tenant->num_cores = options->num_cores;
    const ph_status status = build_all(tenant, options);
    if (status != PH_OK) {
        ph__tenant_stop(tenant);
        return status;
    }
    tenant->state = PH_TENANT_LINKING;
    return PH_OK;
}
