/* Runs a tenant: its links, its time on the core threads, its snapshots, the end of its run (tenant.h). */
#include <stdlib.h>
#include <unistd.h>

#include "hub/shard/shard_trace.h"
#include "hub/shard/shard_wide.h"
#include "hub/shard/tenant.h"
#include "net/link/shared_link.h"
#include "net/link/tcp_link.h"
#include "net/waiter.h"

/* ---- links ---- */

static ph_status link_core(struct ph__tenant *tenant, uint32_t worker, uint16_t core, int *doorbell_out)
{
    const struct ph__worker_region_sizes sizes = ph__tenant_region_sizes(tenant, worker);
    const struct ph__worker_region region = ph__worker_region(&sizes);
    int ends[2];
    struct ph__link *link;
    PH_TRY(ph__doorbell_create(ends));
    const struct ph__shared_link_options options = {
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

ph_status ph__tenant_link_shared(struct ph__tenant *tenant, uint32_t worker, int *doorbells_out)
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

ph_status ph__tenant_link_tcp(struct ph__tenant *tenant, uint32_t worker, uint16_t core, int socket,
    struct ph__frame_key *send_key, struct ph__frame_key *receive_key)
{
    struct ph__link *link;
    ph_status status = PH_OK;
    if (core >= tenant->num_cores || ph__shard_link(tenant->shards[core], worker) != NULL)
        status = ph_fail(
            PH_ERROR_PEER, "worker %u: core thread %u is unknown, or has a link already", worker, core);
    /* In the other modes a chunk may be updated before a worker has read what was sent. */
    const bool is_stable = tenant->settings.service.mode == PH_HUB_SYNCHRONOUS;
    const struct ph__tcp_link_options options = {.socket = socket,
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

bool ph__tenant_is_linked(const struct ph__tenant *tenant, uint32_t worker)
{
    for (uint16_t core = 0; core < tenant->num_cores; core++) {
        if (ph__shard_link(tenant->shards[core], worker) == NULL)
            return false;
    }
    return true;
}

/* ---- running ---- */

struct core_change {
    struct ph__tenant *tenant;
    struct ph__core *core;
    struct ph__shard *shard;
    uint32_t worker;
    const char *too_many; /* limit that kept it from being added, static; NULL: it was added */
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

static void keep_link(struct ph__tenant *tenant, const struct ph__link *link)
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

static void stop_cores(struct ph__tenant *tenant, uint16_t num_cores)
{
    for (uint16_t core = 0; core < num_cores; core++) {
        struct core_change change = {.core = tenant->cores[core], .shard = tenant->shards[core]};
        ph__core_call(tenant->cores[core], remove_from_core, &change);
    }
}

ph_status ph__tenant_start(struct ph__tenant *tenant)
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

static void change_worker(struct ph__tenant *tenant, uint32_t worker, ph__core_function function)
{
    for (uint16_t core = 0; core < tenant->num_cores; core++) {
        struct core_change change = {
            .tenant = tenant, .core = tenant->cores[core], .shard = tenant->shards[core], .worker = worker};
        ph__core_call(tenant->cores[core], function, &change);
    }
}

void ph__tenant_remove_worker(struct ph__tenant *tenant, uint32_t worker)
{
    change_worker(tenant, worker, remove_worker);
}

void ph__tenant_retire_worker(struct ph__tenant *tenant, uint32_t worker)
{
    const bool may_shrink = tenant->settings.service.on_death == PH_HUB_SHRINK;
    change_worker(tenant, worker, may_shrink ? remove_worker : retire_worker);
}

static void end_shard(struct ph__tenant *tenant, struct ph__shard *shard)
{
    if (shard == NULL)
        return;
    ph__shard_counters_add(&tenant->past.counters, ph__shard_counters(shard));
    for (uint32_t worker = 0; worker < tenant->settings.service.num_workers; worker++)
        keep_link(tenant, ph__shard_link(shard, worker));
    ph__shard_destroy(shard);
}

void ph__tenant_stop(struct ph__tenant *tenant)
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
    free(tenant->listeners);
    free(tenant->core_of_chunk);
    ph__chunk_lists_fini(&tenant->chunks_of_core);
    free(tenant->optimizer_of_key);
    free(tenant->keys);
    ph__snapshot_destroy(tenant->saves.snapshot);
    tenant->saves.snapshot = NULL;
    tenant->saves.is_wanted = tenant->saves.is_under_way = tenant->saves.is_restoring = false;
    tenant->saves.is_watched = false;
    atomic_store(&tenant->saves.has_reached, false);
    tenant->saves.parts = (struct ph__tenant_parts){.here = tenant->saves.parts.here};
    tenant->saves.num_runs++;
    tenant->is_restored = tenant->is_going = false;
    tenant->first_iteration = 0;
    tenant->shards = NULL;
    tenant->listeners = NULL;
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

/* ---- snapshots: shards are called from the control thread, in their core threads ---- */

struct shard_call {
    struct ph__shard *shard;
    struct ph__snapshot *snapshot;
    uint64_t version; /* argument or result */
};

/* Calls the shards one after the other. Returns the largest version that they give. */
static uint64_t call_shards(struct ph__tenant *tenant, ph__core_function function, uint64_t version)
{
    uint64_t most = 0;
    for (uint16_t core = 0; core < tenant->num_cores; core++) {
        struct shard_call call = {
            .shard = tenant->shards[core], .snapshot = tenant->saves.snapshot, .version = version};
        ph__core_call(tenant->cores[core], function, &call);
        most = call.version > most ? call.version : most;
    }
    return most;
}

static void hold(void *context)
{
    struct shard_call *call = context;
    uint64_t least;
    ph__shard_hold(call->shard);
    ph__shard_versions(call->shard, &least, &call->version);
}

static void release(void *context)
{
    const struct shard_call *call = context;
    ph__shard_release(call->shard);
}

static void begin(void *context)
{
    const struct shard_call *call = context;
    ph__shard_begin_snapshot(call->shard, call->snapshot, call->version);
    ph__shard_release(call->shard);
}

static void watch(void *context)
{
    const struct shard_call *call = context;
    ph__shard_watch(call->shard, call->version);
    ph__shard_release(call->shard);
}

uint64_t ph__tenant_hold(struct ph__tenant *tenant)
{
    return call_shards(tenant, hold, 0);
}

void ph__tenant_release(struct ph__tenant *tenant)
{
    call_shards(tenant, release, 0);
}

void ph__tenant_begin_snapshot(struct ph__tenant *tenant, uint64_t version)
{
    tenant->saves.is_under_way = true;
    tenant->saves.is_watched = false;
    tenant->saves.version = version;
    atomic_store(&tenant->saves.num_shards, tenant->num_cores);
    call_shards(tenant, begin, version);
}

void ph__tenant_watch(struct ph__tenant *tenant, uint64_t version)
{
    tenant->saves.is_watched = true;
    atomic_store(&tenant->saves.has_reached, false);
    call_shards(tenant, watch, version);
}
