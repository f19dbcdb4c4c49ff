/* Requests of workers: joining, keys, links, and the dispatch of all other requests. server_ends.c handles
 * leaving and death, server_services.c the services themselves. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/sum/random_bytes.h"
#include "hub/server/server_state.h"
#include "net/waiter.h"

/* ---- joining ---- */

static ph_status check_join(
    const struct ph_session *session, const struct ph__join *join, struct ph__tenant **tenant_out)
{
    struct ph__tenant *tenant;
    if (session->tenant != NULL)
        return ph_fail(
            PH_ERROR_USAGE, "this connection has joined a service already, as worker %u", session->rank);
    PH_TRY(ph__server_look_for(session->server, join->name, &tenant));
    if (tenant == NULL || ph__tenant_is_ending(tenant)) /* not created yet, or not again after a restart */
        return ph_fail(PH_ERROR_PEER, "service '%s' does not exist", join->name);
    if (tenant->settings.service.nonce != join->nonce)
        return ph_fail(PH_ERROR_USAGE, "service '%s' exists with another nonce", join->name);
    PH_TRY(ph__server_check_share(tenant, &join->share));
    if (join->rank >= tenant->settings.service.num_workers)
        return ph_fail(PH_ERROR_USAGE, "service '%s': rank %u of %u workers does not exist: ranks begin at 0",
            join->name, join->rank, tenant->settings.service.num_workers);
    if (tenant->members[join->rank].session != NULL)
        return ph_fail(PH_ERROR_PEER, "service '%s': worker %u has joined already", join->name, join->rank);
    if (tenant->state != PH_TENANT_GATHERING)
        return ph_fail(
            PH_ERROR_PEER, "service '%s' is running already: worker %u cannot join", join->name, join->rank);
    if (join->way == PH_WAY_SHARED && !session->is_local)
        return ph_fail(PH_ERROR_PEER, "shared memory needs a connection over the hub's local socket");
    PH_TRY(ph__server_check_descriptors(session, tenant, join->way == PH_WAY_SHARED));
    *tenant_out = tenant;
    return PH_OK;
}

/* Returns the most bytes of the frame that lists a worker's keys. In its job's memory a key takes at least a
 * cache line for each worker's gradient, four times its size in the frame; more keys than fit in that need
 * not be read. */
static size_t keys_limit(const struct ph_hub_server *server, const struct ph__tenant *tenant)
{
    const uint64_t left = ph__server_bytes_left(server);
    const uint64_t most = left / (4 * (uint64_t)tenant->settings.service.num_workers);
    return (size_t)ph__min(ph__max(most, PH_HUB_MAX_BODY), PH_HUB_MAX_KEYS_BODY);
}

static void log_joined(const struct ph_session *session)
{
    const struct ph__tenant *tenant = session->tenant;
    PH_LOG(session->server->log, PH_LOG_INFO, "worker_joined", ph__log_text("job", tenant->settings.name),
        ph__log_count("rank", session->rank), ph__log_count("connection", session->number),
        ph__log_text("transport", tenant->members[session->rank].is_shared ? "shared memory" : "tcp"));
}

static ph_status request_join(struct ph_session *session, const struct ph__control_frame *frame)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__join join;
    struct ph__tenant *tenant;
    PH_TRY(ph__get_join(frame->body, frame->size, &join));
    const ph_status status = check_join(session, &join, &tenant);
    if (status != PH_OK) {
        ph__session_answer(session, status);
        return PH_OK;
    }
    const struct ph_hub_service *service = &tenant->settings.service;
    const bool is_shared = join.way == PH_WAY_SHARED;
    const bool has_own = is_shared && (join.has_own_parameters || service->mode != PH_HUB_SYNCHRONOUS);
    if (tenant->num_joined == 0)
        tenant->max_keys_bytes = keys_limit(session->server, tenant);
    tenant->members[join.rank] = (struct ph__member){.session = session,
        .is_shared = is_shared,
        .way = join.way,
        .has_own_parameters = has_own,
        .keys_bytes = 2 * tenant->max_keys_bytes}; /* the receive buffer grows by doubling */
    tenant->num_joined++;
    session->tenant = tenant;
    session->rank = join.rank;
    ph__control_stream_limit(session->stream, tenant->max_keys_bytes);
    log_joined(session);
    const struct ph__joined joined = {.num_workers = service->num_workers,
        .depth = service->depth,
        .num_optimizers = (uint32_t)service->num_optimizers,
        .has_own_parameters = has_own};
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_joined(&writer, &joined);
    ph__session_send(session, PH_FRAME_JOINED, &writer, NULL, 0);
    return PH_OK;
}

