/* A worker's way into its job and out again: joining, keys, links, first parameters, leaving. See
 * phloem/hub.h and protocol.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory/caller.h"
#include "base/memory/memory.h"
#include "hub/client/client_greet.h"
#include "hub/client/client_state.h"
#include "hub/shard/core.h"

/* ---- joining ---- */

/* Changes over to the hub's local socket, if it can be reached. */
static ph_status go_local(
    struct ph_hub_client *client, const struct ph_hub_options *options, struct ph__welcome *welcome)
{
    int socket;
    struct ph__control_stream *local;
    if (options->transport == PH_HUB_TCP || client->list.num_hubs > 1) {
        client->way = client->list.num_hubs > 1 ? PH_WAY_SEVERAL_HUBS : PH_WAY_ASKED_FOR;
        snprintf(client->why, sizeof client->why, "%s",
            client->list.num_hubs > 1 ? "several hubs share the job's keys" : "TCP was asked for");
        return PH_OK;
    }
    if (ph__client_reach_local(welcome, client->timeout.ms, &socket, &client->way) != PH_OK) {
        snprintf(client->why, sizeof client->why, "%s", ph_error_text());
        return options->transport == PH_HUB_SHARED_MEMORY ? PH_ERROR_PEER : PH_OK;
    }
    PH_TRY(ph__client_greet(socket, client->secret, client->timeout, &local, welcome));
    ph__control_stream_destroy(client->hubs[0].stream);
    client->hubs[0].stream = local;
    client->is_shared = true;
    snprintf(client->why, sizeof client->why, "the hub is on this host");
    return PH_OK;
}

struct wanted_job {
    const struct ph_hub_options *options;
    const char *service;
    uint64_t nonce;
};

static ph_status join(
    struct ph_hub_client *client, const struct wanted_job *job, uint16_t hub, struct ph__joined *joined_out)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__control_frame frame;
    struct ph__join wish = {.nonce = job->nonce,
        .rank = client->rank,
        .way = client->way,
        .has_own_parameters = job->options->has_own_parameters,
        .share = ph__hub_list_share(&client->list, hub)};
    strcpy(wish.name, job->service);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_join(&writer, &wish);
    PH_TRY(ph__client_request(
        client->hubs[hub].stream, PH_FRAME_JOIN, &writer, PH_FRAME_JOINED, client->timeout, &frame));
    return ph__get_joined(frame.body, frame.size, joined_out);
}

static ph_status join_hub(
    struct ph_hub_client *client, const struct wanted_job *job, uint16_t hub, struct ph__joined *joined_out)
{
    const struct ph_hub_options one = ph__hub_list_options(&client->list, hub, job->options);
    struct ph__welcome welcome;
    PH_TRY(ph__client_reach(&one, client->secret, &client->hubs[hub].stream, &welcome));
    PH_TRY(go_local(client, &one, &welcome));
    return join(client, job, hub, joined_out);
}

/* Checks that the hubs have the same settings of the service. */
static ph_status check_same(const struct ph_hub_client *client, const struct wanted_job *job, uint16_t hub,
    const struct ph__joined *joined)
{
    if (joined->num_workers == client->joined.num_workers && joined->depth == client->joined.depth &&
        joined->num_optimizers == client->joined.num_optimizers)
        return PH_OK;
    return ph_fail(PH_ERROR_USAGE, "hub %s has other settings of service '%s' than hub %s",
        client->list.addresses[hub], job->service, client->list.addresses[0]);
}

static ph_status join_all(struct ph_hub_client *client, const struct wanted_job *job)
{
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++) {
        struct ph__joined joined;
        PH_TRY(ph__client_name(client, hub, join_hub(client, job, hub, &joined)));
        if (hub == 0)
            client->joined = joined;
        PH_TRY(check_same(client, job, hub, &joined));
    }
    return PH_OK;
}

static ph_status keep_options(struct ph_hub_client *client, const struct ph_hub_options *options)
{
    PH_TRY(ph__hub_list_read(options->address, &client->list));
    if (client->list.num_hubs > 1 && options->transport == PH_HUB_SHARED_MEMORY)
        return ph_fail(
            PH_ERROR_USAGE, "several hubs are reached over TCP only: shared memory needs a single hub");
    client->hubs = calloc(client->list.num_hubs, sizeof *client->hubs);
    if (options->secret_file != NULL)
        client->secret = calloc(1, sizeof *client->secret);
    if (client->hubs == NULL || (options->secret_file != NULL && client->secret == NULL))
        return ph__out_of_memory("a worker of a hub");
    PH_TRY(ph__client_parts_init(client));
    return client->secret != NULL ? ph__secret_read(options->secret_file, client->secret) : PH_OK;
}

