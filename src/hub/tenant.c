/* See tenant.h. */
#include "hub/tenant.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/memory.h"
#include "base/sizes.h"
#include "hub/optimizer_slots.h"
#include "hub/shard_trace.h"
#include "hub/shard_wide.h"
#include "hub/spread.h"
#include "net/doorbell.h"
#include "net/shared_link.h"
#include "net/tcp_link.h"

struct ph_tenant_part {
    struct ph_tenant *tenant;
    uint16_t core;
    ph_tenant_failure failure;
    ph_tenant_news has_news;
    void *context;
};

ph_status ph__tenant_create(const struct ph_service_settings *settings, struct ph_tenant **tenant_out)
{
    const struct ph_hub_service *service = &settings->service;
    struct ph_tenant *tenant = calloc(1, sizeof *tenant);
    if (tenant == NULL || (tenant->members = calloc(service->num_workers, sizeof *tenant->members)) == NULL) {
        free(tenant);
        return ph_fail(
            PH_ERROR_MEMORY, "service '%s': no memory for %u workers", service->name, service->num_workers);
    }
    ph__service_copy(service, &settings->share, &tenant->settings);
    tenant->saves.parts.here.kept = PH_NO_ITERATION;
    *tenant_out = tenant;
    return PH_OK;
}

void ph__tenant_destroy(struct ph_tenant *tenant)
{
    if (tenant == NULL)
        return;
    ph__tenant_stop(tenant);
    free(tenant->members);
    free(tenant);
}

/* ---- building ---- */