/* ---- keys, links, and the beginning ---- */

uint64_t ph__server_bytes_left(const struct ph_hub_server *server)
{
    uint64_t used = 0;
    for (const struct ph__tenant *tenant = server->tenants; tenant != NULL; tenant = tenant->next)
        used += ph__tenant_bytes(tenant);
    const uint64_t left = used < server->max_bytes ? server->max_bytes - used : 0;
    const uint64_t most = server->options.max_job_bytes;
    return most > 0 && most < left ? most : left;
}

/* Returns the address for a worker's connection to the core thread: that of the interface chosen for the
 * core, in the session's family; "" for the session's own address. */
static const char *host_of_core(const struct ph_session *session, uint16_t core)
{
    const struct ph_hub_server *server = session->server;
    const uint32_t interface = server->placement.threads[core].interface;
    const int socket = ph__control_stream_socket(session->stream);
    if (session->is_of_host || interface == PH_NOWHERE)
        return "";
    return server->machine.interfaces[interface].hosts[ph__socket_is_ipv4(socket) ? PH_IPV4 : PH_IPV6];
}

static struct ph__job_layout layout_for(const struct ph__tenant *tenant, uint32_t rank)
{
    const struct ph_session *session = tenant->members[rank].session;
    struct ph__job_layout layout = {
        .chunk_bytes = (uint32_t)tenant->layout->chunk_bytes,
        .num_versions = tenant->memory->num_versions,
        .ring_capacity = (uint32_t)tenant->ring_capacity,
        .num_cores = tenant->num_cores,
        .is_crowded = session->server->is_crowded && session->is_of_host,
        .is_restored = tenant->is_restored,
        .cores_sum = tenant->cores_sum,
        .token = tenant->members[rank].token,
        .iteration = tenant->first_iteration,
    };
    for (uint16_t core = 0; core < layout.num_cores; core++)
        strcpy(layout.hosts[core], host_of_core(session, core));
    return layout;
}

static ph_status send_layout(struct ph__tenant *tenant, uint32_t rank)
{
    int descriptors[2 + PH_HUB_MAX_CORES];
    size_t num_descriptors = 0;
    struct ph_session *session = tenant->members[rank].session;
    const struct ph__job_layout layout = layout_for(tenant, rank);
    const size_t capacity = PH_HUB_MAX_BODY + layout.num_cores * PH_HUB_HOST_BYTES;
    unsigned char *bytes = malloc(capacity);
    if (bytes == NULL)
        return ph__out_of_memory("a job's layout");
    if (tenant->members[rank].is_shared) {
        descriptors[num_descriptors++] = tenant->memory->workers[rank].region.descriptor;
        descriptors[num_descriptors++] = tenant->memory->region.descriptor;
        const ph_status status = ph__tenant_link_shared(tenant, rank, descriptors + num_descriptors);
        if (status != PH_OK) {
            free(bytes);
            return status;
        }
        num_descriptors += tenant->num_cores;
    }
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, capacity);
    ph__put_layout(&writer, &layout);
    ph__session_send(session, PH_FRAME_LAYOUT, &writer, descriptors, num_descriptors);
    for (size_t i = 2; i < num_descriptors; i++)
        close(descriptors[i]);
    free(bytes);
    return PH_OK;
}

/* Returns the name in the trace of a job that begins, or NULL when the job is not traced. */
static const char *trace_name_for(struct ph_hub_server *server, const char *job)
{
    struct ph__server_trace *trace = &server->trace;
    if (server->options.aggregation == PH_HUB_WIDE || trace->num_jobs == PH_HUB_MAX_TRACED_JOBS ||
        ph__trace_is_full(trace->events))
        return NULL;
    return strcpy(trace->names[trace->num_jobs++], job);
}