static ph_status check_words(const struct ph_hub_options *options)
{
    if ((unsigned)options->transport > PH_HUB_TCP)
        return ph_fail(PH_ERROR_USAGE, "transport %d is unknown", (int)options->transport);
    if ((unsigned)options->wait > PH_HUB_WAIT_SLEEP)
        return ph_fail(PH_ERROR_USAGE, "wait %d is unknown", (int)options->wait);
    return PH_OK;
}

ph_status ph_hub_connect(const struct ph_hub_options *options, const char *service, uint64_t nonce,
    uint32_t rank, struct ph_hub_client **client_out)
{
    struct ph_hub_options own;
    const struct wanted_job job = {.options = &own, .service = service, .nonce = nonce};
    PH_TRY(ph__options_copy(&own, sizeof own, options, "ph_hub_options"));
    PH_TRY(ph__service_check_name(service));
    PH_TRY(check_words(&own));
    if (rank >= PH_HUB_MAX_WORKERS)
        return ph_fail(PH_ERROR_USAGE, "rank %u is too large: a service has at most %d workers", rank,
            PH_HUB_MAX_WORKERS);
    struct ph_hub_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return ph__out_of_memory("a worker of a hub");
    client->timeout = ph__client_timeout(&own);
    client->rank = rank;
    client->has_no_thread = own.has_no_thread;
    client->region.descriptor = client->results.descriptor = -1;
    for (size_t i = 0; i < PH_HUB_MAX_OPTIMIZERS; i++)
        client->learning_rates[i] = NAN;
    ph__waiter_init(&client->waiter, ph__wait_policy(own.wait), false);
    ph_status status = keep_options(client, &own);
    if (status == PH_OK)
        status = join_all(client, &job);
    if (status != PH_OK) {
        ph_hub_client_destroy(client);
        return status;
    }
    *client_out = client;
    return PH_OK;
}

/* ---- hubs' descriptions of the job ---- */

static ph_status tell_keys(struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys)
{
    const size_t capacity = num_keys * PH_HUB_KEY_BYTES;
    if (keys == NULL && num_keys > 0)
        return ph_fail(PH_ERROR_USAGE, "num_keys is %zu, but keys is NULL", num_keys);
    if (num_keys == 0 || num_keys > PH_LAYOUT_MAX_KEYS)
        return ph_fail(PH_ERROR_USAGE, "%zu keys: a job must have 1 to %zu", num_keys, PH_LAYOUT_MAX_KEYS);
    unsigned char *bytes = malloc(capacity);
    if (bytes == NULL)
        return ph__out_of_memory("%zu keys", num_keys);
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, capacity);
    ph__put_keys(&writer, keys, num_keys);
    const bool is_asked = client->rank == 0 && client->list.num_hubs > 1; /* rank 0 chooses among parts */
    ph_status status =
        ph__client_ask_all(client, PH_FRAME_INIT, &writer, is_asked ? PH_FRAME_PARTS : PH_FRAME_LAYOUT);
    free(bytes);
    if (status == PH_OK && is_asked)
        status = ph__client_choose_parts(client);
    return status;
}

static ph_status take_layouts(struct ph_hub_client *client, size_t num_keys)
{
    client->keys = calloc(num_keys, sizeof *client->keys);
    if (client->keys == NULL)
        return ph__out_of_memory("%zu keys", num_keys);
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++)
        client->waiter.is_crowded |= client->hubs[hub].job.is_crowded;
    for (size_t i = 0; i < num_keys; i++)
        client->keys[i].pushed = client->hubs[0].job.iteration;
    return PH_OK;
}

/* Checks that the hubs cut keys alike. */
static ph_status check_chunk_bytes(const struct ph_hub_client *client)
{
    const uint32_t wanted = client->hubs[0].job.chunk_bytes;
    for (uint16_t hub = 1; hub < client->list.num_hubs; hub++) {
        if (client->hubs[hub].job.chunk_bytes != wanted)
            return ph_fail(PH_ERROR_PEER,
                "hub %s has chunks of %u bytes and hub %s of %u: set the service's chunk_bytes",
                client->list.addresses[0], wanted, client->list.addresses[hub],
                client->hubs[hub].job.chunk_bytes);
    }
    return PH_OK;
}

/* Checks that the hub's parameters are of the first hub's iteration. */
static ph_status check_moment(const struct ph_hub_client *client, uint16_t index)
{
    const struct ph__client_hub *first = &client->hubs[0], *hub = &client->hubs[index];
    const char *first_name = client->list.addresses[0], *name = client->list.addresses[index];
    if (hub->num_chunks == 0)
        return PH_OK;
    if (hub->job.iteration != first->job.iteration)
        return ph_fail(PH_ERROR_CHECKPOINT,
            "hub %s has parameters of iteration %" PRIu64 " and hub %s of iteration %" PRIu64
            ": restore checkpoints of one iteration",
            first_name, first->job.iteration, name, hub->job.iteration);
    if (hub->job.is_restored != first->job.is_restored)
        return ph_fail(PH_ERROR_CHECKPOINT, "hub %s resumes from a checkpoint, but hub %s has none",
            first->job.is_restored ? first_name : name, first->job.is_restored ? name : first_name);
    return PH_OK;
}

