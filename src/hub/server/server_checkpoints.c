/* Checkpoints of a hub's jobs, in the control thread: begins, writes, reads and removes them, and answers
 * workers that wait for one.
 *
 * A service has a file from its creation on, at first without parameters. The shards of a running job fill a
 * snapshot (shard_snapshot.c), and a task writes it (checkpoint_task.h), one at a time: at the beginning, at
 * each checkpoint_every'th iteration that the disk keeps up with, on demand, and when the hub stops in good
 * order. A job that resumes from its file reads it in a task, too, in the state PH_TENANT_LOADING.
 * server_parts.c handles jobs whose keys several hubs share. */
#include <stdio.h>
#include <stdlib.h>

#include "base/sizes.h"
#include "hub/keep/snapshot.h"
#include "hub/server/server_state.h"

/* ---- the log ---- */

static void log_checkpoint(struct ph_hub_server *server, const struct ph__tenant *tenant, uint64_t iteration)
{
    server->counts.checkpoints++;
    PH_LOG(server->log, PH_LOG_INFO, "checkpoint_written", ph__log_text("job", tenant->settings.name),
        ph__log_count("iteration", iteration));
}

void ph__server_log_checkpoint_failed(
    struct ph_hub_server *server, const struct ph__tenant *tenant, const char *event)
{
    server->counts.failed_checkpoints++;
    if (tenant != NULL)
        PH_LOG(server->log, PH_LOG_ERROR, event, ph__log_text("job", tenant->settings.name),
            ph__log_text("reason", ph_error_text()));
    else
        PH_LOG(server->log, PH_LOG_ERROR, event, ph__log_text("reason", ph_error_text()));
}

/* ---- tasks ---- */

ph_status ph__server_start_task(struct ph_hub_server *server, struct ph__tenant *tenant,
    const struct ph__checkpoint_order *order, struct ph__snapshot *snapshot)
{
    struct ph__tenant_saves *saves = &tenant->saves;
    char *path;
    PH_TRY(ph__job_checkpoint_path(server->options.checkpoint_folder, tenant->settings.name, &path));
    const ph_status status = ph__checkpoint_task_start(order, path, snapshot, server->bell[1], &saves->task);
    free(path);
    saves->task_number = saves->num_begun;
    saves->task_run = saves->num_runs;
    return status;
}

/* Returns an order for the service's file, and for all open parts where the job has any. */
static struct ph__checkpoint_order order_of_file(
    const struct ph__tenant *tenant, enum ph__checkpoint_work work)
{
    return (struct ph__checkpoint_order){
        .work = work, .part = PH_NO_ITERATION, .settled_end = ph__tenant_has_parts(tenant) ? UINT64_MAX : 0};
}

/* Keeps ph_error_text(): an error in sending an answer concerns nobody. */
void ph__server_answer_waiting(
    struct ph_hub_server *server, const struct ph__tenant *tenant, uint64_t number, ph_status status)
{
    char text[PH_HUB_MAX_TEXT + 1];
    snprintf(text, sizeof text, "%s", ph_error_text());
    for (struct ph_session *session = server->sessions; session != NULL; session = session->next) {
        if (session->awaited != tenant || session->awaited_number > number)
            continue;
        session->awaited = NULL;
        ph__session_answer(session, status);
        ph_fail(status, "%s", text);
    }
}

void ph__server_await_checkpoint(struct ph_session *session, struct ph__tenant *tenant, uint64_t number)
{
    session->awaited = tenant;
    session->awaited_number = number;
}

/* ---- snapshots of a running job ---- */

/* Open parts of an asynchronous job that hubs make unasked; no more until some are kept. */
#define MAX_OPEN_BY_ITSELF 4

/* Returns true when this hub chooses the moment of the next periodic checkpoint. */
static bool chooses_moments(const struct ph__tenant *tenant)
{
    if (!ph__tenant_has_parts(tenant))
        return true;
    return tenant->settings.service.mode != PH_HUB_SYNCHRONOUS &&
           tenant->saves.parts.here.num_open < MAX_OPEN_BY_ITSELF;
}

