/* What lies in a hub's folder for checkpoints when it starts, or when somebody asks for a service that it does not know: services
 * with their files, and the open parts of those that several hubs share. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "hub/keep/job_parts.h"
#include "hub/server/server_state.h"

/* ---- open parts ---- */

/* A file that is there and cannot be opened may be whole: that is no reason to do without it. */
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

static ph_status take_part(struct ph_tenant *tenant, const char *path, uint64_t iteration)
{
    struct ph_tenant_saves *saves = &tenant->saves;
    struct ph_job_checkpoint_head head;
    PH_TRY(check_opening(path));
    PH_TRY(ph__job_checkpoint_read_head(path, &head));
    if (head.num_keys == 0 || head.iteration != iteration ||
        !ph__service_is_same(&head.settings, &tenant->settings))
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: no part of service '%s' at iteration %" PRIu64, path,
            tenant->settings.name, iteration);
    if (!ph__server_has_room(tenant))
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: one part too many", path);
    saves->chunk_bytes = head.chunk_bytes;
    ph__parts_add(&saves->parts.here, iteration);
    return PH_OK;
}

struct search {
    struct ph_hub_server *server;
    struct ph_tenant *tenant;
    const char *path; /* of the kept part */
};

/* One that is older than the kept part was left over when that came: all hubs have a newer one. */
static ph_status visit_part(void *argument, const char *name)
{
    const struct search *search = argument;
    const struct ph_tenant_saves *saves = &search->tenant->saves;
    struct ph_arena arena = {0};
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

/* One that is damaged is reported and left alone. PH_ERROR_DISK, PH_ERROR_MEMORY: they cannot be looked at now, all of them. */
static ph_status find_parts(struct ph_hub_server *server, struct ph_tenant *tenant)
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

/* ---- services ---- */

/* A service that nobody has asked for yet; its parameters are read when its workers are there. */
static ph_status restore_file(struct ph_hub_server *server, const char *path)
{
    struct ph_job_checkpoint_head head;
    struct ph_tenant *tenant;
    char *wanted;
    PH_TRY(ph__job_checkpoint_read_head(path, &head));
    PH_TRY(ph__job_checkpoint_path(server->options.checkpoint_folder, head.settings.name, &wanted));
    const bool is_there =
        strcmp(strrchr(path, '/'), strrchr(wanted, '/')) == 0; /* the folder has many names */
    free(wanted);
    if (!is_there)
        return ph_fail(PH_ERROR_CHECKPOINT, "%s: not the name of service '%s'", path, head.settings.name);
    if (server->num_tenants >= server->options.max_jobs)
        return ph_fail(
            PH_ERROR_MEMORY, "%s: the hub has %u jobs already, as many as it may", path, server->num_tenants);
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
    ph__server_log_service(server, tenant, "service_restored");
    return PH_OK;
}

static ph_status visit_file(void *argument, const char *name)
{
    struct ph_hub_server *server = argument;
    struct ph_arena arena = {0};
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
        return status == PH_ERROR_USAGE ? PH_ERROR_CONFIG : status; /* another hub's: the option cannot be */
    return ph__directory_visit(path, visit_file, server);
}

ph_status ph__server_open_checkpoints(struct ph_hub_server *server)
{
    if (server->options.checkpoint_folder == NULL)
        return PH_OK;
    return ph__server_name_option(
        "checkpoint_folder", open_folder(server, server->options.checkpoint_folder));
}

ph_status ph__server_look_for_checkpoint(struct ph_hub_server *server, const char *name)
{
    char *path;
    ph_status status = PH_OK;
    if (server->options.checkpoint_folder == NULL)
        return PH_OK;
    PH_TRY(ph__job_checkpoint_path(server->options.checkpoint_folder, name, &path));
    if (ph__file_exists(path))
        status = restore_file(server, path);
    if (status == PH_ERROR_CHECKPOINT)
        status = ph_fail(status, "%s; the service can begin anew when that file is gone", ph_error_text());
    free(path);
    return status;
}
