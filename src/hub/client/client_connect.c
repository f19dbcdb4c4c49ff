/* A worker's way into its job, and out again. See phloem/hub.h and protocol.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/client/client_engine.h"
#include "hub/client/client_greet.h"
#include "hub/shard/wait_policy.h"

/* ---- joining ---- */

/* Goes over to the hub's local socket, where there is one to be had. */
static ph_status go_local(
    struct ph_hub_client *client, const struct ph_hub_options *options, struct ph_welcome *welcome)
{
    int socket;
    struct ph_control_stream *local;
    if (options->transport == PH_HUB_TCP || client->list.num_hubs > 1) {
        client->way = client->list.num_hubs > 1 ? PH_WAY_SEVERAL_HUBS : PH_WAY_ASKED_FOR;
        snprintf(client->why, sizeof client->why, "%s",
            client->list.num_hubs > 1 ? "several hubs share the job's keys" : "it was asked for");
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
    struct ph_hub_client *client, const struct wanted_job *job, uint16_t hub, struct ph_joined *joined_out)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    struct ph_control_frame frame;
    struct ph_join wish = {.nonce = job->nonce,
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
    struct ph_hub_client *client, const struct wanted_job *job, uint16_t hub, struct ph_joined *joined_out)
{
    const struct ph_hub_options one = ph__hub_list_options(&client->list, hub, job->options);
    struct ph_welcome welcome;
    PH_TRY(ph__client_reach(&one, client->secret, &client->hubs[hub].stream, &welcome));
    PH_TRY(go_local(client, &one, &welcome));
    return join(client, job, hub, joined_out);
}

/* Hubs that were told different things of a service cannot share it. */
static ph_status check_same(const struct ph_hub_client *client, const struct wanted_job *job, uint16_t hub,
    const struct ph_joined *joined)
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
        struct ph_joined joined;
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
        return ph_fail(PH_ERROR_USAGE, "several hubs are reached over TCP, and shared memory was asked for");
    client->hubs = calloc(client->list.num_hubs, sizeof *client->hubs);
    if (options->secret_file != NULL)
        client->secret = calloc(1, sizeof *client->secret);
    if (client->hubs == NULL || (options->secret_file != NULL && client->secret == NULL))
        return ph_fail(PH_ERROR_MEMORY, "no memory for a worker of a hub");
    PH_TRY(ph__client_parts_init(client));
    return client->secret != NULL ? ph__secret_read(options->secret_file, client->secret) : PH_OK;
}

static ph_status check_words(const struct ph_hub_options *options)
{
    if ((unsigned)options->transport > PH_HUB_TCP)
        return ph_fail(PH_ERROR_USAGE, "there is no transport %d", (int)options->transport);
    if ((unsigned)options->wait > PH_HUB_WAIT_SLEEP)
        return ph_fail(PH_ERROR_USAGE, "there is no wait %d", (int)options->wait);
    return PH_OK;
}

ph_status ph_hub_connect(const struct ph_hub_options *options, const char *service, uint64_t nonce,
    uint32_t rank, struct ph_hub_client **client_out)
{
    const struct wanted_job job = {.options = options, .service = service, .nonce = nonce};
    PH_TRY(ph__service_check_name(service));
    PH_TRY(check_words(options));
    if (rank >= PH_HUB_MAX_WORKERS)
        return ph_fail(PH_ERROR_USAGE, "rank %u: a service has at most %d workers", rank, PH_HUB_MAX_WORKERS);
    struct ph_hub_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a worker of a hub");
    client->timeout = ph__client_timeout(options);
    client->rank = rank;
    client->has_no_thread = options->has_no_thread;
    client->region.descriptor = client->results.descriptor = -1;
    for (size_t i = 0; i < PH_HUB_MAX_OPTIMIZERS; i++)
        client->learning_rates[i] = NAN;
    ph__waiter_init(&client->waiter, ph__wait_policy(options->wait), false);
    ph_status status = keep_options(client, options);
    if (status == PH_OK)
        status = join_all(client, &job);
    if (status != PH_OK) {
        ph_hub_client_destroy(client);
        return status;
    }
    *client_out = client;
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
