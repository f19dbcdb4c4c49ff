/* Makes a worker's memory, and its links to the core threads of its hubs. See client_state.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/sum/checksum.h"
#include "hub/client/client_greet.h"
#include "hub/client/client_state.h"
#include "hub/layout/spread.h"
#include "net/link/shared_link.h"
#include "net/link/socket.h"
#include "net/link/tcp_link.h"

#define OTHER_CONNECT_MS 1000u /* limit for an address named by the hub, maybe of another network */
#define OTHER_GREET_MS 5000u   /* limit for a greeting there, maybe by another machine */

/* ---- links of chunks ---- */

/* Finds the links of the hub's chunks. scratch: (num_chunks). */
static ph_status find_cores(
    struct ph_hub_client *client, uint16_t index, const uint16_t *hub_of_chunk, uint16_t *scratch)
{
    struct ph__client_hub *hub = &client->hubs[index];
    const size_t num_chunks = client->layout->sizes.num_chunks;
    hub->first_link = client->num_links;
    client->num_links += hub->job.num_cores;
    PH_TRY(ph__spread_chunks(client->layout, hub_of_chunk, index, hub->job.num_cores, scratch));
    if (ph__checksum(scratch, num_chunks * sizeof *scratch) != hub->job.cores_sum)
        return ph_fail(
            PH_ERROR_PEER, "the hub and the worker place chunks differently: run one version on both");
    for (size_t i = 0; i < num_chunks; i++) {
        if (hub_of_chunk[i] != index)
            continue;
        client->link_of_chunk[i] = hub->first_link + scratch[i];
        hub->num_chunks++;
    }
    return PH_OK;
}

static ph_status find_links(struct ph_hub_client *client, uint16_t *hub_of_chunk, uint16_t *scratch)
{
    PH_TRY(ph__spread_chunks(client->layout, NULL, 0, client->list.num_hubs, hub_of_chunk));
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++)
        PH_TRY(ph__client_name(client, hub, find_cores(client, hub, hub_of_chunk, scratch)));
    return PH_OK;
}

ph_status ph__client_find_links(struct ph_hub_client *client)
{
    const size_t num_chunks = client->layout->sizes.num_chunks;
    uint16_t *hub_of_chunk = calloc(num_chunks, sizeof *hub_of_chunk);
    uint16_t *scratch = calloc(num_chunks, sizeof *scratch);
    client->link_of_chunk = calloc(num_chunks, sizeof *client->link_of_chunk);
    client->asked = calloc(num_chunks, sizeof *client->asked);
    const ph_status status =
        hub_of_chunk == NULL || scratch == NULL || client->link_of_chunk == NULL || client->asked == NULL
            ? ph__out_of_memory("%zu chunks", num_chunks)
            : find_links(client, hub_of_chunk, scratch);
    free(hub_of_chunk);
    free(scratch);
    return status;
}

/* ---- shared memory, with a single hub ---- */

static struct ph__worker_region_sizes region_sizes(const struct ph_hub_client *client)
{
    return (struct ph__worker_region_sizes){
        .num_cores = client->hubs[0].job.num_cores,
        .ring_capacity = client->hubs[0].job.ring_capacity,
        .gradient_bytes = client->layout->sizes.gradient_bytes,
        .depth = client->joined.depth,
        .has_own_parameters = client->joined.has_own_parameters,
    };
}

static void place_regions(struct ph_hub_client *client)
{
    const struct ph__worker_region_sizes sizes = region_sizes(client);
    const struct ph__worker_region region = ph__worker_region(&sizes);
    const bool has_own = client->joined.has_own_parameters;
    client->num_parameters = has_own ? client->joined.depth : client->hubs[0].job.num_versions;
    for (uint32_t i = 0; i < client->joined.depth; i++)
        client->gradients[i] = (char *)client->region.memory + region.gradients + i * sizes.gradient_bytes;
    for (uint32_t i = 0; i < client->num_parameters; i++)
        client->parameters[i] =
            (has_own ? (char *)client->region.memory + region.parameters : (char *)client->results.memory) +
            i * sizes.gradient_bytes;
}

