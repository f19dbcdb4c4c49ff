/* Snapshots of a tenant, from the control thread: what its shards do is done in their core threads, by calls. See tenant.h. */
#include "hub/shard/tenant.h"

struct shard_call {
    struct ph_shard *shard;
    struct ph_snapshot *snapshot;
    uint64_t version; /* in or out */
};

/* One after the other. Returns the largest version that they bring. */
static uint64_t call_shards(struct ph_tenant *tenant, ph_core_function function, uint64_t version)
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

uint64_t ph__tenant_hold(struct ph_tenant *tenant)
{
    return call_shards(tenant, hold, 0);
}

void ph__tenant_release(struct ph_tenant *tenant)
{
    call_shards(tenant, release, 0);
}

void ph__tenant_begin_snapshot(struct ph_tenant *tenant, uint64_t version)
{
    tenant->saves.is_under_way = true;
    tenant->saves.is_watched = false;
    tenant->saves.version = version;
    atomic_store(&tenant->saves.num_shards, tenant->num_cores);
    call_shards(tenant, begin, version);
}

void ph__tenant_watch(struct ph_tenant *tenant, uint64_t version)
{
    tenant->saves.is_watched = true;
    atomic_store(&tenant->saves.has_reached, false);
    call_shards(tenant, watch, version);
}

bool ph__tenant_is_copied(const struct ph_tenant *tenant)
{
    return atomic_load(&tenant->saves.num_shards) == 0;
}

/* ---- going on ---- */

void ph__tenant_restore_books(struct ph_tenant *tenant)
{
    const struct ph_job_memory *memory = tenant->memory;
    for (uint32_t chunk = 0; chunk < tenant->layout->sizes.num_chunks; chunk++) {
        if (!ph__chunk_is_here(&tenant->layout->chunks[chunk]))
            continue;
        memory->chunks[chunk].version = tenant->saves.snapshot->chunks[chunk].version;
        for (uint32_t worker = 0; worker < memory->num_workers; worker++) {
            struct ph_chunk_worker *request = ph__request(memory, chunk, worker);
            request->pushed = request->counted = request->answered = tenant->first_iteration;
        }
    }
}

void ph__tenant_begin_restore(struct ph_tenant *tenant)
{
    tenant->saves.is_restoring = true;
    atomic_store(&tenant->saves.num_shards, tenant->num_cores);
    for (uint16_t core = 0; core < tenant->num_cores; core++)
        ph__shard_begin_restore(tenant->shards[core], tenant->saves.snapshot);
}
