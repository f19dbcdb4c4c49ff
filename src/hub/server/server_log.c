/* What a hub writes into its log, and counts beside it: connections, services, workers and jobs, and why they end. */
#include "base/thread/clock.h"
#include "hub/server/server_state.h"

#define TEXT(key, text) ph__log_text((key), (text))
#define COUNT(key, count) ph__log_count((key), (count))

void ph__server_open_log(struct ph_hub_server *server)
{
    server->log_settings = (struct ph_log){.descriptor = server->options.log_descriptor,
        .least_level = PH_LOG_INFO,
        .format = server->options.is_log_json ? PH_LOG_JSON : PH_LOG_LOGFMT};
    server->log = server->options.log_descriptor > 0 ? &server->log_settings : NULL;
}

void ph__server_log_start(const struct ph_hub_server *server)
{
    PH_LOG(server->log, PH_LOG_INFO, "hub_started", TEXT("address", server->address),
        COUNT("core_threads", server->num_cores), COUNT("is_pinned", server->placement.is_pinned),
        COUNT("max_bytes", server->max_bytes), COUNT("max_jobs", server->options.max_jobs));
}

void ph__server_log_stop(const struct ph_hub_server *server)
{
    PH_LOG(server->log, PH_LOG_INFO, "hub_stopped", TEXT("address", server->address),
        ph__log_number("seconds", (double)(ph__clock_ns() - server->started_ns) * 1e-9));
}

/* ---- connections ---- */

void ph__server_log_opened(struct ph_session *session)
{
    session->number = session->server->counts.connections++;
    PH_LOG(session->server->log, PH_LOG_INFO, "connection_opened", COUNT("connection", session->number),
        TEXT("peer", session->peer));
}

void ph__server_log_closed(const struct ph_session *session)
{
    PH_LOG(session->server->log, PH_LOG_INFO, "connection_closed", COUNT("connection", session->number));
}

void ph__server_log_broken(struct ph_session *session, const char *why)
{
    session->server->counts.broken_connections++;
    PH_LOG(session->server->log, PH_LOG_WARNING, "connection_broken", COUNT("connection", session->number),
        TEXT("peer", session->peer), TEXT("reason", why));
}

void ph__server_log_refused(struct ph_session *session, const char *why)
{
    session->server->counts.refused_requests++;
    PH_LOG(session->server->log, PH_LOG_WARNING, "request_refused", COUNT("connection", session->number),
        TEXT("reason", why));
}

void ph__server_log_silent(struct ph_session *session, const char *why)
{
    session->server->counts.silent_connections++;
    PH_LOG(session->server->log, PH_LOG_WARNING, "connection_silent", COUNT("connection", session->number),
        TEXT("peer", session->peer), TEXT("reason", why));
}

void ph__server_log_deaf(struct ph_hub_server *server, const char *why)
{
    server->counts.refusals_to_listen++;
    PH_LOG(server->log, PH_LOG_WARNING, "connections_wait", TEXT("reason", why));
}

/* ---- jobs ---- */

static const char *const mode_names[] = {[PH_HUB_SYNCHRONOUS] = "synchronous",
    [PH_HUB_ASYNCHRONOUS] = "asynchronous",
    [PH_HUB_BOUNDED] = "bounded"};

const char *ph__hub_mode_name(enum ph_hub_mode mode)
{
    return mode_names[mode];
}

void ph__server_log_service(
    const struct ph_hub_server *server, const struct ph_tenant *tenant, const char *event)
{
    PH_LOG(server->log, PH_LOG_INFO, event, TEXT("job", tenant->settings.name),
        COUNT("workers", tenant->settings.service.num_workers),
        TEXT("mode", ph__hub_mode_name(tenant->settings.service.mode)),
        COUNT("hub", tenant->settings.share.hub + 1u), COUNT("hubs", tenant->settings.share.num_hubs));
}

void ph__server_log_joined(const struct ph_session *session)
{
    const struct ph_tenant *tenant = session->tenant;
    PH_LOG(session->server->log, PH_LOG_INFO, "worker_joined", TEXT("job", tenant->settings.name),
        COUNT("rank", session->rank), COUNT("connection", session->number),
        TEXT("transport", tenant->members[session->rank].is_shared ? "shared memory" : "tcp"));
}

void ph__server_log_left(const struct ph_hub_server *server, const struct ph_tenant *tenant, uint32_t rank)
{
    PH_LOG(server->log, PH_LOG_INFO, "worker_left", TEXT("job", tenant->settings.name), COUNT("rank", rank));
}

void ph__server_log_failed(
    const struct ph_hub_server *server, const struct ph_tenant *tenant, uint32_t rank, const char *why)
{
    PH_LOG(server->log, PH_LOG_WARNING, "worker_failed", TEXT("job", tenant->settings.name),
        COUNT("rank", rank), TEXT("reason", why));
}

void ph__server_log_begun(const struct ph_hub_server *server, const struct ph_tenant *tenant)
{
    char why[PH_AUTOTUNE_TEXT_BYTES];
    ph__autotune_describe(&server->tuning, &tenant->chunks, why);
    PH_LOG(server->log, PH_LOG_INFO, "job_begun", TEXT("job", tenant->settings.name),
        COUNT("workers", tenant->num_joined), COUNT("keys", tenant->num_keys),
        COUNT("chunks", tenant->layout->sizes.num_here), COUNT("chunk_bytes", tenant->layout->chunk_bytes),
        TEXT("chunk_choice", why), COUNT("bytes", tenant->num_bytes));
}

void ph__server_log_ended(const struct ph_hub_server *server, const struct ph_tenant *tenant, const char *why)
{
    PH_LOG(server->log, PH_LOG_INFO, "job_ended", TEXT("job", tenant->settings.name), TEXT("reason", why));
}

/* ---- checkpoints ---- */

void ph__server_log_checkpoint(
    struct ph_hub_server *server, const struct ph_tenant *tenant, uint64_t iteration)
{
    server->counts.checkpoints++;
    PH_LOG(server->log, PH_LOG_INFO, "checkpoint_written", TEXT("job", tenant->settings.name),
        COUNT("iteration", iteration));
}

void ph__server_log_checkpoint_failed(
    struct ph_hub_server *server, const struct ph_tenant *tenant, const char *event)
{
    server->counts.failed_checkpoints++;
    if (tenant != NULL)
        PH_LOG(server->log, PH_LOG_ERROR, event, TEXT("job", tenant->settings.name),
            TEXT("reason", ph_error_text()));
    else
        PH_LOG(server->log, PH_LOG_ERROR, event, TEXT("reason", ph_error_text()));
}
