/* Status of a hub: answers STATUS with JSON, which `phloem hub status` shows.
 *
 *     {"address", "seconds", "aggregation", "is_crowded", "connections", "max_bytes", "used_bytes",
 * "max_jobs", "cores": [{"place", "rounds", "idle_rounds", "sleeps"}], "links": [{"transport",
 * "messages_sent", ...}], "jobs": [{"name", "state", "mode", "hub", "num_hubs", "workers_wanted",
 * "workers_there", "iteration", "bytes", ..., "workers": [{"rank", "transport", "addresses", "why",
 * "messages_sent", ...}], "keys": [{"elements", "dtype", "optimizer", "chunks"}]}]}
 *
 * "addresses" are the hub's own, to which the worker's connections go, separated by spaces. "chunks" and
 * "num_chunks" count this hub's chunks; it is the job's "hub" of "num_hubs", from 1.
 *
 * The answer lists the first workers and keys of each service: as many as fit a message, and fewer where it
 * covers all services. Anybody may ask: so the hub makes one answer a turn, and none while too much output
 * waits to be read. */
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/format/json_fields.h"
#include "base/sizes.h"
#include "hub/server/server_figures.h"

#define MAX_LISTED ((size_t)64)                /* workers and keys of a service when all are listed */
#define ENTRY_BYTES ((size_t)1200)             /* most of a worker and a key in JSON */
#define LISTS_BYTES (PH_CONTROL_MAX_BYTES / 2) /* most of all lists together */
#define MAX_UNREAD_BYTES PH_CONTROL_MAX_BYTES  /* unsent answers beyond which none is made */

#define LINK_FIELD(member)                                                    \
    {                                                                         \
#member, PH_JSON_COUNT, offsetof(struct ph__link_counters, member), 0 \
    }
static const struct ph__json_field link_fields[] = {
    LINK_FIELD(messages_sent),
    LINK_FIELD(messages_received),
    LINK_FIELD(payload_bytes_sent),
    LINK_FIELD(payload_bytes_received),
    LINK_FIELD(system_calls),
    LINK_FIELD(doorbells),
};

#define SHARD_FIELD(key, member)                                           \
    {                                                                      \
        key, PH_JSON_COUNT, offsetof(struct ph__shard_counters, member), 0 \
    }
static const struct ph__json_field shard_fields[] = {
    SHARD_FIELD("updates", updates),
    SHARD_FIELD("gradient_bytes", update_bytes),
    SHARD_FIELD("pushes", pushes),
    SHARD_FIELD("pulls", pulls),
    SHARD_FIELD("reply_waits", waits_for_replies),
};

#define CORE_FIELD(member)                                                    \
    {                                                                         \
#member, PH_JSON_COUNT, offsetof(struct ph__core_counters, member), 0 \
    }
static const struct ph__json_field core_fields[] = {
    CORE_FIELD(rounds),
    CORE_FIELD(idle_rounds),
    CORE_FIELD(sleeps),
};

#define SET_FIELDS(object, fields, from) \
    ph__json_set_fields((object), (fields), sizeof(fields) / sizeof *(fields), (from))

static void set_count(struct ph__json *object, const char *key, uint64_t count)
{
    ph__json_set_integer(object, key, (int64_t)count);
}

/* ---- jobs ---- */

static const char *state_name(const struct ph__tenant *tenant)
{
    switch (tenant->state) {
    case PH_TENANT_GATHERING:
        return "gathering";
    case PH_TENANT_CHOOSING:
        return "choosing its checkpoint";
    case PH_TENANT_LOADING:
        return "reading its checkpoint";
    case PH_TENANT_LINKING:
        return "linking";
    case PH_TENANT_ENDING:
        return "ending";
    case PH_TENANT_RUNNING:
        break;
    }
    return tenant->has_begun ? "running" : "touching memory";
}

static const char *why_transport(const struct ph__member *member)
{
    switch (member->way) {
    case PH_WAY_SHARED:
        return "the worker is on this host";
    case PH_WAY_ASKED_FOR:
        return "TCP was asked for";
    case PH_WAY_OTHER_USER:
        return "the worker runs as another user";
    case PH_WAY_SEVERAL_HUBS:
        return "several hubs share the job's keys";
    case PH_WAY_UNREACHED:
    case PH_WAY_COUNT:
        break;
    }
    return member->session->is_of_host
               ? "the worker is on this host, but does not reach the hub's local socket"
               : "the worker is on another host";
}

