/* The services of a hub: created, found and destroyed. */
#include <string.h>

#include "hub/server/server_state.h"
#include "hub/shard/shard_wide.h"

static struct ph_tenant *find_tenant(const struct ph_hub_server *server, const char *name)
{
    for (struct ph_tenant *tenant = server->tenants; tenant != NULL; tenant = tenant->next) {
        if (strcmp(tenant->settings.name, name) == 0)
            return tenant;
    }
    return NULL;
}

ph_status ph__server_look_for(struct ph_hub_server *server, const char *name, struct ph_tenant **tenant_out)
{
    *tenant_out = find_tenant(server, name);
    if (*tenant_out != NULL)
        return PH_OK;
    PH_TRY(ph__server_look_for_checkpoint(server, name));
    *tenant_out = find_tenant(server, name);
    return PH_OK;
}

void ph__server_add_tenant(struct ph_hub_server *server, struct ph_tenant *tenant)
{
    tenant->next = server->tenants;
    server->tenants = tenant;
    server->num_tenants++;
}

void ph__server_forget(struct ph_hub_server *server, struct ph_tenant *tenant)
{
    struct ph_tenant **link = &server->tenants;
    while (*link != tenant)
        link = &(*link)->next;
    *link = tenant->next;
    server->num_tenants--;
    ph__traffic_merge(&server->past_traffic, &tenant->past.traffic);
    ph__tenant_destroy(tenant);
}

ph_status ph__server_check_share(const struct ph_tenant *tenant, const struct ph_hub_share *share)
{
    const struct ph_hub_share *own = &tenant->settings.share;
    if (own->hub == share->hub && own->num_hubs == share->num_hubs)
        return PH_OK;
    const bool is_found = tenant->saves.is_found;
    return ph_fail(is_found ? PH_ERROR_CHECKPOINT : PH_ERROR_USAGE,
        "service '%s': %s hub %u of %u, not hub %u of %u", tenant->settings.name,
        is_found ? "the checkpoint here is of" : "this is", own->hub + 1u, own->num_hubs, share->hub + 1u,
        share->num_hubs);
}

static ph_status check_wide(const struct ph_service_settings *settings)
{
    PH_TRY(ph__wide_check(&settings->service));
    if (settings->share.num_hubs > 1)
        return ph_fail(PH_ERROR_USAGE,
            "service '%s': this hub aggregates wide, for comparison: keys on one hub only", settings->name);
    return PH_OK;
}

static ph_status create_service(
    struct ph_hub_server *server, const struct ph_service_settings *settings, struct ph_tenant **tenant_out)
{
    const struct ph_hub_service *service = &settings->service;
    PH_TRY(ph__server_look_for(server, service->name, tenant_out));
    const struct ph_tenant *tenant = *tenant_out;
    if (tenant != NULL) {
        if (ph__tenant_is_ending(tenant))
            return ph_fail(PH_ERROR_USAGE, "service '%s' is just being destroyed", service->name);
        if (tenant->settings.service.nonce != service->nonce)
            return ph_fail(PH_ERROR_USAGE,
                "service '%s' exists with another nonce: it is another job's, with other workers; choose "
                "another name (parallel.hub_job), or end that job: phloem hub destroy ADDRESS %s",
                service->name, service->name);
        PH_TRY(ph__server_check_share(tenant, &settings->share));
        if (!ph__service_is_same(&tenant->settings, settings))
            return ph_fail(PH_ERROR_USAGE, "service '%s' exists, with other settings", service->name);
        return PH_OK;
    }
    if (server->num_tenants >= server->options.max_jobs)
        return ph_fail(
            PH_ERROR_MEMORY, "the hub has %u jobs already, as many as it may", server->num_tenants);
    if (server->options.is_wide)
        PH_TRY(check_wide(settings));
    PH_TRY(ph__tenant_create(settings, tenant_out));
    ph__server_add_tenant(server, *tenant_out);
    ph__server_log_service(server, *tenant_out, "service_created");
    return PH_OK;
}

