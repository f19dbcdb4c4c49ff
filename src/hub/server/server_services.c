/* Services of a hub: creates, finds (also in the checkpoint folder) and destroys them. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "hub/keep/job_checkpoint.h"
#include "hub/server/server_state.h"
#include "hub/shard/shard_wide.h"

/* Logs an event: "service_created", "service_restored" or "service_destroyed". */
static void log_service(
    const struct ph_hub_server *server, const struct ph__tenant *tenant, const char *event)
{
    PH_LOG(server->log, PH_LOG_INFO, event, ph__log_text("job", tenant->settings.name),
        ph__log_count("workers", tenant->settings.service.num_workers),
        ph__log_text("mode", ph__service_mode_name(tenant->settings.service.mode)),
        ph__log_count("hub", tenant->settings.share.hub + 1u),
        ph__log_count("hubs", tenant->settings.share.num_hubs));
}

/* ---- the checkpoint folder ---- */

/* The hub scans its checkpoint folder when it starts, and when a request names a service that is not
 * registered. The folder holds the files of services, and the open parts of those that several hubs share. */

/* Checks that the path can be opened. A file that exists but cannot be opened may be whole, so the error is
 * not PH_ERROR_CHECKPOINT. */
static ph_status check_opening(const char *path)
{
    struct stat about;
    const bool is_known = stat(path, &about) == 0;
    if (is_known ? !S_ISREG(about.st_mode) : errno == ENOENT)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: not a file", path);
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return ph_fail(PH_ERROR_DISK, "%s: %s", path, strerror(errno));
    close(descriptor);
    return PH_OK;
}

static ph_status take_part(struct ph__tenant *tenant, const char *path, uint64_t iteration)
{
    struct ph__tenant_saves *saves = &tenant->saves;
    struct ph__job_checkpoint_head head;
    PH_TRY(check_opening(path));
    PH_TRY(ph__job_checkpoint_read_head(path, &head));
    if (head.num_keys == 0 || head.iteration != iteration ||
        !ph__service_is_same(&head.settings, &tenant->settings))
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: not a part of service '%s' at iteration %" PRIu64, path,
            tenant->settings.name, iteration);
    if (!ph__server_has_room(tenant))
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the service has too many parts", path);
    saves->chunk_bytes = head.chunk_bytes;
    ph__parts_add(&saves->parts.here, iteration);
    return PH_OK;
}

struct search {
    struct ph_hub_server *server;
    struct ph__tenant *tenant;
    const char *path; /* path of the kept part's file */
};

/* Takes a part of the service. One older than the kept part is a leftover, since all hubs have a newer one,
 * and is removed. */
static ph_status visit_part(void *argument, const char *name)
{
    const struct search *search = argument;
    const struct ph__tenant_saves *saves = &search->tenant->saves;
    struct ph__arena arena = {0};
    uint64_t iteration;
    if (!ph__job_part_is_of(search->path, name, &iteration))
        return PH_OK;
    const char *path = ph__path_join(&arena, search->server->options.checkpoint_folder, name);
    ph_status status = path != NULL ? PH_OK : PH_ERROR_MEMORY;
    if (status == PH_OK && saves->has_parameters && iteration <= saves->iteration)
        unlink(path);
    else if (status == PH_OK)
        status = take_part(search->tenant, path, iteration);
    if (status == PH_ERROR_CHECKPOINT) {
        ph__server_log_checkpoint_failed(search->server, search->tenant, "checkpoint_not_used");
        status = PH_OK;
    }
    ph__arena_fini(&arena);
    return status;
}

/* Finds the service's parts. A damaged part is reported and left alone. PH_ERROR_DISK, PH_ERROR_MEMORY: the
 * parts cannot be read now. */
static ph_status find_parts(struct ph_hub_server *server, struct ph__tenant *tenant)
{
    char *path;
    PH_TRY(ph__job_checkpoint_path(server->options.checkpoint_folder, tenant->settings.name, &path));
    if (tenant->saves.has_parameters)
        tenant->saves.parts.here.kept = tenant->saves.iteration;
    struct search search = {.server = server, .tenant = tenant, .path = path};
    const ph_status status = ph__directory_visit(server->options.checkpoint_folder, visit_part, &search);
    free(path);
    return status;
}

/* Restores a service from its file before any worker asks for it. Parameters are read when all join. */
static ph_status restore_file(struct ph_hub_server *server, const char *path)
{
    struct ph__job_checkpoint_head head;
    struct ph__tenant *tenant;
    char *wanted;
    PH_TRY(ph__job_checkpoint_read_head(path, &head));
    PH_TRY(ph__job_checkpoint_path(server->options.checkpoint_folder, head.settings.name, &wanted));
    const bool is_there =
        strcmp(strrchr(path, '/'), strrchr(wanted, '/')) == 0; /* the folder itself may have several names */
    free(wanted);
    if (!is_there)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: the name of the file does not fit service '%s'", path,
            head.settings.name);
    if (server->num_tenants >= server->options.max_jobs)
        return ph_fail(PH_ERROR_MEMORY, "%s: the hub has %u jobs already, as many as hub.max_jobs allows",
            path, server->num_tenants);
    PH_TRY(ph__tenant_create(&head.settings, &tenant));
    tenant->saves.has_file = tenant->saves.is_found = true;
    tenant->saves.has_parameters = head.num_keys > 0;
    tenant->saves.iteration = head.iteration;
    tenant->saves.chunk_bytes = head.chunk_bytes;
    ph__server_add_tenant(server, tenant);
    if (ph__tenant_has_parts(tenant)) {
        const ph_status status = find_parts(server, tenant);
        if (status != PH_OK) {
            ph__server_forget(server, tenant);
            return status;
        }
    }
    log_service(server, tenant, "service_restored");
    return PH_OK;
}