static void add_worker(struct ph__json *workers, const struct ph__tenant_figures *figures, uint32_t rank)
{
    const struct ph__member *member = &figures->tenant->members[rank];
    if (member->session == NULL)
        return;
    struct ph__json *worker = ph__json_object();
    ph__json_set_integer(worker, "rank", rank);
    ph__json_set_text(worker, "transport", figures->workers[rank].transport);
    ph__json_set_text(worker, "addresses", member->addresses + strspn(member->addresses, " "));
    ph__json_set_text(worker, "why", why_transport(member));
    ph__json_set_text(worker, "peer", member->session->peer);
    SET_FIELDS(worker, link_fields, &figures->workers[rank].links);
    ph__json_append(workers, worker);
}

static void add_key(struct ph__json *keys, const struct ph__tenant *tenant, size_t index)
{
    struct ph__json *key = ph__json_object();
    set_count(key, "elements", tenant->keys[index].num_elements);
    ph__json_set_text(key, "dtype", ph_dtype_name(tenant->keys[index].dtype));
    ph__json_set_integer(key, "optimizer", tenant->keys[index].optimizer);
    if (tenant->layout != NULL)
        set_count(key, "chunks", ph__layout_count_here(tenant->layout, index));
    ph__json_append(keys, key);
}

static void set_service(struct ph__json *job, const struct ph__tenant *tenant)
{
    const struct ph_hub_service *service = &tenant->settings.service;
    ph__json_set_text(job, "name", service->name);
    ph__json_set_text(job, "state", state_name(tenant));
    ph__json_set_text(job, "mode", ph__service_mode_name(service->mode));
    ph__json_set_text(job, "order", service->order == PH_HUB_WORKER_ORDER ? "worker" : "arrival");
    ph__json_set_text(job, "on_death", service->on_death == PH_HUB_ABORT ? "abort" : "shrink");
    ph__json_set_integer(job, "hub", tenant->settings.share.hub + 1);
    ph__json_set_integer(job, "num_hubs", tenant->settings.share.num_hubs);
    ph__json_set_integer(job, "workers_wanted", service->num_workers);
    ph__json_set_integer(job, "workers_there", tenant->num_joined);
    set_count(job, "bytes", ph__tenant_bytes(tenant));
    set_count(job, "num_keys", tenant->num_keys);
    if (tenant->layout == NULL)
        return;
    set_count(job, "num_chunks", tenant->layout->sizes.num_here);
    set_count(job, "chunk_bytes", tenant->layout->chunk_bytes);
    ph__json_set_text(job, "results", tenant->job.is_non_temporal ? "non_temporal" : "cached");
}

static struct ph__json *job_of(const struct ph__tenant_figures *figures, size_t max_listed)
{
    const struct ph__tenant *tenant = figures->tenant;
    struct ph__json *job = ph__json_object(), *workers = ph__json_array(), *keys = ph__json_array();
    set_service(job, tenant);
    set_count(job, "iteration", figures->iteration);
    if (tenant->saves.has_parameters)
        set_count(job, "checkpoint_iteration", tenant->saves.iteration);
    SET_FIELDS(job, shard_fields, &figures->counters);
    for (uint32_t i = 0; i < ph__min(tenant->settings.service.num_workers, max_listed); i++)
        add_worker(workers, figures, i);
    for (size_t i = 0; i < ph__min(tenant->num_keys, max_listed); i++)
        add_key(keys, tenant, i);
    ph__json_set(job, "workers", workers);
    ph__json_set(job, "keys", keys);
    return job;
}

/* ---- the hub ---- */

static struct ph__json *cores_of(const struct ph_hub_server *server)
{
    struct ph__json *cores = ph__json_array();
    for (uint16_t i = 0; i < server->num_cores; i++) {
        char place[PH_THREAD_PLACE_TEXT_BYTES];
        const struct ph__core_counters counters = ph__core_counters(server->cores[i]);
        struct ph__json *core = ph__json_object();
        ph__json_set_text(
            core, "place", ph__thread_place_text(&server->machine, &server->placement, i, place));
        SET_FIELDS(core, core_fields, &counters);
        ph__json_append(cores, core);
    }
    return cores;
}

static struct ph__json *links_of(const struct ph__traffic *traffic)
{
    struct ph__json *links = ph__json_array();
    for (size_t i = 0; i < traffic->num_transports; i++) {
        struct ph__json *link = ph__json_object();
        ph__json_set_text(link, "transport", traffic->transports[i]);
        SET_FIELDS(link, link_fields, &traffic->counters[i]);
        ph__json_append(links, link);
    }
    return links;
}