/* Returns the iteration of the part to be written, and sets it in the snapshot. */
static uint64_t name_part(const struct ph__tenant *tenant, struct ph__snapshot *snapshot)
{
    const struct ph__tenant_saves *saves = &tenant->saves;
    if (tenant->layout->sizes.num_here == 0)
        snapshot->iteration = saves->version != PH_SNAPSHOT_NOW ? saves->version : saves->parts.asked;
    return snapshot->iteration;
}

/* Returns the next multiple of checkpoint_every, in updates of a chunk, beyond all chunks and checkpoints. */
static uint64_t next_version(const struct ph__tenant *tenant, uint64_t most)
{
    const struct ph_hub_service *service = &tenant->settings.service;
    const bool is_synchronous = service->mode == PH_HUB_SYNCHRONOUS;
    const uint64_t every = service->checkpoint_every * (is_synchronous ? 1 : service->num_workers);
    const uint64_t last = is_synchronous ? tenant->saves.version : most;
    return ph__round_up(ph__max(most, last + 1), every);
}

static bool has_current_checkpoint(const struct ph__tenant *tenant, uint64_t most)
{
    const struct ph__tenant_saves *saves = &tenant->saves;
    const bool is_kept = saves->has_parameters && saves->iteration == most;
    return tenant->settings.service.mode == PH_HUB_SYNCHRONOUS &&
           (is_kept || ph__parts_has(&saves->parts.here, most));
}

static void save_now(struct ph_hub_server *server, struct ph__tenant *tenant, uint64_t most)
{
    struct ph__tenant_saves *saves = &tenant->saves;
    const bool is_synchronous = tenant->settings.service.mode == PH_HUB_SYNCHRONOUS;
    saves->is_wanted = false;
    saves->num_begun++;
    if (!has_current_checkpoint(tenant, most)) {
        ph__tenant_begin_snapshot(tenant, is_synchronous ? most : PH_SNAPSHOT_NOW);
        return;
    }
    ph__tenant_release(tenant);
    ph__server_answer_waiting(server, tenant, saves->num_begun, PH_OK);
    ph__server_announce_parts(server, tenant, false); /* several hubs may have put a part off for this one */
}

/* Begins the next snapshot, or has the shards wait for its iteration; a waiting one can still be put off. */
static void begin_snapshot(struct ph_hub_server *server, struct ph__tenant *tenant)
{
    struct ph__tenant_saves *saves = &tenant->saves;
    const struct ph_hub_service *service = &tenant->settings.service;
    const bool has_chunks = tenant->layout->sizes.num_here > 0; /* no iteration ends without chunks */
    const bool is_periodic =
        service->checkpoint_every > 0 && has_chunks && !server->is_ending && chooses_moments(tenant);
    if (!saves->is_wanted && (!is_periodic || saves->is_under_way || saves->is_watched))
        return;
    const uint64_t most = ph__server_hold(tenant);
    if (saves->is_under_way && (saves->version == PH_SNAPSHOT_NOW || saves->version <= most)) {
        ph__tenant_release(tenant); /* the wanted one comes next */
    } else if (saves->is_wanted) {
        save_now(server, tenant, most);
    } else if (service->mode == PH_HUB_SYNCHRONOUS) {
        saves->num_begun++;
        ph__tenant_begin_snapshot(tenant, next_version(tenant, most));
    } else {
        ph__tenant_watch(tenant, next_version(tenant, most));
    }
}

static ph_status write_snapshot(
    struct ph_hub_server *server, struct ph__tenant *tenant, const struct ph__checkpoint_order *order)
{
    if (!ph__server_has_room(tenant))
        return ph_fail(PH_ERROR_DISK, "service '%s': %d checkpoints wait for other hubs to write their parts",
            tenant->settings.name, PH_HUB_MAX_OPEN_PARTS);
    return ph__server_start_task(server, tenant, order, tenant->saves.snapshot);
}