static ph_status visit_file(void *argument, const char *name)
{
    struct ph_hub_server *server = argument;
    struct ph__arena arena = {0};
    ph_status status = PH_OK;
    const char *path = ph__path_join(&arena, server->options.checkpoint_folder, name);
    if (path == NULL)
        status = PH_ERROR_MEMORY;
    else if (ph__path_ends_in(name, PH_CHECKPOINT_TEMPORARY_ENDING))
        unlink(path);
    else if (ph__path_ends_in(name, PH_CHECKPOINT_ENDING) && !ph__job_part_is_open(name) &&
             restore_file(server, path) != PH_OK)
        ph__server_log_checkpoint_failed(server, NULL, "checkpoint_not_used");
    ph__arena_fini(&arena);
    return status;
}

static ph_status open_folder(struct ph_hub_server *server, const char *path)
{
    PH_TRY(ph__directory_create(path));
    const ph_status status = ph__directory_lock(path, &server->checkpoint_lock);
    if (status != PH_OK)
        return status == PH_ERROR_USAGE ? PH_ERROR_CONFIG : status; /* another hub has locked it */
    return ph__directory_visit(path, visit_file, server);
}

ph_status ph__server_open_checkpoints(struct ph_hub_server *server)
{
    if (server->options.checkpoint_folder == NULL)
        return PH_OK;
    return ph__server_name_option(
        "checkpoint_folder", open_folder(server, server->options.checkpoint_folder));
}

/* Restores a service that is not registered from its file, if there is one. PH_ERROR_CHECKPOINT says why the
 * file cannot be used. */
static ph_status look_for_checkpoint(struct ph_hub_server *server, const char *name)
{
    char *path;
    ph_status status = PH_OK;
    if (server->options.checkpoint_folder == NULL)
        return PH_OK;
    PH_TRY(ph__job_checkpoint_path(server->options.checkpoint_folder, name, &path));
    if (ph__file_exists(path))
        status = restore_file(server, path);
    if (status == PH_ERROR_CHECKPOINT)
        status = ph_fail(status, "%s; remove that file to begin the service anew", ph_error_text());
    free(path);
    return status;
}

/* ---- services ---- */

static struct ph__tenant *find_tenant(const struct ph_hub_server *server, const char *name)
{
    for (struct ph__tenant *tenant = server->tenants; tenant != NULL; tenant = tenant->next) {
        if (strcmp(tenant->settings.name, name) == 0)
            return tenant;
    }
    return NULL;
}

ph_status ph__server_look_for(struct ph_hub_server *server, const char *name, struct ph__tenant **tenant_out)
{
    *tenant_out = find_tenant(server, name);
    if (*tenant_out != NULL)
        return PH_OK;
    PH_TRY(look_for_checkpoint(server, name));
    *tenant_out = find_tenant(server, name);
    return PH_OK;
}

void ph__server_add_tenant(struct ph_hub_server *server, struct ph__tenant *tenant)
{
    tenant->next = server->tenants;
    server->tenants = tenant;
    server->num_tenants++;
}

void ph__server_forget(struct ph_hub_server *server, struct ph__tenant *tenant)
{
    struct ph__tenant **link = &server->tenants;
    while (*link != tenant)
        link = &(*link)->next;
    *link = tenant->next;
    server->num_tenants--;
    ph__traffic_merge(&server->past_traffic, &tenant->past.traffic);
    ph__tenant_destroy(tenant);
}

ph_status ph__server_check_share(const struct ph__tenant *tenant, const struct ph__hub_share *share)
{
    const struct ph__hub_share *own = &tenant->settings.share;
    if (own->hub == share->hub && own->num_hubs == share->num_hubs)
        return PH_OK;
    const bool is_found = tenant->saves.is_found;
    return ph_fail(is_found ? PH_ERROR_CHECKPOINT : PH_ERROR_USAGE,
        "service '%s': %s hub %u of %u, not hub %u of %u", tenant->settings.name,
        is_found ? "the checkpoint here is of" : "this is", own->hub + 1u, own->num_hubs, share->hub + 1u,
        share->num_hubs);
}

static ph_status check_wide(const struct ph__service_settings *settings)
{
    PH_TRY(ph__wide_check(&settings->service));
    if (settings->share.num_hubs > 1)
        return ph_fail(PH_ERROR_USAGE,
            "service '%s': this hub aggregates wide, and takes only jobs on a single hub", settings->name);
    return PH_OK;
}