static size_t count_listed(const struct ph__hub_figures *figures, bool is_of_one)
{
    const size_t most = LISTS_BYTES / ENTRY_BYTES;
    return is_of_one ? most : ph__min(most / ph__max(figures->num_tenants, 1), MAX_LISTED);
}

/* Returns the status as JSON; service: "" for all. */
static struct ph__json *status_of(
    const struct ph_hub_server *server, const struct ph__hub_figures *figures, const char *service)
{
    struct ph__json *json = ph__json_object(), *jobs = ph__json_array();
    const bool is_of_one = *service != '\0';
    ph__json_set_text(json, "address", server->address);
    ph__json_set_number(json, "seconds", figures->seconds);
    ph__json_set_text(json, "aggregation", server->options.aggregation == PH_HUB_WIDE ? "wide" : "tall");
    ph__json_set_bool(json, "is_crowded", server->is_crowded);
    set_count(json, "connections", figures->num_connections);
    set_count(json, "max_bytes", server->max_bytes);
    set_count(json, "used_bytes", figures->used_bytes);
    ph__json_set_integer(json, "max_jobs", (int64_t)server->options.max_jobs);
    ph__json_set(json, "cores", cores_of(server));
    ph__json_set(json, "links", links_of(&figures->traffic));
    for (size_t i = 0; i < figures->num_tenants; i++) {
        if (!is_of_one || strcmp(figures->tenants[i].tenant->settings.name, service) == 0)
            ph__json_append(jobs, job_of(&figures->tenants[i], count_listed(figures, is_of_one)));
    }
    ph__json_set(json, "jobs", jobs);
    return json;
}

static ph_status write_status(struct ph_hub_server *server, const char *service, char **text_out)
{
    struct ph__hub_figures figures;
    PH_TRY(ph__hub_figures_read(server, &figures));
    struct ph__json *json = status_of(server, &figures, service);
    ph__hub_figures_fini(&figures);
    const ph_status status = ph__json_text(json, 0, text_out);
    ph__json_destroy(json);
    return status;
}

/* Returns the unsent bytes of all sessions. */
static size_t count_unread(const struct ph_hub_server *server)
{
    size_t bytes = 0;
    for (const struct ph_session *session = server->sessions; session != NULL; session = session->next) {
        if (session->stream != NULL)
            bytes += ph__control_stream_output_bytes(session->stream);
    }
    return bytes;
}

static ph_status make_answer(struct ph_session *session, char **text_out)
{
    const size_t num_unread = count_unread(session->server);
    if (num_unread > MAX_UNREAD_BYTES)
        return ph_fail(PH_ERROR_MEMORY,
            "the hub has %zu bytes of answers that peers have not read: try again later", num_unread);
    PH_TRY(write_status(session->server, session->asked_service, text_out));
    const size_t size = strlen(*text_out);
    if (size <= PH_CONTROL_MAX_BYTES)
        return PH_OK;
    free(*text_out);
    return ph_fail(PH_ERROR_MEMORY,
        "the status of %u services takes %zu bytes, more than a message holds: ask for one of them",
        session->server->num_tenants, size);
}

static void tell(struct ph_session *session)
{
    char *text;
    struct ph__wire_writer writer;
    const ph_status status = make_answer(session, &text);
    if (status != PH_OK) {
        ph__session_answer(session, status);
        return;
    }
    ph__wire_writer_init(&writer, text, strlen(text));
    writer.used = writer.capacity; /* the text is the whole body */
    ph__session_send(session, PH_FRAME_STATUS_TEXT, &writer, NULL, 0);
    free(text);
}

ph_status ph__server_request_status(struct ph_session *session, const struct ph__control_frame *frame)
{
    PH_TRY(ph__get_service_name(frame->body, frame->size, session->asked_service));
    session->question = ++session->server->num_questions;
    return PH_OK;
}

void ph__server_tell_status(struct ph_hub_server *server)
{
    struct ph_session *first = NULL;
    for (struct ph_session *session = server->sessions; session != NULL; session = session->next) {
        if (session->question != 0 && (first == NULL || session->question < first->question))
            first = session;
    }
    if (first == NULL)
        return;
    first->question = 0;
    first->has_more = true; /* frames may wait behind the question */
    if (!first->is_closing)
        tell(first);
}
