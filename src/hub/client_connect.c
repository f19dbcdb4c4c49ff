/* A worker's way into its job, and out again. See phloem/hub.h and protocol.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hub/client_engine.h"
#include "hub/client_greet.h"
#include "net/socket.h"

/* ---- joining ---- */

/* A hub shares memory with its own user's processes alone, and says nothing to others. */
static ph_status reach_local(const struct ph_welcome *welcome, int *socket_out)
{
    PH_TRY(ph__socket_connect_local(welcome->local_socket, socket_out));
    if (ph__socket_is_same_user(*socket_out))
        return PH_OK;
    close(*socket_out);
    return ph_fail(PH_ERROR_PEER, "the hub is another user's, and shares no memory with this one");
}

/* Goes over to the hub's local socket, where there is one to be had. */
static ph_status go_local(
    struct ph_hub_client *client, const struct ph_hub_options *options, struct ph_welcome *welcome)
{
    int socket;
    struct ph_control_stream *local;
    if (options->transport == PH_HUB_TCP) {
        snprintf(client->why, sizeof client->why, "it was asked for");
        return PH_OK;
    }
    if (reach_local(welcome, &socket) != PH_OK) {
        snprintf(client->why, sizeof client->why, "%s", ph_error_text());
        return options->transport == PH_HUB_SHARED_MEMORY ? PH_ERROR_PEER : PH_OK;
    }
    PH_TRY(ph__client_greet(socket, client->secret, client->timeout_ms, &local, welcome));
    ph__control_stream_destroy(client->stream);
    client->stream = local;
    client->is_shared = true;
    snprintf(client->why, sizeof client->why, "the hub is on this host");
    return PH_OK;
}

static ph_status join(
    struct ph_hub_client *client, const struct ph_hub_options *options, const char *service, uint64_t nonce)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    struct ph_control_frame frame;
    struct ph_join wish = {.nonce = nonce,
        .rank = client->rank,
        .is_shared = client->is_shared,
        .has_own_parameters = options->has_own_parameters};
    strcpy(wish.name, service);
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_join(&writer, &wish);
    PH_TRY(ph__client_request(
        client->stream, PH_FRAME_JOIN, &writer, PH_FRAME_JOINED, client->timeout_ms, &frame));
    PH_TRY(ph__get_joined(frame.body, frame.size, &client->joined));
    if (client->joined.depth < 1 || client->joined.depth > PH_HUB_MAX_DEPTH)
        return ph_fail(PH_ERROR_PEER, "the hub gives a depth of %u", client->joined.depth);
    return PH_OK;
}

static ph_status keep_options(struct ph_hub_client *client, const struct ph_hub_options *options)
{
    if (options->address == NULL)
        return ph_fail(PH_ERROR_USAGE, "the hub's address is missing");
    client->address = strdup(options->address);
    if (options->secret_file != NULL)
        client->secret = calloc(1, sizeof *client->secret);
    if (client->address == NULL || (options->secret_file != NULL && client->secret == NULL))
        return ph_fail(PH_ERROR_MEMORY, "no memory for a worker of a hub");
    return client->secret != NULL ? ph__secret_read(options->secret_file, client->secret) : PH_OK;
}

ph_status ph_hub_connect(const struct ph_hub_options *options, const char *service, uint64_t nonce,
    uint32_t rank, struct ph_hub_client **client_out)
{
    struct ph_welcome welcome;
    PH_TRY(ph__service_check_name(service));
    struct ph_hub_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for a worker of a hub");
    client->timeout_ms = ph__client_timeout_ms(options);
    client->rank = rank;
    client->has_no_thread = options->has_no_thread;
    client->region.descriptor = client->results.descriptor = -1;
    ph__waiter_init(&client->waiter, (enum ph_wait_policy)options->wait, false);
    ph_status status = keep_options(client, options);
    if (status == PH_OK)
        status = ph__client_reach(options, client->secret, &client->stream, &welcome);
    if (status == PH_OK)
        status = go_local(client, options, &welcome);
    if (status == PH_OK)
        status = join(client, options, service, nonce);
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
    struct ph_control_frame frame;
    PH_TRY(ph_hub_wait_all(client));
    client->has_left = true;
    return ph__client_request(
        client->stream, PH_FRAME_LEAVE, NULL, PH_FRAME_ANSWER, client->timeout_ms, &frame);
}

void ph_hub_client_destroy(struct ph_hub_client *client)
{
    if (client == NULL)
        return;
    ph__client_engine_destroy(client->engine);
    for (uint16_t core = 0; client->links != NULL && core < client->job.num_cores; core++)
        ph__link_destroy(client->links[core]);
    ph__control_stream_destroy(client->stream);
    ph__region_close(&client->region);
    ph__region_close(&client->results);
    if (client->secret != NULL)
        ph__secret_fini(client->secret);
    free(client->secret);
    free(client->address);
    ph__layout_destroy(client->layout);
    free(client->links);
    free(client->learning_rates);
    free(client->core_of_chunk);
    free(client->keys);
    free(client);
}
