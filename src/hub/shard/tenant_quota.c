/* What a tenant takes of its hub's memory: counted from the sizes of its layout, and so before there is one. See tenant.h. */
#include "base/sizes.h"
#include "hub/keep/optimizer_slots.h"
#include "hub/layout/spread.h"
#include "hub/shard/shard_trace.h"
#include "hub/shard/tenant.h"
#include "net/link/tcp_link.h"

bool ph__tenant_sends_parameters(const struct ph_tenant *tenant)
{
    for (uint32_t i = 0; i < tenant->settings.service.num_workers; i++) {
        if (!tenant->members[i].is_shared)
            return true;
    }
    return false;
}

struct ph_job_memory_options ph__tenant_memory_options(
    const struct ph_tenant *tenant, const struct ph_tenant_options *options)
{
    const struct ph_hub_service *service = &tenant->settings.service;
    return (struct ph_job_memory_options){
        .num_workers = service->num_workers,
        .depth = service->depth,
        .num_versions = service->depth > 1 || ph__tenant_sends_parameters(tenant) ? 2 : 1,
        .has_m = ph__service_has_m(service),
        .has_s = ph__service_has_s(service),
        .has_sums = options->is_wide || service->clip_norm > 0 || service->order == PH_HUB_ARRIVAL_ORDER,
    };
}

/* ---- a worker ---- */

/* Room for all that can be under way at once: pushes, each with a new learning rate before it, a pull and an assignment. */
size_t ph__tenant_ring_capacity(const struct ph_tenant *tenant, size_t num_fullest)
{
    const size_t wanted = num_fullest * (2 * tenant->settings.service.depth + 2) + 64;
    size_t capacity = 4;
    while (capacity < wanted)
        capacity *= 2;
    return capacity;
}

static struct ph_worker_region_sizes region_sizes(
    const struct ph_tenant *tenant, uint32_t worker, size_t gradient_bytes, size_t ring_capacity)
{
    return (struct ph_worker_region_sizes){
        .num_cores = tenant->num_cores,
        .ring_capacity = ring_capacity,
        .gradient_bytes = gradient_bytes,
        .depth = tenant->settings.service.depth,
        .has_own_parameters = tenant->members[worker].has_own_parameters,
    };
}

struct ph_worker_region_sizes ph__tenant_region_sizes(const struct ph_tenant *tenant, uint32_t worker)
{
    return region_sizes(tenant, worker, tenant->layout->sizes.gradient_bytes, tenant->ring_capacity);
}

static uint64_t worker_bytes(
    const struct ph_tenant *tenant, uint32_t worker, size_t gradient_bytes, size_t ring_capacity)
{
    const struct ph_worker_region_sizes sizes = region_sizes(tenant, worker, gradient_bytes, ring_capacity);
    if (tenant->members[worker].is_shared)
        return ph__worker_region(&sizes).size;
    return gradient_bytes * sizes.depth + tenant->num_cores * ph__tcp_link_bytes(ring_capacity);
}

/* ---- all of it ---- */

uint64_t ph__tenant_bytes(const struct ph_tenant *tenant)
{
    const struct ph_tenant_saves *saves = &tenant->saves;
    const bool is_of_run = tenant->num_bytes > 0 && saves->task_run == saves->num_runs;
    uint64_t bytes = tenant->num_bytes;
    if (saves->task != NULL && !is_of_run)
        bytes += ph__checkpoint_task_bytes(saves->task);
    for (uint32_t i = 0; i < tenant->settings.service.num_workers; i++)
        bytes += tenant->members[i].keys_bytes;
    return bytes;
}

static uint64_t book_bytes(const struct ph_tenant *tenant, const struct ph_tenant_options *options,
    const struct ph_layout_sizes *sizes, size_t num_fullest)
{
    const size_t a_key = sizeof *tenant->keys + sizeof *tenant->optimizer_of_key;
    const size_t traced = options->trace != NULL ? PH_HUB_MAX_DEPTH * sizeof(struct ph_chunk_times) : 0;
    return ph__layout_bytes(sizes) + sizes->num_keys * a_key +
           sizes->num_chunks *
               (sizeof *tenant->core_of_chunk + sizeof *tenant->chunks_of_core.chunks + traced) +
           tenant->num_cores * ph__shard_bytes(&tenant->settings.service, num_fullest);
}

ph_status ph__tenant_check_quota(struct ph_tenant *tenant, const struct ph_tenant_options *options,
    const struct ph_layout_sizes *sizes, size_t num_fullest)
{
    const uint64_t max_bytes = options->max_bytes;
    const struct ph_job_memory_options memory = ph__tenant_memory_options(tenant, options);
    const size_t ring_capacity = ph__tenant_ring_capacity(tenant, num_fullest);
    uint64_t bytes = ph__job_memory_bytes(&memory, sizes) + book_bytes(tenant, options, sizes, num_fullest);
    if (options->has_snapshots)
        bytes += ph__snapshot_bytes(&tenant->settings, sizes);
    for (uint32_t i = 0; i < tenant->settings.service.num_workers; i++)
        bytes += worker_bytes(tenant, i, sizes->gradient_bytes, ring_capacity);
    const uint64_t at_most = bytes + ph__spread_bytes(sizes->num_chunks); /* while they are spread */
    if (at_most > max_bytes)
        return ph_fail(PH_ERROR_MEMORY, "service '%s' takes %llu bytes on the hub, and %llu are left for it",
            tenant->settings.name, (unsigned long long)at_most, (unsigned long long)max_bytes);
    tenant->num_bytes = bytes;
    return PH_OK;
}