ph_status ph__tenant_check_keys(
    const struct ph_tenant *tenant, const struct ph_init_key *keys, size_t num_keys)
{
    const struct ph_hub_service *service = &tenant->settings.service;
    const size_t chunk_bytes = service->chunk_bytes > 0 ? service->chunk_bytes : PH_HUB_MAX_CHUNK_BYTES;
    struct ph_layout_sizes sizes;
    for (size_t i = 0; i < num_keys; i++) {
        if (keys[i].optimizer >= service->num_optimizers)
            return ph_fail(PH_ERROR_USAGE, "key %zu: there is no optimizer %u, service '%s' has %zu", i,
                keys[i].optimizer, service->name, service->num_optimizers);
    }
    struct ph_layout_key *wanted = ph__layout_keys(keys, num_keys);
    if (wanted == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu keys", num_keys);
    const ph_status status = ph__layout_measure(wanted, num_keys, chunk_bytes, &sizes);
    free(wanted);
    return status;
}

/* What was chosen for a job stays so when it goes on: bits follow it. */
static struct ph_autotune_job describe_chunks(const struct ph_tenant *tenant)
{
    const struct ph_hub_service *service = &tenant->settings.service;
    struct ph_autotune_job job = {.wanted_bytes = service->chunk_bytes,
        .path = ph__tenant_sends_parameters(tenant) ? PH_AUTOTUNE_TCP : PH_AUTOTUNE_SHARED,
        .num_cores = tenant->num_cores,
        .clips = service->clip_norm > 0,
        .is_of_several_hubs = tenant->settings.share.num_hubs > 1};
    if (tenant->is_restored)
        job.wanted_bytes = (uint32_t)tenant->saves.snapshot->layout->chunk_bytes;
    for (size_t i = 0; i < tenant->num_keys; i++)
        job.num_bytes += tenant->keys[i].num_elements * ph_dtype_size(tenant->keys[i].dtype);
    return job;
}

/* Before anything is made of what a worker has said. Which chunks live here is not known yet where there are several hubs: their
 * bytes are counted later. */
static ph_status check_measured(struct ph_tenant *tenant, const struct ph_layout_key *keys,
    size_t chunk_bytes, const struct ph_tenant_options *options)
{
    struct ph_layout_sizes sizes;
    PH_TRY(ph__layout_measure(keys, tenant->num_keys, chunk_bytes, &sizes));
    if (tenant->settings.share.num_hubs > 1)
        sizes.num_here = sizes.gradient_bytes = sizes.num_weights = 0;
    return ph__tenant_check_quota(tenant, options, &sizes, ph__divide_up(sizes.num_here, tenant->num_cores));
}

static ph_status build_layout(struct ph_tenant *tenant, const struct ph_tenant_options *options)
{
    struct ph_layout_key *keys = ph__layout_keys(tenant->keys, tenant->num_keys);
    tenant->optimizer_of_key = calloc(tenant->num_keys, sizeof *tenant->optimizer_of_key);
    if (keys == NULL || tenant->optimizer_of_key == NULL) {
        free(keys);
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu keys", tenant->num_keys);
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

static size_t count_fullest(const struct ph_tenant *tenant)
{
    const size_t *first = tenant->chunks_of_core.first;
    size_t most = 0;
    for (uint16_t core = 0; core < tenant->num_cores; core++)
        most = ph__max(most, first[core + 1] - first[core]);
    return most;
}

static ph_status spread_chunks(struct ph_tenant *tenant, const struct ph_tenant_options *options)
{
    const size_t num_chunks = tenant->layout->sizes.num_chunks;
    tenant->core_of_chunk = calloc(num_chunks, sizeof *tenant->core_of_chunk);
    if (tenant->core_of_chunk == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu chunks", num_chunks);
    PH_TRY(
        ph__spread_share(tenant->layout, &tenant->settings.share, tenant->num_cores, tenant->core_of_chunk));
    ph__layout_keep(tenant->layout, tenant->core_of_chunk);
    tenant->cores_sum = ph__checksum(tenant->core_of_chunk, num_chunks * sizeof *tenant->core_of_chunk);
    PH_TRY(
        ph__chunk_lists_init(&tenant->chunks_of_core, tenant->core_of_chunk, num_chunks, tenant->num_cores));
    const size_t num_fullest = count_fullest(tenant);
    tenant->ring_capacity = ph__tenant_ring_capacity(tenant, num_fullest);
    return ph__tenant_check_quota(tenant, options, &tenant->layout->sizes, num_fullest);
}

static ph_status build_memory(struct ph_tenant *tenant, const struct ph_tenant_options *job)
{
    const struct ph_hub_service *service = &tenant->settings.service;
    struct ph_job_memory_options options = ph__tenant_memory_options(tenant, job);
    options.layout = tenant->layout;
    PH_TRY(ph__job_memory_create(&options, &tenant->memory));
    for (uint32_t i = 0; i < service->num_workers; i++) {
        const struct ph_worker_region_sizes sizes = ph__tenant_region_sizes(tenant, i);
        PH_TRY(ph__job_memory_add_worker(tenant->memory, i, tenant->members[i].is_shared, &sizes));
    }
    if (!job->has_snapshots || tenant->saves.snapshot != NULL)
        return PH_OK;
    return ph__snapshot_create(&tenant->settings, tenant->keys, tenant->num_keys, tenant->layout->chunk_bytes,
        &tenant->saves.snapshot);
}

static void wake_others(void *context)
{
    const struct ph_tenant_part *part = context;
    ph__core_wake_others(part->tenant->cores[part->core]);
}

static void worker_failed(void *context, uint32_t worker)
{
    const struct ph_tenant_part *part = context;
    part->failure(part->context, part->tenant, worker);
}

static void touched(void *context)
{
    const struct ph_tenant_part *part = context;
    if (atomic_fetch_add(&part->tenant->num_touched, 1) + 1 == part->tenant->num_cores)
        part->has_news(part->context);
}

static void copied(void *context)
{
    const struct ph_tenant_part *part = context;
    if (atomic_fetch_sub(&part->tenant->saves.num_shards, 1) == 1)
        part->has_news(part->context);
}

static void reached(void *context)
{
    const struct ph_tenant_part *part = context;
    atomic_store(&part->tenant->saves.has_reached, true);
    part->has_news(part->context);
}

/* Nobody reads what has left the caches: parameters that are sent are copied by the kernel, from wherever they lie. */
static bool is_non_temporal(const struct ph_tenant *tenant, enum ph_hub_results results)
{
    if (results != PH_HUB_RESULTS_AUTO)
        return results == PH_HUB_RESULTS_NON_TEMPORAL;
    return ph__tenant_sends_parameters(tenant) &&
           tenant->layout->sizes.gradient_bytes > tenant->num_cores * ph__cpu_own_cache_bytes();
}

static void describe_job(struct ph_tenant *tenant, const struct ph_tenant_options *options)
{
    const struct ph_hub_service *service = &tenant->settings.service;
    tenant->job.kernels = options->kernels;
    tenant->job.memory = tenant->memory;
    tenant->job.core_of_chunk = tenant->core_of_chunk;
    tenant->job.chunks_of_core = &tenant->chunks_of_core;
    tenant->job.mode = service->mode;
    tenant->job.order = service->order;
    tenant->job.num_workers = service->num_workers;
    tenant->job.depth = service->depth;
    tenant->job.staleness = service->staleness;
    tenant->job.is_mean = service->is_mean;
    tenant->job.is_non_temporal = is_non_temporal(tenant, options->results);
    tenant->job.clip_norm = service->clip_norm;
    tenant->job.optimizers = tenant->settings.optimizers;
    tenant->job.optimizer_of_key = tenant->optimizer_of_key;
    tenant->job.num_optimizers = (uint32_t)service->num_optimizers;
    atomic_store(&tenant->job.num_summed, 0);
    atomic_store(&tenant->job.rounds_clipped, 0);
}

static ph_status build_shards(struct ph_tenant *tenant, const struct ph_tenant_options *options)
{
    describe_job(tenant, options);
    if (options->trace != NULL)
        PH_TRY(ph__job_trace_create(options->trace, options->trace_name, tenant->layout->sizes.num_chunks,
            tenant->num_cores, &tenant->job.trace));
    if (options->is_wide)
        PH_TRY(ph__wide_create(
            tenant->num_keys, tenant->settings.service.num_workers, tenant->num_cores, &tenant->job.wide));
    tenant->shards = calloc(tenant->num_cores, sizeof *tenant->shards);
    tenant->parts = calloc(tenant->num_cores, sizeof *tenant->parts);
    if (tenant->shards == NULL || tenant->parts == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %u shards", tenant->num_cores);
    for (uint16_t core = 0; core < tenant->num_cores; core++) {
        tenant->parts[core] = (struct ph_tenant_part){.tenant = tenant,
            .core = core,
            .failure = options->failure,
            .has_news = options->has_news,
            .context = options->context};
        const struct ph_shard_callbacks callbacks = {.context = &tenant->parts[core],
            .wake_others = wake_others,
            .worker_failed = worker_failed,
            .touched = touched,
            .copied = copied,
            .reached = reached};
        PH_TRY(ph__shard_create(&tenant->job, core, &callbacks, &tenant->shards[core]));
    }
    return PH_OK;
}

static ph_status build_all(struct ph_tenant *tenant, const struct ph_tenant_options *options)
{
    PH_TRY(build_layout(tenant, options));
    PH_TRY(spread_chunks(tenant, options));
    PH_TRY(build_memory(tenant, options));
    if (tenant->is_restored)
        ph__tenant_restore_books(tenant);
    PH_TRY(build_shards(tenant, options));
    if (tenant->is_restored)
        ph__tenant_begin_restore(tenant);
    return PH_OK;
}

ph_status ph__tenant_build(struct ph_tenant *tenant, const struct ph_tenant_options *options)
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

/* ---- links ---- */

static ph_status link_core(struct ph_tenant *tenant, uint32_t worker, uint16_t core, int *doorbell_out)
{
    const struct ph_worker_region_sizes sizes = ph__tenant_region_sizes(tenant, worker);
    const struct ph_worker_region region = ph__worker_region(&sizes);
    int ends[2];
    struct ph_link *link;
    PH_TRY(ph__doorbell_create(ends));
    const struct ph_shared_link_options options = {
        .memory = (char *)tenant->memory->workers[worker].region.memory + core * region.ring_bytes,
        .capacity = tenant->ring_capacity,
        .is_hub = true,
        .doorbell = ends[0],
        .owner = ph__shard_link_owner(tenant->shards[core], worker),
    };
    const ph_status status = ph__shared_link_create(&options, &link);
    if (status != PH_OK) {
        close(ends[0]);
        close(ends[1]);
        return status;
    }
    ph__shard_attach(tenant->shards[core], worker, link, false);
    *doorbell_out = ends[1];
    return PH_OK;
}

ph_status ph__tenant_link_shared(struct ph_tenant *tenant, uint32_t worker, int *doorbells_out)
{
    for (uint16_t core = 0; core < tenant->num_cores; core++) {
        const ph_status status = link_core(tenant, worker, core, &doorbells_out[core]);
        if (status == PH_OK)
            continue;
        while (core-- > 0)
            close(doorbells_out[core]);
        return status;
    }
    return PH_OK;
}

ph_status ph__tenant_link_tcp(struct ph_tenant *tenant, uint32_t worker, uint16_t core, int socket,
    struct ph_frame_key *send_key, struct ph_frame_key *receive_key)
{
    struct ph_link *link;
    ph_status status = PH_OK;
    if (core >= tenant->num_cores || ph__shard_link(tenant->shards[core], worker) != NULL)
        status = ph_fail(PH_ERROR_PEER, "worker %u: a link to core thread %u that cannot be", worker, core);
    /* In the other modes a chunk may be updated before a worker has read what was sent to it. */
    const bool is_stable = tenant->settings.service.mode == PH_HUB_SYNCHRONOUS;
    const struct ph_tcp_link_options options = {.socket = socket,
        .capacity = tenant->ring_capacity,
        .send_key = send_key,
        .receive_key = receive_key,
        .registered = is_stable ? &tenant->memory->region : NULL};
    if (status == PH_OK)
        status = ph__tcp_link_create(&options, &link);
    if (status != PH_OK) {
        close(socket);
        ph__frame_key_destroy(send_key);
        ph__frame_key_destroy(receive_key);
        return status;
    }
    link->owner = ph__shard_link_owner(tenant->shards[core], worker);
    ph__shard_attach(tenant->shards[core], worker, link, true);
    return PH_OK;
}

bool ph__tenant_is_linked(const struct ph_tenant *tenant, uint32_t worker)
{
    for (uint16_t core = 0; core < tenant->num_cores; core++) {
        if (ph__shard_link(tenant->shards[core], worker) == NULL)
            return false;
    }
    return true;
}

/* ---- running ---- */

struct core_change {
    struct ph_tenant *tenant;
    struct ph_core *core;
    struct ph_shard *shard;
    uint32_t worker;
    const char *too_many; /* that it could not be added for; static, NULL: it was */
};

static void add_to_core(void *context)
{
    struct core_change *change = context;
    change->too_many = ph__core_too_many(change->core, ph__shard_num_workers(change->shard));
    if (change->too_many != NULL)
        return;
    ph__shard_begin_touch(change->shard);
    if (ph__core_add_shard(change->core, change->shard) != PH_OK)
        change->too_many = "connections to watch";
}

static void remove_from_core(void *context)
{
    const struct core_change *change = context;
    ph__core_remove_shard(change->core, change->shard);
}

static void keep_link(struct ph_tenant *tenant, const struct ph_link *link)
{
    if (link != NULL)
        ph__traffic_add(&tenant->past.traffic, link->transport->name, &link->counters);
}

static void remove_worker(void *context)
{
    const struct core_change *change = context;
    keep_link(change->tenant, ph__shard_link(change->shard, change->worker));
    ph__shard_remove_worker(change->shard, change->worker);
}

static void retire_worker(void *context)
{
    const struct core_change *change = context;
    keep_link(change->tenant, ph__shard_link(change->shard, change->worker));
    ph__shard_retire_worker(change->shard, change->worker);
}

static void stop_cores(struct ph_tenant *tenant, uint16_t num_cores)
{
    for (uint16_t core = 0; core < num_cores; core++) {
        struct core_change change = {.core = tenant->cores[core], .shard = tenant->shards[core]};
        ph__core_call(tenant->cores[core], remove_from_core, &change);
    }
}

ph_status ph__tenant_start(struct ph_tenant *tenant)
{
    atomic_store(&tenant->num_touched, 0);
    tenant->has_begun = false;
    for (uint16_t core = 0; core < tenant->num_cores; core++) {
        struct core_change change = {.core = tenant->cores[core], .shard = tenant->shards[core]};
        ph__core_call(tenant->cores[core], add_to_core, &change);
        if (change.too_many == NULL)
            continue;
        stop_cores(tenant, core);
        return ph_fail(
            PH_ERROR_MEMORY, "service '%s': the hub has too many %s", tenant->settings.name, change.too_many);
    }
    tenant->state = PH_TENANT_RUNNING;
    return PH_OK;
}

bool ph__tenant_is_touched(const struct ph_tenant *tenant)
{
    return atomic_load(&tenant->num_touched) == tenant->num_cores;
}

static void change_worker(struct ph_tenant *tenant, uint32_t worker, ph_core_function function)
{
    for (uint16_t core = 0; core < tenant->num_cores; core++) {
        struct core_change change = {
            .tenant = tenant, .core = tenant->cores[core], .shard = tenant->shards[core], .worker = worker};
        ph__core_call(tenant->cores[core], function, &change);
    }
}

void ph__tenant_remove_worker(struct ph_tenant *tenant, uint32_t worker)
{
    change_worker(tenant, worker, remove_worker);
}

void ph__tenant_retire_worker(struct ph_tenant *tenant, uint32_t worker)
{
    const bool may_shrink = tenant->settings.service.on_death == PH_HUB_SHRINK;
    change_worker(tenant, worker, may_shrink ? remove_worker : retire_worker);
}

static void end_shard(struct ph_tenant *tenant, struct ph_shard *shard)
{
    if (shard == NULL)
        return;
    ph__shard_counters_add(&tenant->past.counters, ph__shard_counters(shard));
    for (uint32_t worker = 0; worker < tenant->settings.service.num_workers; worker++)
        keep_link(tenant, ph__shard_link(shard, worker));
    ph__shard_destroy(shard);
}

void ph__tenant_stop(struct ph_tenant *tenant)
{
    if (tenant->state == PH_TENANT_RUNNING)
        stop_cores(tenant, tenant->num_cores);
    for (uint16_t core = 0; tenant->shards != NULL && core < tenant->num_cores; core++)
        end_shard(tenant, tenant->shards[core]);
    ph__job_trace_destroy(tenant->job.trace);
    ph__wide_destroy(tenant->job.wide);
    ph__job_memory_destroy(tenant->memory);
    ph__layout_destroy(tenant->layout);
    free(tenant->shards);
    free(tenant->parts);
    free(tenant->core_of_chunk);
    ph__chunk_lists_fini(&tenant->chunks_of_core);
    free(tenant->optimizer_of_key);
    free(tenant->keys);
    ph__snapshot_destroy(tenant->saves.snapshot);
    tenant->saves.snapshot = NULL;
    tenant->saves.is_wanted = tenant->saves.is_under_way = tenant->saves.is_restoring = false;
    tenant->saves.is_watched = false;
    atomic_store(&tenant->saves.has_reached, false);
    tenant->saves.parts = (struct ph_tenant_parts){.here = tenant->saves.parts.here};
    tenant->saves.num_runs++;
    tenant->is_restored = tenant->is_going = false;
    tenant->first_iteration = 0;
    tenant->shards = NULL;
    tenant->parts = NULL;
    tenant->job.trace = NULL;
    tenant->job.wide = NULL;
    tenant->memory = NULL;
    tenant->layout = NULL;
    tenant->core_of_chunk = NULL;
    tenant->optimizer_of_key = NULL;
    tenant->keys = NULL;
    tenant->num_keys = 0;
    tenant->num_bytes = 0;
    tenant->state = PH_TENANT_GATHERING;
}