static ph_status create_service(
    struct ph_hub_server *server, const struct ph__service_settings *settings, struct ph__tenant **tenant_out)
{
    const struct ph_hub_service *service = &settings->service;
    PH_TRY(ph__server_look_for(server, service->name, tenant_out));
    const struct ph__tenant *tenant = *tenant_out;
    if (tenant != NULL) {
        if (ph__tenant_is_ending(tenant))
            return ph_fail(PH_ERROR_USAGE, "service '%s' is being destroyed", service->name);
        if (tenant->settings.service.nonce != service->nonce)
            return ph_fail(PH_ERROR_USAGE,
                "service '%s' exists with another nonce, for another job: choose another name "
                "(parallel.hub_job), or end that job by phloem hub destroy ADDRESS %s",
                service->name, service->name);
        PH_TRY(ph__server_check_share(tenant, &settings->share));
        if (!ph__service_is_same(&tenant->settings, settings))
            return ph_fail(PH_ERROR_USAGE, "service '%s' exists with other settings", service->name);
        return PH_OK;
    }
    if (server->num_tenants >= server->options.max_jobs)
        return ph_fail(PH_ERROR_MEMORY, "the hub has %u jobs already, as many as hub.max_jobs allows",
            server->num_tenants);
    if (server->options.aggregation == PH_HUB_WIDE)
        PH_TRY(check_wide(settings));
    PH_TRY(ph__tenant_create(settings, tenant_out));
    ph__server_add_tenant(server, *tenant_out);
    log_service(server, *tenant_out, "service_created");
    return PH_OK;
}

/* Creates a service. Answers when the service has a file, so that it survives any failure. */
ph_status ph__server_request_create(struct ph_session *session, const struct ph__control_frame *frame)
{
    struct ph__service_settings settings;
    struct ph__tenant *tenant;
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

/* Ends a service: at once, or when its file is removed if it has one. */
static void end_service(struct ph_hub_server *server, struct ph__tenant *tenant)
{
    tenant->must_end = false;
    ph__server_end_run(server, tenant, PH_ERROR_PEER, "the service was destroyed");
    log_service(server, tenant, "service_destroyed");
    if (server->options.checkpoint_folder != NULL) {
        tenant->state = PH_TENANT_ENDING;
        ph__server_keep(server, tenant);
        return;
    }
    ph__server_answer_waiting(server, tenant, UINT64_MAX, PH_OK);
    ph__server_forget(server, tenant);
}

/* Returns true while workers leave a synchronous job: it has ended with the first that leaves, but the others
 * may still have to take what that one has pushed. */
static bool is_being_left(const struct ph__tenant *tenant)
{
    const struct ph_hub_service *service = &tenant->settings.service;
    return tenant->state == PH_TENANT_RUNNING && tenant->num_joined < service->num_workers &&
           service->mode == PH_HUB_SYNCHRONOUS && service->on_death == PH_HUB_ABORT;
}

ph_status ph__server_request_destroy(struct ph_session *session, const struct ph__control_frame *frame)
{
    struct ph__join which;
    PH_TRY(ph__get_join(frame->body, frame->size, &which));
    struct ph_hub_server *server = session->server;
    struct ph__tenant *tenant = find_tenant(server, which.name);
    if (tenant == NULL || tenant->settings.service.nonce != which.nonce) {
        ph__session_answer(
            session, ph_fail(PH_ERROR_USAGE, "service '%s' does not exist with this nonce", which.name));
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
    const struct ph_session *session, const char *name, const struct ph__tenant *tenant)
{
    if (!session->is_local)
        return ph_fail(PH_ERROR_USAGE, "ending a service without its nonce needs the hub's local socket");
    return tenant != NULL ? PH_OK : ph_fail(PH_ERROR_USAGE, "service '%s' does not exist", name);
}

/* Ends a service without its nonce. Only the hub's own user, who could end the hub as well, reaches the local
 * socket. */
ph_status ph__server_request_end(struct ph_session *session, const struct ph__control_frame *frame)
{
    char name[PH_HUB_MAX_NAME + 1];
    PH_TRY(ph__get_service_name(frame->body, frame->size, name));
    struct ph__tenant *tenant = find_tenant(session->server, name);
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
    for (struct ph__tenant *tenant = server->tenants, *next; tenant != NULL; tenant = next) {
        next = tenant->next;
        if (tenant->must_end && tenant->state == PH_TENANT_GATHERING)
            end_service(server, tenant);
    }
}

void ph__server_end_tenants(struct ph_hub_server *server)
{
    while (server->tenants != NULL) {
        struct ph__tenant *tenant = server->tenants;
        ph__server_end_run(server, tenant, PH_ERROR_PEER, "the hub was stopped");
        ph__server_answer_waiting(server, tenant, UINT64_MAX, ph_fail(PH_ERROR_PEER, "the hub was stopped"));
        ph__server_end_task(server, tenant);
        ph__server_forget(server, tenant);
    }
}