/* Rings the control thread's bell: a ph__tenant_news, called in core threads. */
static void note_news(void *context)
{
    const struct ph_hub_server *server = context;
    ph__doorbell_ring(server->bell[1]);
}

ph_status ph__server_begin_linking(struct ph_hub_server *server, struct ph__tenant *tenant)
{
    const char *trace_name = trace_name_for(server, tenant->settings.name);
    const struct ph__tenant_options options = {
        .cores = server->cores,
        .num_cores = server->num_cores,
        .kernels = server->kernels,
        .tuning = &server->tuning,
        .is_wide = server->options.aggregation == PH_HUB_WIDE,
        .results = server->options.results,
        .max_bytes = ph__server_bytes_left(server),
        .failure = ph__server_note_failure,
        .has_news = note_news,
        .context = server,
        .has_snapshots = server->options.checkpoint_folder != NULL,
        .trace = trace_name != NULL ? server->trace.events : NULL,
        .trace_name = trace_name,
    };
    PH_TRY(ph__tenant_build(tenant, &options));
    ph__server_count_crowd(server);
    for (uint32_t rank = 0; rank < tenant->settings.service.num_workers; rank++)
        PH_TRY(ph__random_bytes(&tenant->members[rank].token, sizeof tenant->members[rank].token));
    for (uint32_t rank = 0; rank < tenant->settings.service.num_workers; rank++)
        PH_TRY(send_layout(tenant, rank));
    return PH_OK;
}

/* Checks keys and takes ownership of them: the tenant keeps them, or they are freed. */
static ph_status keep_keys(struct ph__tenant *tenant, struct ph__init_key *keys, size_t num_keys)
{
    const ph_status status = ph__tenant_check_keys(tenant, keys, num_keys);
    if (status != PH_OK) {
        free(keys);
        return status;
    }
    if (tenant->keys == NULL) {
        tenant->keys = keys;
        tenant->num_keys = num_keys;
        return PH_OK;
    }
    bool is_same = num_keys == tenant->num_keys;
    for (size_t i = 0; is_same && i < num_keys; i++)
        is_same = keys[i].num_elements == tenant->keys[i].num_elements &&
                  keys[i].dtype == tenant->keys[i].dtype && keys[i].optimizer == tenant->keys[i].optimizer;
    free(keys);
    if (!is_same)
        return ph_fail(
            PH_ERROR_USAGE, "service '%s': all workers must initialise the same keys", tenant->settings.name);
    return PH_OK;
}

static ph_status request_init(struct ph_session *session, const struct ph__control_frame *frame)
{
    struct ph__tenant *tenant = session->tenant;
    struct ph__init_key *keys;
    size_t num_keys;
    if (tenant == NULL || tenant->members[session->rank].has_keys)
        return ph_fail(PH_ERROR_PEER, "a worker must send its keys once, after joining");
    ph_status status = ph__get_keys(frame->body, frame->size, &keys, &num_keys);
    if (status == PH_OK)
        status = keep_keys(tenant, keys, num_keys);
    if (status != PH_OK) {
        ph__session_answer(session, status);
        return PH_OK;
    }
    tenant->members[session->rank].has_keys = true;
    tenant->members[session->rank].keys_bytes = 0;
    tenant->num_with_keys++;
    ph__control_stream_limit(session->stream, PH_HUB_MAX_BODY);
    if (tenant->num_with_keys < tenant->settings.service.num_workers)
        return PH_OK;
    if (session->server->options.checkpoint_folder != NULL) {
        tenant->state = PH_TENANT_LOADING;
        ph__server_keep(session->server, tenant);
        return PH_OK;
    }
    if (ph__tenant_has_parts(tenant)) { /* no parts here, but other hubs may have some */
        ph__server_offer_parts(tenant);
        return PH_OK;
    }
    status = ph__server_begin_linking(session->server, tenant);
    if (status != PH_OK)
        ph__server_end_run(session->server, tenant, status, ph_error_text());
    return PH_OK;
}