/* Starts to write the snapshot that the shards have filled. */
static void take_snapshot(struct ph_hub_server *server, struct ph__tenant *tenant)
{
    struct ph__tenant_saves *saves = &tenant->saves;
    saves->is_under_way = false;
    ph__snapshot_finish(saves->snapshot);
    struct ph__checkpoint_order order = {.work = PH_CHECKPOINT_WRITE, .part = PH_NO_ITERATION};
    if (ph__tenant_has_parts(tenant))
        order.part = name_part(tenant, saves->snapshot);
    const ph_status status = write_snapshot(server, tenant, &order);
    if (status == PH_OK) {
        saves->snapshot = NULL;
        return;
    }
    ph__server_log_checkpoint_failed(server, tenant, "checkpoint_not_written");
    ph__server_answer_waiting(server, tenant, saves->num_begun, status);
    ph__server_settle_part(server, tenant, order.part);
}

static void look_at_shards(struct ph_hub_server *server, struct ph__tenant *tenant)
{
    struct ph__tenant_saves *saves = &tenant->saves;
    if (saves->is_watched && atomic_load(&saves->has_reached)) {
        saves->is_watched = false;
        saves->is_wanted = true;
    }
    if (saves->is_restoring && ph__tenant_is_copied(tenant)) {
        saves->is_restoring = false;
        ph__server_begin_if_ready(server, tenant);
    }
    if (saves->is_under_way && saves->task == NULL && ph__tenant_is_copied(tenant))
        take_snapshot(server, tenant);
}

/* ---- one after the other ---- */

static ph_status write_settings(struct ph_hub_server *server, struct ph__tenant *tenant)
{
    struct ph__snapshot *snapshot;
    PH_TRY(ph__snapshot_create(&tenant->settings, NULL, 0, 0, &snapshot));
    tenant->saves.num_begun++;
    const struct ph__checkpoint_order order = order_of_file(tenant, PH_CHECKPOINT_WRITE);
    const ph_status status = ph__server_start_task(server, tenant, &order, snapshot);
    if (status != PH_OK)
        ph__snapshot_destroy(snapshot);
    return status;
}

static ph_status check_room(const struct ph_hub_server *server, const struct ph__tenant *tenant, size_t bytes)
{
    if (bytes <= ph__server_bytes_left(server))
        return PH_OK;
    return ph_fail(PH_ERROR_MEMORY,
        "service '%s': a checkpoint of %zu bytes is more than is left on the hub: raise hub.max_bytes or "
        "hub.max_job_bytes",
        tenant->settings.name, bytes);
}

/* Starts to read the part's parameters; PH_NO_ITERATION reads the service's own file. */
static ph_status read_parameters(struct ph_hub_server *server, struct ph__tenant *tenant, uint64_t part)
{
    const struct ph__tenant_saves *saves = &tenant->saves;
    struct ph__snapshot *snapshot;
    size_t least;
    PH_TRY(
        ph__snapshot_measure(&tenant->settings, tenant->keys, tenant->num_keys, saves->chunk_bytes, &least));
    PH_TRY(check_room(server, tenant, least));
    PH_TRY(ph__snapshot_create(
        &tenant->settings, tenant->keys, tenant->num_keys, saves->chunk_bytes, &snapshot));
    ph_status status = check_room(server, tenant, snapshot->num_bytes);
    struct ph__checkpoint_order order = order_of_file(tenant, PH_CHECKPOINT_READ);
    order.part = part;
    if (status == PH_OK)
        status = ph__server_start_task(server, tenant, &order, snapshot);
    if (status != PH_OK)
        ph__snapshot_destroy(snapshot);
    return status;
}

static ph_status load(struct ph_hub_server *server, struct ph__tenant *tenant)
{
    const struct ph__tenant_saves *saves = &tenant->saves;
    const bool is_open = saves->parts.chosen != saves->parts.here.kept;
    const struct ph__checkpoint_order forget = order_of_file(tenant, PH_CHECKPOINT_KEEP);
    if (!ph__tenant_has_parts(tenant))
        return saves->has_parameters ? read_parameters(server, tenant, PH_NO_ITERATION)
                                     : ph__server_begin_linking(server, tenant);
    if (!saves->parts.is_chosen) {
        ph__server_offer_parts(tenant);
        return PH_OK;
    }
    if (saves->parts.chosen == PH_NO_ITERATION)
        return ph__server_start_task(server, tenant, &forget, NULL);
    return read_parameters(server, tenant, is_open ? saves->parts.chosen : PH_NO_ITERATION);
}