/* Answered when the service has a file, so that it survives whatever comes. */
ph_status ph__server_request_create(struct ph_session *session, const struct ph_control_frame *frame)
{
    struct ph_service_settings settings;
    struct ph_tenant *tenant;
    ph_status status = ph__get_service(frame->body, frame->size, &settings);
    if (status == PH_OK)
        status = create_service(session->server, &settings, &tenant);
    if (status != PH_OK || session->server->options.checkpoint_folder == NULL || tenant->saves.has_file) {
        ph__session_answer(session, status);
        return PH_OK;
    }
    ph__server_await_checkpoint(session, tenant, 1);
    ph__server_keep(session->server, tenant);
    return PH_OK;
}

/* Where it has a file it is gone when that is. */
static void end_service(struct ph_hub_server *server, struct ph_tenant *tenant)
{
    tenant->must_end = false;
    ph__server_end_run(server, tenant, PH_ERROR_PEER, "the service was destroyed");
    ph__server_log_service(server, tenant, "service_destroyed");
    if (server->options.checkpoint_folder != NULL) {
        tenant->state = PH_TENANT_ENDING;
        ph__server_keep(server, tenant);
        return;
    }
    ph__server_answer_waiting(server, tenant, UINT64_MAX, PH_OK);
    ph__server_forget(server, tenant);
}

/* A synchronous job has ended when its first worker has left, and its others may still have to take what that one has pushed. */
static bool is_being_left(const struct ph_tenant *tenant)
{
    const struct ph_hub_service *service = &tenant->settings.service;
    return tenant->state == PH_TENANT_RUNNING && tenant->num_joined < service->num_workers &&
           service->mode == PH_HUB_SYNCHRONOUS && service->on_death == PH_HUB_ABORT;
}

ph_status ph__server_request_destroy(struct ph_session *session, const struct ph_control_frame *frame)
{
    struct ph_join which;
    PH_TRY(ph__get_join(frame->body, frame->size, &which));
    struct ph_hub_server *server = session->server;
    struct ph_tenant *tenant = find_tenant(server, which.name);
    if (tenant == NULL || tenant->settings.service.nonce != which.nonce) {
        ph__session_answer(
            session, ph_fail(PH_ERROR_USAGE, "there is no service '%s' with this nonce", which.name));
        return PH_OK;
    }
    ph__server_await_checkpoint(session, tenant, UINT64_MAX);
    if (is_being_left(tenant))
        tenant->must_end = true;
    else if (tenant->state != PH_TENANT_ENDING)
        end_service(server, tenant);
    return PH_OK;
}

static ph_status check_operator(
    const struct ph_session *session, const char *name, const struct ph_tenant *tenant)
{
    if (!session->is_local)
        return ph_fail(PH_ERROR_USAGE, "a service is ended without its nonce over the local socket only");
    return tenant != NULL ? PH_OK : ph_fail(PH_ERROR_USAGE, "there is no service '%s'", name);
}

/* The hub's own user asks, who could as well end the hub: nobody else is let in over the local socket. */
ph_status ph__server_request_end(struct ph_session *session, const struct ph_control_frame *frame)
{
    char name[PH_HUB_MAX_NAME + 1];
    PH_TRY(ph__get_service_name(frame->body, frame->size, name));
    struct ph_tenant *tenant = find_tenant(session->server, name);
    const ph_status status = check_operator(session, name, tenant);
    if (status != PH_OK) {
        ph__session_answer(session, status);
        return PH_OK;
    }
    ph__server_await_checkpoint(session, tenant, UINT64_MAX);
    if (tenant->state != PH_TENANT_ENDING)
        end_service(session->server, tenant);
    return PH_OK;
}

void ph__server_end_services(struct ph_hub_server *server)
{
    for (struct ph_tenant *tenant = server->tenants, *next; tenant != NULL; tenant = next) {
        next = tenant->next;
        if (tenant->must_end && tenant->state == PH_TENANT_GATHERING)
            end_service(server, tenant);
    }
}

void ph__server_end_tenants(struct ph_hub_server *server)
{
    while (server->tenants != NULL) {
        struct ph_tenant *tenant = server->tenants;
        ph__server_end_run(server, tenant, PH_ERROR_PEER, "the hub was stopped");
        ph__server_answer_waiting(server, tenant, UINT64_MAX, ph_fail(PH_ERROR_PEER, "the hub was stopped"));
        ph__server_end_task(server, tenant);
        ph__server_forget(server, tenant);
    }
}