static bool find_token(
    const struct ph_hub_server *server, uint64_t token, struct ph__tenant **tenant_out, uint32_t *rank_out)
{
    for (struct ph__tenant *tenant = server->tenants; tenant != NULL; tenant = tenant->next) {
        for (uint32_t rank = 0;
             tenant->state == PH_TENANT_LINKING && rank < tenant->settings.service.num_workers; rank++) {
            const struct ph__member *member = &tenant->members[rank];
            if (member->session == NULL || member->is_shared || member->is_linked || member->token != token)
                continue;
            *tenant_out = tenant;
            *rank_out = rank;
            return true;
        }
    }
    return false;
}

static void note_address(struct ph__member *member, int socket)
{
    char address[1 + PH_ADDRESS_BYTES] = " "; /* no address is a prefix: all end with the same port */
    const size_t used = strlen(member->addresses);
    if (ph__socket_address(socket, address + 1) != PH_OK || strstr(member->addresses, address) != NULL)
        return;
    if (used + strlen(address) < sizeof member->addresses)
        strcpy(member->addresses + used, address);
}

/* Turns the connection from a session into a link between a worker and a core thread. */
static ph_status request_attach(struct ph_session *session, const struct ph__control_frame *frame)
{
    struct ph__attach attach;
    struct ph__tenant *tenant;
    uint32_t rank;
    int socket;
    struct ph__frame_key *send_key, *receive_key;
    PH_TRY(ph__get_attach(frame->body, frame->size, &attach));
    if (session->tenant != NULL || !find_token(session->server, attach.token, &tenant, &rank))
        return ph_fail(PH_ERROR_PEER, "the link belongs to no waiting worker");
    ph__session_answer(session, PH_OK);
    ph__event_source_remove(session->source);
    session->source = NULL;
    session->is_closing = true;
    struct ph__control_stream *stream = session->stream;
    session->stream = NULL;
    PH_TRY(ph__control_stream_release(stream, &socket, &send_key, &receive_key));
    note_address(&tenant->members[rank], socket);
    return ph__tenant_link_tcp(tenant, rank, attach.core, socket, send_key, receive_key);
}

static ph_status request_linked(struct ph_session *session)
{
    struct ph__tenant *tenant = session->tenant;
    if (tenant == NULL || tenant->state != PH_TENANT_LINKING || tenant->members[session->rank].is_linked ||
        !ph__tenant_is_linked(tenant, session->rank))
        return ph_fail(PH_ERROR_PEER, "a worker must report its links once, after its keys");
    tenant->members[session->rank].is_linked = true;
    tenant->num_linked++;
    if (tenant->num_linked < tenant->settings.service.num_workers)
        return PH_OK;
    const ph_status status = ph__tenant_start(tenant);
    if (status != PH_OK)
        ph__server_end_run(session->server, tenant, status, ph_error_text());
    return PH_OK;
}

static void log_begun(const struct ph_hub_server *server, const struct ph__tenant *tenant)
{
    char why[PH_AUTOTUNE_TEXT_BYTES];
    ph__autotune_describe(&server->tuning, &tenant->chunks, why);
    PH_LOG(server->log, PH_LOG_INFO, "job_begun", ph__log_text("job", tenant->settings.name),
        ph__log_count("workers", tenant->num_joined), ph__log_count("keys", tenant->num_keys),
        ph__log_count("chunks", tenant->layout->sizes.num_here),
        ph__log_count("chunk_bytes", tenant->layout->chunk_bytes), ph__log_text("chunk_choice", why),
        ph__log_count("bytes", tenant->num_bytes));
}

void ph__server_begin_touched(struct ph_hub_server *server)
{
    for (struct ph__tenant *tenant = server->tenants; tenant != NULL; tenant = tenant->next) {
        if (tenant->state != PH_TENANT_RUNNING || tenant->has_begun || !ph__tenant_is_touched(tenant))
            continue;
        tenant->has_begun = true;
        log_begun(server, tenant);
        for (uint32_t i = 0; i < tenant->settings.service.num_workers; i++) {
            if (tenant->members[i].session != NULL)
                ph__session_send(tenant->members[i].session, PH_FRAME_BEGIN, NULL, NULL, 0);
        }
    }
}

