/* Collects a hub's figures; see server_figures.h. */
#include "hub/server/server_figures.h"

#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"

/* ---- in a core thread ---- */

static void add_links(
    struct ph__tenant_figures *figures, struct ph__shard *shard, struct ph__traffic *traffic)
{
    for (uint32_t worker = 0; worker < figures->tenant->settings.service.num_workers; worker++) {
        const struct ph__link *link = ph__shard_link(shard, worker);
        if (link == NULL)
            continue;
        figures->workers[worker].transport = link->transport->name;
        ph__link_counters_add(&figures->workers[worker].links, &link->counters);
        ph__traffic_add(traffic, link->transport->name, &link->counters);
    }
}

static void add_shard(
    struct ph__tenant_figures *figures, struct ph__shard *shard, struct ph__traffic *traffic)
{
    uint64_t least, most;
    ph__shard_counters_add(&figures->counters, ph__shard_counters(shard));
    ph__shard_versions(shard, &least, &most);
    if (least < figures->iteration)
        figures->iteration = least;
    add_links(figures, shard, traffic);
}

struct reading {
    struct ph__hub_figures *figures;
    uint16_t core;
};

static void read_core(void *context)
{
    const struct reading *reading = context;
    for (size_t i = 0; i < reading->figures->num_tenants; i++) {
        struct ph__tenant_figures *figures = &reading->figures->tenants[i];
        if (figures->tenant->state == PH_TENANT_RUNNING)
            add_shard(figures, figures->tenant->shards[reading->core], &reading->figures->traffic);
    }
}

/* ---- in the control thread ---- */

static ph_status begin_tenant(struct ph__hub_figures *figures, const struct ph__tenant *tenant)
{
    struct ph__tenant_figures *entry = &figures->tenants[figures->num_tenants];
    *entry = (struct ph__tenant_figures){.tenant = tenant, .counters = tenant->past.counters};
    const bool has_chunks = tenant->state == PH_TENANT_RUNNING && tenant->layout->sizes.num_here > 0;
    entry->iteration = has_chunks ? UINT64_MAX : 0;
    entry->workers = calloc(tenant->settings.service.num_workers, sizeof *entry->workers);
    if (entry->workers == NULL)
        return ph__out_of_memory("a hub's figures");
    figures->num_tenants++;
    figures->used_bytes += ph__tenant_bytes(tenant);
    ph__traffic_merge(&figures->traffic, &tenant->past.traffic);
    return PH_OK;
}

static ph_status begin(const struct ph_hub_server *server, struct ph__hub_figures *figures)
{
    figures->tenants = calloc((size_t)server->num_tenants + 1, sizeof *figures->tenants);
    if (figures->tenants == NULL)
        return ph__out_of_memory("a hub's figures");
    figures->traffic = server->past_traffic;
    figures->seconds = (double)(ph__clock_ns() - server->started_ns) * 1e-9;
    for (const struct ph_session *session = server->sessions; session != NULL; session = session->next)
        figures->num_connections++;
    for (const struct ph__tenant *tenant = server->tenants; tenant != NULL; tenant = tenant->next)
        PH_TRY(begin_tenant(figures, tenant));
    return PH_OK;
}

ph_status ph__hub_figures_read(struct ph_hub_server *server, struct ph__hub_figures *figures_out)
{
    struct ph__hub_figures figures = {0};
    const ph_status status = begin(server, &figures);
    if (status != PH_OK) {
        ph__hub_figures_fini(&figures);
        return status;
    }
    for (uint16_t core = 0; core < server->num_cores; core++) {
        struct reading reading = {.figures = &figures, .core = core};
        ph__core_call(server->cores[core], read_core, &reading);
    }
    *figures_out = figures;
    return PH_OK;
}

void ph__hub_figures_fini(struct ph__hub_figures *figures)
{
    for (size_t i = 0; i < figures->num_tenants; i++)
        free(figures->tenants[i].workers);
    free(figures->tenants);
    *figures = (struct ph__hub_figures){0};
}