/* Opens regions and links. Takes the descriptors in order; the caller closes those not taken. */
static ph_status open_shared(struct ph_hub_client *client, const int *descriptors, size_t *num_taken)
{
    const struct ph__worker_region_sizes sizes = region_sizes(client);
    const struct ph__worker_region region = ph__worker_region(&sizes);
    PH_TRY(ph__region_open(descriptors[(*num_taken)++], region.size, true, &client->region));
    PH_TRY(ph__region_open(descriptors[(*num_taken)++],
        sizes.gradient_bytes * client->hubs[0].job.num_versions, false, &client->results));
    for (uint16_t core = 0; core < sizes.num_cores; core++) {
        const struct ph__shared_link_options options = {
            .memory = (char *)client->region.memory + core * region.ring_bytes,
            .capacity = sizes.ring_capacity,
            .doorbell = descriptors[*num_taken],
            .owner = ph__client_link_owner(client, core),
        };
        PH_TRY(ph__shared_link_create(&options, &client->links[core]));
        (*num_taken)++;
    }
    place_regions(client);
    return PH_OK;
}

/* ---- TCP ---- */

struct place { /* address of a core thread */
    char address[PH_ADDRESS_BYTES];
    struct ph__timeout connect, greet; /* greet: also to be attached */
    struct ph__attach attach;
};

static ph_status ask_to_attach(
    struct ph__control_stream *stream, const struct ph__attach *attach, struct ph__timeout timeout)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__control_frame frame;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_attach(&writer, attach);
    return ph__client_request(stream, PH_FRAME_ATTACH, &writer, PH_FRAME_ANSWER, timeout, &frame);
}

/* Attaches a connection to a core thread; until then it is like a control connection. The death of the hub
 * ends the wait: its control connection is watched. */
static ph_status attach(struct ph_hub_client *client, const struct ph__client_hub *hub,
    const struct place *place, struct ph__control_stream **stream_out)
{
    struct ph__control_stream *stream;
    struct ph__welcome welcome;
    int socket;
    PH_TRY(ph__socket_connect_while(
        place->address, place->connect, ph__control_stream_socket(hub->stream), &socket));
    PH_TRY(ph__client_greet(socket, client->secret, place->greet, &stream, &welcome));
    const ph_status status = ask_to_attach(stream, &place->attach, place->greet);
    if (status != PH_OK) {
        ph__control_stream_destroy(stream);
        return status;
    }
    *stream_out = stream;
    return PH_OK;
}

static struct ph__timeout at_most(const struct ph_hub_client *client, uint32_t most_ms)
{
    struct ph__timeout timeout = client->timeout;
    timeout.ms = timeout.ms < most_ms ? timeout.ms : most_ms;
    return timeout;
}

/* Attaches at the address that the hub has named for the core thread. */
static ph_status attach_at_host(struct ph_hub_client *client, const struct ph__client_hub *hub,
    const struct ph__attach *wanted, struct ph__control_stream **stream_out)
{
    struct place place = {.connect = at_most(client, OTHER_CONNECT_MS),
        .greet = at_most(client, OTHER_GREET_MS),
        .attach = *wanted};
    PH_TRY(ph__socket_peer_at(
        ph__control_stream_socket(hub->stream), hub->job.hosts[wanted->core], place.address));
    return attach(client, hub, &place, stream_out);
}

/* Attaches at the address of the control connection. */
static ph_status attach_at_control(struct ph_hub_client *client, const struct ph__client_hub *hub,
    const struct ph__attach *wanted, struct ph__control_stream **stream_out)
{
    struct place place = {.connect = client->timeout, .greet = client->timeout, .attach = *wanted};
    PH_TRY(ph__socket_peer(ph__control_stream_socket(hub->stream), place.address));
    return attach(client, hub, &place, stream_out);
}

