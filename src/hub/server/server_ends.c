/* Ends of runs and of workers: handles a worker that dies, breaks the rules or leaves. */
#include <stdio.h>
#include <stdlib.h>

#include "hub/server/server_state.h"
#include "net/waiter.h"

/* ---- the log ---- */

static void log_left(const struct ph_hub_server *server, const struct ph__tenant *tenant, uint32_t rank)
{
    PH_LOG(server->log, PH_LOG_INFO, "worker_left", ph__log_text("job", tenant->settings.name),
        ph__log_count("rank", rank));
}

static void log_failed(
    const struct ph_hub_server *server, const struct ph__tenant *tenant, uint32_t rank, const char *why)
{
    PH_LOG(server->log, PH_LOG_WARNING, "worker_failed", ph__log_text("job", tenant->settings.name),
        ph__log_count("rank", rank), ph__log_text("reason", why));
}

static void log_ended(const struct ph_hub_server *server, const struct ph__tenant *tenant, const char *why)
{
    PH_LOG(server->log, PH_LOG_INFO, "job_ended", ph__log_text("job", tenant->settings.name),
        ph__log_text("reason", why));
}

/* ---- workers that core threads report as failed ---- */

struct ph__failure {
    struct ph__tenant *tenant;
    uint32_t worker;
    char text[PH_HUB_MAX_TEXT + 1];
    struct ph__failure *next;
};

void ph__server_note_failure(void *context, struct ph__tenant *tenant, uint32_t worker)
{
    struct ph_hub_server *server = context;
    struct ph__failure *failure = calloc(1, sizeof *failure);
    if (failure == NULL)
        return; /* the worker ends with its connection */
    failure->tenant = tenant;
    failure->worker = worker;
    snprintf(failure->text, sizeof failure->text, "%s", ph_error_text());
    pthread_mutex_lock(&server->failures_mutex);
    failure->next = server->failures;
    server->failures = failure;
    pthread_mutex_unlock(&server->failures_mutex);
    ph__doorbell_ring(server->bell[1]);
}

/* Drops the failures of a tenant whose run has ended. */
static void drop_failures(struct ph_hub_server *server, const struct ph__tenant *tenant)
{
    pthread_mutex_lock(&server->failures_mutex);
    for (struct ph__failure **link = &server->failures; *link != NULL;) {
        struct ph__failure *failure = *link;
        if (failure->tenant != tenant) {
            link = &failure->next;
            continue;
        }
        *link = failure->next;
        free(failure);
    }
    pthread_mutex_unlock(&server->failures_mutex);
}

/* Returns a failure, which the caller frees, or NULL when there is none. */
static struct ph__failure *take_failure(struct ph_hub_server *server)
{
    pthread_mutex_lock(&server->failures_mutex);
    struct ph__failure *failure = server->failures;
    if (failure != NULL)
        server->failures = failure->next;
    pthread_mutex_unlock(&server->failures_mutex);
    return failure;
}

/* ---- the end of a run ---- */

/* Tells the members why, and forgets them. Called before their links close: a worker that finds a link closed
 * looks for the reason. */
static void dismiss_members(struct ph__tenant *tenant, const struct ph__wire_writer *why)
{
    for (uint32_t i = 0; i < tenant->settings.service.num_workers; i++) {
        struct ph_session *session = tenant->members[i].session;
        tenant->members[i] = (struct ph__member){0};
        if (session == NULL)
            continue;
        ph__session_detach(session);
        session->awaited = NULL; /* the awaited checkpoint ends, too */
        ph__session_send(session, PH_FRAME_FAILED, why, NULL, 0);
    }
    tenant->num_joined = 0;
    tenant->num_with_keys = 0;
    tenant->num_linked = 0;
    tenant->num_ready = 0;
}

void ph__server_end_run(
    struct ph_hub_server *server, struct ph__tenant *tenant, ph_status status, const char *why)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_answer(&writer, status, why);
    if (tenant->state != PH_TENANT_GATHERING || tenant->num_joined > 0)
        log_ended(server, tenant, why);
    dismiss_members(tenant, &writer);
    ph__tenant_stop(tenant);
    drop_failures(server, tenant);
}

/* ---- the end of a worker ---- */

static void forget_member(struct ph__tenant *tenant, uint32_t rank)
{
    struct ph__member *member = &tenant->members[rank];
    tenant->num_joined--;
    tenant->num_with_keys -= member->has_keys;
    tenant->num_linked -= member->is_linked;
    *member = (struct ph__member){0};
    if (tenant->num_with_keys == 0) {
        free(tenant->keys);
        tenant->keys = NULL;
        tenant->num_keys = 0;
    }
}

static void end_worker(
    struct ph_hub_server *server, struct ph__tenant *tenant, uint32_t rank, const char *why)
{
    char text[PH_HUB_MAX_TEXT + 1];
    struct ph_session *session = tenant->members[rank].session;
    log_failed(server, tenant, rank, why);
    if (session != NULL)
        ph__session_detach(session);
    if (tenant->state == PH_TENANT_GATHERING) {
        forget_member(tenant, rank);
        return;
    }
    snprintf(text, sizeof text, "worker %u of service '%s' failed: %s", rank, tenant->settings.name, why);
    const bool is_last = tenant->num_joined == 1;
    if (tenant->is_going && tenant->settings.service.on_death == PH_HUB_SHRINK && !is_last) {
        ph__tenant_remove_worker(tenant, rank);
        tenant->num_joined--;
        tenant->members[rank] = (struct ph__member){.has_left = true};
        ph__server_lead_left(server, tenant, rank);
        return;
    }
    tenant->members[rank].session = NULL;
    ph__server_end_run(server, tenant, PH_ERROR_PEER, text);
}

void ph__server_session_ends(struct ph_session *session)
{
    if (session->tenant == NULL)
        return;
    session->server->counts.ended_workers++;
    end_worker(session->server, session->tenant, session->rank, session->why);
}

static void end_failed(const struct ph__failure *failure)
{
    struct ph_session *session = failure->tenant->members[failure->worker].session;
    if (session == NULL)
        return;
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_answer(&writer, PH_ERROR_PEER, failure->text);
    ph__session_send(session, PH_FRAME_FAILED, &writer, NULL, 0);
    session->server->counts.failed_workers++;
    end_worker(session->server, failure->tenant, failure->worker, failure->text);
}

void ph__server_end_failed_workers(struct ph_hub_server *server)
{
    struct ph__failure *failure;
    while ((failure = take_failure(server)) != NULL) {
        end_failed(failure);
        free(failure);
    }
}

/* ---- leaving ---- */

ph_status ph__server_request_leave(struct ph_session *session)
{
    struct ph__tenant *tenant = session->tenant;
    if (tenant == NULL) {
        ph__session_answer(session, PH_OK);
        return PH_OK;
    }
    ph__session_detach(session);
    log_left(session->server, tenant, session->rank);
    if (!tenant->is_going) {
        end_worker(session->server, tenant, session->rank, "left before the job began");
        ph__session_answer(session, PH_OK);
        return PH_OK;
    }
    ph__tenant_retire_worker(tenant, session->rank);
    tenant->members[session->rank] = (struct ph__member){.has_left = true};
    tenant->num_joined--;
    if (tenant->num_joined == 0)
        ph__server_end_run(session->server, tenant, PH_ERROR_PEER, "all workers have left");
    else
        ph__server_lead_left(session->server, tenant, session->rank);
    ph__session_answer(session, PH_OK);
    return PH_OK;
}