/* ---- links ---- */

static ph_status make_layout(struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys)
{
    struct ph__layout_key *wanted = calloc(num_keys, sizeof *wanted);
    if (wanted == NULL)
        return ph__out_of_memory("%zu keys", num_keys);
    for (size_t i = 0; i < num_keys; i++)
        wanted[i] = (struct ph__layout_key){.num_elements = keys[i].num_elements, .dtype = keys[i].dtype};
    const ph_status status =
        ph__layout_create(wanted, num_keys, client->hubs[0].job.chunk_bytes, &client->layout);
    free(wanted);
    return status;
}

static ph_status make_links(
    struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys, size_t *num_taken_out)
{
    PH_TRY(take_layouts(client, num_keys));
    PH_TRY(check_chunk_bytes(client));
    PH_TRY(make_layout(client, keys, num_keys));
    PH_TRY(ph__client_find_links(client));
    for (uint16_t hub = 1; hub < client->list.num_hubs; hub++)
        PH_TRY(check_moment(client, hub));
    client->is_restored = client->hubs[0].job.is_restored;
    return ph__client_make_links(client, num_taken_out);
}

/* Makes links from the hubs' layouts. A hub that is alone sends descriptors; those not taken are closed. */
static ph_status take_job(struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys)
{
    const struct ph__control_frame *frame = &client->hubs[0].frame;
    size_t num_taken = 0;
    const ph_status status = make_links(client, keys, num_keys, &num_taken);
    for (size_t i = num_taken; i < frame->num_descriptors; i++)
        close(frame->descriptors[i]);
    return status;
}

/* ---- first parameters ---- */

/* Assigns the initial parameters, as rank 0. */
static ph_status assign(struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys)
{
    for (size_t i = 0; i < num_keys; i++) {
        if (keys[i].initial == NULL)
            continue;
        memcpy(client->gradients[0] + client->layout->keys[i].gradient_offset, keys[i].initial,
            keys[i].num_elements * ph_dtype_size(keys[i].dtype));
        PH_TRY(ph__client_begin(client, i, PH_HUB_ASSIGN));
    }
    return ph_hub_wait_all(client);
}

static ph_status begin(struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys)
{
    PH_TRY(ph__client_ask_all(client, PH_FRAME_LINKED, NULL, PH_FRAME_BEGIN));
    if (client->rank == 0 && !client->is_restored)
        PH_TRY(assign(client, keys, num_keys));
    PH_TRY(ph__client_ask_all(client, PH_FRAME_ASSIGNED, NULL, PH_FRAME_GO));
    for (size_t i = 0; i < num_keys; i++)
        PH_TRY(ph__client_begin(client, i, PH_HUB_PULL));
    return ph_hub_wait_all(client);
}

ph_status ph_hub_init(
    struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys, uint64_t *iteration_out)
{
    if (client->keys != NULL)
        return ph_fail(PH_ERROR_USAGE, "ph_hub_init can be called once only");
    PH_TRY(tell_keys(client, keys, num_keys));
    PH_TRY(take_job(client, keys, num_keys));
    for (size_t i = 0; i < num_keys; i++)
        client->keys[i].optimizer = keys[i].optimizer;
    PH_TRY(ph__client_engine_create(client, !client->is_shared && !client->has_no_thread, &client->engine));
    PH_TRY(begin(client, keys, num_keys));
    if (iteration_out != NULL)
        *iteration_out = client->hubs[0].job.iteration;
    return PH_OK;
}

/* ---- leaving ---- */

ph_status ph_hub_leave(struct ph_hub_client *client)
{
    PH_TRY(ph_hub_wait_all(client));
    client->has_left = true;
    return ph__client_ask_all(client, PH_FRAME_LEAVE, NULL, PH_FRAME_ANSWER);
}

void ph_hub_client_destroy(struct ph_hub_client *client)
{
    if (client == NULL)
        return;
    ph__client_engine_destroy(client->engine);
    for (uint32_t link = 0; client->links != NULL && link < client->num_links; link++)
        ph__link_destroy(client->links[link]);
    for (uint16_t hub = 0; client->hubs != NULL && hub < client->list.num_hubs; hub++)
        ph__control_stream_destroy(client->hubs[hub].stream);
    ph__region_close(&client->region);
    ph__region_close(&client->results);
    if (client->secret != NULL)
        ph__secret_fini(client->secret);
    free(client->secret);
    ph__layout_destroy(client->layout);
    ph__client_parts_fini(client);
    free(client->hubs);
    ph__hub_list_fini(&client->list);
    free(client->links);
    free(client->ends);
    free(client->link_of_chunk);
    free(client->asked);
    free(client->keys);
    free(client);
}