/* Ends and forgets a service that could not be made durable. */
static void give_up(struct ph_hub_server *server, struct ph__tenant *tenant, ph_status status)
{
    ph__server_log_checkpoint_failed(server, tenant, "checkpoint_not_written");
    ph__server_answer_waiting(server, tenant, UINT64_MAX, status);
    ph__server_end_run(server, tenant, status, ph_error_text());
    ph__server_forget(server, tenant);
}

static void removed(struct ph_hub_server *server, struct ph__tenant *tenant, ph_status status)
{
    ph__server_answer_waiting(server, tenant, UINT64_MAX, status);
    ph__server_forget(server, tenant);
}

/* Returns false if the tenant was freed. */
bool ph__server_keep(struct ph_hub_server *server, struct ph__tenant *tenant)
{
    ph_status status = PH_OK;
    if (server->options.checkpoint_folder == NULL || tenant->saves.task != NULL)
        return true;
    if (tenant->state == PH_TENANT_ENDING) {
        const struct ph__checkpoint_order order = order_of_file(tenant, PH_CHECKPOINT_REMOVE);
        status = ph__server_start_task(server, tenant, &order, NULL);
        if (status != PH_OK)
            removed(server, tenant, status);
        return status == PH_OK;
    }
    if (!tenant->saves.has_file) {
        status = write_settings(server, tenant);
        if (status != PH_OK)
            give_up(server, tenant, status);
        return status == PH_OK;
    }
    if (tenant->state == PH_TENANT_LOADING) {
        status = load(server, tenant);
        if (status != PH_OK)
            ph__server_end_run(server, tenant, status, ph_error_text());
    } else if (tenant->state == PH_TENANT_RUNNING && tenant->is_going) {
        if (!ph__server_keep_parts(server, tenant))
            begin_snapshot(server, tenant);
    }
    return true;
}

/* ---- what tasks have done ---- */

static void note_written(struct ph__tenant *tenant, const struct ph__snapshot *snapshot)
{
    struct ph__tenant_saves *saves = &tenant->saves;
    saves->has_file = true;
    saves->chunk_bytes = snapshot->num_keys > 0 ? snapshot->layout->chunk_bytes : 0;
    if (ph__tenant_has_parts(tenant) && snapshot->num_keys > 0) {
        ph__parts_add(&saves->parts.here, snapshot->iteration);
        return;
    }
    saves->has_parameters = snapshot->num_keys > 0;
    saves->iteration = snapshot->iteration;
}

static bool wrote(
    struct ph_hub_server *server, struct ph__tenant *tenant, struct ph__snapshot *snapshot, ph_status status)
{
    struct ph__tenant_saves *saves = &tenant->saves;
    const bool has_parameters = snapshot->num_keys > 0;
    const bool is_of_run = saves->task_run == saves->num_runs && has_parameters;
    const uint64_t iteration = snapshot->iteration;
    if (status == PH_OK)
        note_written(tenant, snapshot);
    if (is_of_run)
        saves->snapshot = snapshot;
    else
        ph__snapshot_destroy(snapshot);
    if (!saves->has_file) {
        give_up(server, tenant, status);
        return false;
    }
    if (status != PH_OK)
        ph__server_log_checkpoint_failed(server, tenant, "checkpoint_not_written");
    else if (has_parameters)
        log_checkpoint(server, tenant, iteration);
    ph__server_answer_waiting(server, tenant, saves->task_number, status);
    if (is_of_run)
        ph__server_settle_part(server, tenant, iteration);
    return true;
}