/* Forgets an address that has failed, for all core threads that have it. */
static void forget_host(struct ph_hub_client *client, struct ph__client_hub *hub, uint16_t core)
{
    char host[PH_HOST_BYTES];
    const size_t used = strlen(client->why);
    strcpy(host, hub->job.hosts[core]);
    snprintf(client->why + used, sizeof client->why - used, "; the hub's address %s is not used: %s", host,
        ph_error_text());
    for (uint16_t i = 0; i < hub->job.num_cores; i++) {
        if (strcmp(hub->job.hosts[i], host) == 0)
            hub->job.hosts[i][0] = '\0';
    }
}

static ph_status attach_core(
    struct ph_hub_client *client, uint16_t index, uint16_t core, struct ph__control_stream **stream_out)
{
    struct ph__client_hub *hub = &client->hubs[index];
    const struct ph__attach wanted = {.token = hub->job.token, .core = core};
    if (hub->job.hosts[core][0] != '\0') {
        if (attach_at_host(client, hub, &wanted, stream_out) == PH_OK)
            return PH_OK;
        forget_host(client, hub, core);
    }
    return attach_at_control(client, hub, &wanted, stream_out);
}

static ph_status connect_core(struct ph_hub_client *client, uint16_t index, uint16_t core)
{
    const struct ph__client_hub *hub = &client->hubs[index];
    struct ph__control_stream *stream;
    struct ph__tcp_link_options options = {.capacity = hub->job.ring_capacity,
        .registered = client->has_no_thread ? NULL : &client->region,
        .owner = ph__client_link_owner(client, hub->first_link + core)};
    PH_TRY(attach_core(client, index, core, &stream));
    PH_TRY(ph__control_stream_release(stream, &options.socket, &options.send_key, &options.receive_key));
    const ph_status status = ph__tcp_link_create(&options, &client->links[hub->first_link + core]);
    if (status != PH_OK) {
        close(options.socket);
        ph__frame_key_destroy(options.send_key);
        ph__frame_key_destroy(options.receive_key);
    }
    return status;
}

static ph_status open_connections(struct ph_hub_client *client)
{
    const size_t bytes = client->layout->sizes.gradient_bytes, depth = client->joined.depth;
    PH_TRY(ph__region_create("phloem-hub-worker", 2 * depth * bytes, &client->region));
    ph__region_enlarge_pages(&client->region, client->region.memory, client->region.size);
    for (size_t i = 0; i < depth; i++) {
        client->gradients[i] = (char *)client->region.memory + i * bytes;
        client->parameters[i] = (char *)client->region.memory + (depth + i) * bytes;
    }
    client->num_parameters = client->joined.depth;
    for (uint16_t hub = 0; hub < client->list.num_hubs; hub++) {
        for (uint16_t core = 0; core < client->hubs[hub].job.num_cores; core++) {
            PH_TRY(ph__client_look_at_hubs(
                client)); /* news that came with the last answer is no longer at the socket */
            PH_TRY(ph__client_explain(client, ph__client_name(client, hub, connect_core(client, hub, core))));
        }
    }
    return PH_OK;
}

ph_status ph__client_make_links(struct ph_hub_client *client, size_t *num_taken_out)
{
    const struct ph__control_frame *frame = &client->hubs[0].frame;
    client->links = calloc(client->num_links, sizeof *client->links);
    client->ends = calloc(client->num_links, sizeof *client->ends);
    if (client->links == NULL || client->ends == NULL)
        return ph__out_of_memory("links");
    if (!client->is_shared)
        return open_connections(client);
    if (frame->num_descriptors != (size_t)client->num_links + 2)
        return ph_fail(
            PH_ERROR_PEER, "the hub sent a wrong number of descriptors: %zu", frame->num_descriptors);
    return open_shared(client, frame->descriptors, num_taken_out);
}