/* Lets the job go when all workers are ready. All are still there: one that leaves earlier ends the run. */
void ph__server_begin_if_ready(struct ph_hub_server *server, struct ph__tenant *tenant)
{
    if (tenant->num_ready < tenant->settings.service.num_workers || tenant->saves.is_restoring)
        return;
    tenant->is_going = true;
    tenant->saves.is_wanted = !tenant->is_restored && server->options.checkpoint_folder != NULL;
    for (uint32_t i = 0; i < tenant->settings.service.num_workers; i++)
        ph__session_send(tenant->members[i].session, PH_FRAME_GO, NULL, NULL, 0);
    if (tenant->is_restored)
        ph__server_announce_parts(server, tenant, false);
    ph__server_keep(server, tenant);
}

/* Notes that a worker is ready. No worker pulls before rank 0 has given all parameters. */
static ph_status request_assigned(struct ph_session *session)
{
    struct ph__tenant *tenant = session->tenant;
    if (tenant == NULL || tenant->state != PH_TENANT_RUNNING || tenant->members[session->rank].is_ready)
        return ph_fail(PH_ERROR_PEER, "a worker must report its parameters once, after its links");
    tenant->members[session->rank].is_ready = true;
    tenant->num_ready++;
    ph__server_begin_if_ready(session->server, tenant);
    return PH_OK;
}

static ph_status request_checkpoint(struct ph_session *session, const struct ph__control_frame *frame)
{
    struct ph__tenant *tenant = session->tenant;
    uint64_t iteration = 0;
    if (tenant == NULL || !tenant->is_going)
        return ph_fail(PH_ERROR_PEER, "only a worker of a running job can ask for a checkpoint");
    if (ph__tenant_has_parts(tenant))
        PH_TRY(ph__get_iteration(frame->body, frame->size, &iteration));
    if (iteration == PH_NO_ITERATION)
        return ph_fail(PH_ERROR_PEER, "a worker asked for a checkpoint without an iteration");
    if (session->server->options.checkpoint_folder == NULL) {
        ph__session_answer(session,
            ph_fail(PH_ERROR_USAGE, "this hub keeps no checkpoints: start it with hub.checkpoint_folder"));
        return PH_OK;
    }
    ph__server_await_checkpoint(session, tenant, tenant->saves.num_begun + 1);
    tenant->saves.is_wanted = true;
    tenant->saves.parts.asked = iteration;
    ph__server_keep(session->server, tenant);
    return PH_OK;
}

/* ---- dispatch ---- */

ph_status ph__server_request(struct ph_session *session, const struct ph__control_frame *frame)
{
    if (session->awaited != NULL && frame->type != PH_FRAME_KEEP) /* a KEEP may come at any time */
        return ph_fail(PH_ERROR_PEER, "a message of type %u came before the last was answered", frame->type);
    switch ((enum ph__hub_frame)frame->type) {
    case PH_FRAME_CREATE:
        return ph__server_request_create(session, frame);
    case PH_FRAME_DESTROY:
        return ph__server_request_destroy(session, frame);
    case PH_FRAME_END_SERVICE:
        return ph__server_request_end(session, frame);
    case PH_FRAME_JOIN:
        return request_join(session, frame);
    case PH_FRAME_INIT:
        return request_init(session, frame);
    case PH_FRAME_LINKED:
        return request_linked(session);
    case PH_FRAME_ASSIGNED:
        return request_assigned(session);
    case PH_FRAME_ATTACH:
        return request_attach(session, frame);
    case PH_FRAME_CHECKPOINT:
        return request_checkpoint(session, frame);
    case PH_FRAME_LEAVE:
        return ph__server_request_leave(session);
    case PH_FRAME_FROM:
        return ph__server_request_from(session, frame);
    case PH_FRAME_ANSWER:
        return ph__server_request_refusal(session, frame);
    case PH_FRAME_KEEP:
        return ph__server_request_keep(session, frame);
    case PH_FRAME_STATUS:
        return ph__server_request_status(session, frame);
    default:
        return ph_fail(PH_ERROR_PEER, "a message of type %u is not a request to a hub", frame->type);
    }
}