static void loaded(
    struct ph_hub_server *server, struct ph__tenant *tenant, struct ph__snapshot *snapshot, ph_status status)
{
    struct ph__tenant_saves *saves = &tenant->saves;
    if (saves->task_run != saves->num_runs || status != PH_OK) {
        ph__snapshot_destroy(snapshot);
        if (saves->task_run == saves->num_runs)
            ph__server_end_run(server, tenant, status, ph_error_text());
        return;
    }
    saves->snapshot = snapshot;
    saves->version = snapshot->iteration;
    saves->parts.settled_end = snapshot->iteration + 1;
    tenant->is_restored = true;
    tenant->first_iteration = snapshot->iteration;
    status = ph__server_begin_linking(server, tenant);
    if (status != PH_OK)
        ph__server_end_run(server, tenant, status, ph_error_text());
}

static void kept(struct ph_hub_server *server, struct ph__tenant *tenant, ph_status status)
{
    const bool is_beginning =
        tenant->state == PH_TENANT_LOADING && tenant->saves.task_run == tenant->saves.num_runs;
    if (status != PH_OK)
        ph__server_log_checkpoint_failed(server, tenant, "checkpoint_not_kept");
    if (status == PH_OK && is_beginning)
        status = ph__server_begin_linking(server, tenant);
    if (status != PH_OK && is_beginning)
        ph__server_end_run(server, tenant, status, ph_error_text());
}

/* Ends the tenant's task and acts on the outcome. Returns false if the tenant was freed. */
static bool finish_task(struct ph_hub_server *server, struct ph__tenant *tenant)
{
    struct ph__checkpoint_outcome outcome;
    const ph_status status = ph__checkpoint_task_finish(tenant->saves.task, &outcome);
    tenant->saves.task = NULL;
    if (ph__tenant_has_parts(tenant) &&
        outcome.has_kept) /* parts to remove may be left: the next KEEP tries again */
        ph__server_note_kept(tenant, outcome.order.part, status == PH_OK ? outcome.order.settled_end : 0);
    switch (outcome.order.work) {
    case PH_CHECKPOINT_WRITE:
        return wrote(server, tenant, outcome.snapshot, status);
    case PH_CHECKPOINT_READ:
        loaded(server, tenant, outcome.snapshot, status);
        return true;
    case PH_CHECKPOINT_KEEP:
        kept(server, tenant, status);
        return true;
    case PH_CHECKPOINT_REMOVE:
        break;
    }
    removed(server, tenant, status);
    return false;
}

void ph__server_look_at_checkpoints(struct ph_hub_server *server)
{
    for (struct ph__tenant *tenant = server->tenants, *next; tenant != NULL; tenant = next) {
        const struct ph__tenant_saves *saves = &tenant->saves;
        next = tenant->next;
        if (saves->task != NULL && ph__checkpoint_task_is_done(saves->task) && !finish_task(server, tenant))
            continue;
        look_at_shards(server, tenant);
        ph__server_keep(server, tenant);
    }
}

/* ---- ends ---- */

void ph__server_end_task(struct ph_hub_server *server, struct ph__tenant *tenant)
{
    struct ph__checkpoint_outcome outcome;
    if (tenant->saves.task == NULL)
        return;
    if (ph__checkpoint_task_finish(tenant->saves.task, &outcome) != PH_OK)
        ph__server_log_checkpoint_failed(server, tenant, "checkpoint_not_finished");
    tenant->saves.task = NULL;
    ph__snapshot_destroy(outcome.snapshot);
}

void ph__server_save_all(struct ph_hub_server *server)
{
    server->is_ending = true;
    if (server->options.checkpoint_folder == NULL)
        return;
    for (struct ph__tenant *tenant = server->tenants, *next; tenant != NULL; tenant = next) {
        next = tenant->next;
        /* Hubs that share a job stop at different moments, so their last checkpoints would not match. */
        tenant->saves.is_wanted = tenant->is_going && tenant->settings.share.num_hubs == 1;
        ph__server_keep(server, tenant);
    }
}

bool ph__server_is_saving(const struct ph_hub_server *server, bool waits_for_workers)
{
    for (const struct ph__tenant *tenant = server->tenants; tenant != NULL; tenant = tenant->next) {
        const struct ph__tenant_saves *saves = &tenant->saves;
        if (saves->task != NULL || (waits_for_workers && (saves->is_wanted || saves->is_under_way)))
            return true;
    }
    return false;
}
