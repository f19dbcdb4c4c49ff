/* What a worker does between joining its job and pushing: keys, links and first parameters. See phloem/hub.h and protocol.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checksum.h"
#include "hub/client_engine.h"
#include "hub/client_greet.h"
#include "hub/spread.h"
#include "net/shared_link.h"
#include "net/tcp_link.h"

/* ---- keys ---- */

static ph_status make_layout(struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys)
{
    struct ph_layout_key *wanted = calloc(num_keys, sizeof *wanted);
    if (wanted == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu keys", num_keys);
    for (size_t i = 0; i < num_keys; i++)
        wanted[i] = (struct ph_layout_key){.num_elements = keys[i].num_elements, .dtype = keys[i].dtype};
    const ph_status status = ph__layout_create(wanted, num_keys, client->job.chunk_bytes, &client->layout);
    free(wanted);
    return status;
}

static ph_status find_cores(struct ph_hub_client *client)
{
    const size_t num_chunks = client->layout->sizes.num_chunks;
    client->core_of_chunk = calloc(num_chunks, sizeof *client->core_of_chunk);
    if (client->core_of_chunk == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu chunks", num_chunks);
    PH_TRY(ph__spread_chunks(client->layout, NULL, 0, client->job.num_cores, client->core_of_chunk));
    if (ph__checksum(client->core_of_chunk, num_chunks * sizeof *client->core_of_chunk) !=
        client->job.cores_sum)
        return ph_fail(
            PH_ERROR_PEER, "hub and worker do not agree on where chunks live: are they of one version?");
    return PH_OK;
}

static struct ph_worker_region_sizes region_sizes(const struct ph_hub_client *client)
{
    return (struct ph_worker_region_sizes){
        .num_cores = client->job.num_cores,
        .ring_capacity = client->job.ring_capacity,
        .gradient_bytes = client->layout->sizes.gradient_bytes,
        .depth = client->joined.depth,
        .has_own_parameters = client->joined.has_own_parameters,
    };
}

static void place_regions(struct ph_hub_client *client)
{
    const struct ph_worker_region_sizes sizes = region_sizes(client);
    const struct ph_worker_region region = ph__worker_region(&sizes);
    const bool has_own = client->joined.has_own_parameters;
    client->num_parameters = has_own ? client->joined.depth : client->job.num_versions;
    for (uint32_t i = 0; i < client->joined.depth; i++)
        client->gradients[i] = (char *)client->region.memory + region.gradients + i * sizes.gradient_bytes;
    for (uint32_t i = 0; i < client->num_parameters; i++)
        client->parameters[i] =
            (has_own ? (char *)client->region.memory + region.parameters : (char *)client->results.memory) +
            i * sizes.gradient_bytes;
}

/* Takes the descriptors one after the other; what was not taken is closed by the caller. */
static ph_status open_shared(struct ph_hub_client *client, const int *descriptors, size_t *num_taken)
{
    const struct ph_worker_region_sizes sizes = region_sizes(client);
    const struct ph_worker_region region = ph__worker_region(&sizes);
    PH_TRY(ph__region_open(descriptors[(*num_taken)++], region.size, true, &client->region));
    PH_TRY(ph__region_open(descriptors[(*num_taken)++], sizes.gradient_bytes * client->job.num_versions,
        false, &client->results));
    for (uint16_t core = 0; core < client->job.num_cores; core++) {
        const struct ph_shared_link_options options = {
            .memory = (char *)client->region.memory + core * region.ring_bytes,
            .capacity = client->job.ring_capacity,
            .doorbell = descriptors[*num_taken],
            .owner = ph__client_link_owner(client),
        };
        PH_TRY(ph__shared_link_create(&options, &client->links[core]));
        (*num_taken)++;
    }
    place_regions(client);
    return PH_OK;
}

/* One connection to each core thread, in the manner of a control connection until it is attached. */
static ph_status connect_core(struct ph_hub_client *client, uint16_t core)
{
    unsigned char bytes[PH_HUB_MAX_BODY];
    struct ph_wire_writer writer;
    struct ph_control_frame frame;
    struct ph_control_stream *stream;
    struct ph_welcome welcome;
    struct ph_tcp_link_options options = {.capacity = client->job.ring_capacity,
        .registered = client->has_no_thread ? NULL : &client->region,
        .owner = ph__client_link_owner(client)};
    const struct ph_attach attach = {.token = client->job.token, .core = core};
    const struct ph_hub_options where = {.address = client->address, .timeout_ms = client->timeout_ms};
    PH_TRY(ph__client_reach(&where, client->secret, &stream, &welcome));
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__put_attach(&writer, &attach);
    ph_status status =
        ph__client_request(stream, PH_FRAME_ATTACH, &writer, PH_FRAME_ANSWER, client->timeout_ms, &frame);
    if (status != PH_OK) {
        ph__control_stream_destroy(stream);
        return status;
    }
    PH_TRY(ph__control_stream_release(stream, &options.socket, &options.send_key, &options.receive_key));
    status = ph__tcp_link_create(&options, &client->links[core]);
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
    for (uint16_t core = 0; core < client->job.num_cores; core++)
        PH_TRY(connect_core(client, core));
    return PH_OK;
}

static ph_status make_links(struct ph_hub_client *client, const int *descriptors, size_t num_descriptors)
{
    size_t num_taken = 0;
    ph_status status = PH_OK;
    client->links = calloc(client->job.num_cores, sizeof *client->links);
    client->learning_rates = calloc(PH_HUB_MAX_OPTIMIZERS, sizeof *client->learning_rates);
    if (client->links == NULL || client->learning_rates == NULL)
        status = ph_fail(PH_ERROR_MEMORY, "no memory for links");
    else if (!client->is_shared)
        status = open_connections(client);
    else if (num_descriptors != (size_t)client->job.num_cores + 2)
        status = ph_fail(PH_ERROR_PEER, "the hub sends %zu descriptors", num_descriptors);
    else
        status = open_shared(client, descriptors, &num_taken);
    for (size_t i = num_taken; i < num_descriptors; i++)
        close(descriptors[i]);
    for (size_t i = 0; status == PH_OK && i < PH_HUB_MAX_OPTIMIZERS; i++)
        client->learning_rates[i] = NAN;
    return status;
}

static ph_status tell_keys(struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys,
    struct ph_control_frame *frame_out)
{
    const size_t capacity = num_keys * PH_HUB_KEY_BYTES;
    if (num_keys == 0 || num_keys > PH_LAYOUT_MAX_KEYS)
        return ph_fail(PH_ERROR_USAGE, "%zu keys; there are 1 to %zu", num_keys, PH_LAYOUT_MAX_KEYS);
    unsigned char *bytes = malloc(capacity);
    if (bytes == NULL)
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu keys", num_keys);
    struct ph_wire_writer writer;
    ph__wire_writer_init(&writer, bytes, capacity);
    ph__put_keys(&writer, keys, num_keys);
    const ph_status status = ph__client_request(
        client->stream, PH_FRAME_INIT, &writer, PH_FRAME_LAYOUT, client->timeout_ms, frame_out);
    free(bytes);
    return status;
}

static ph_status take_layout(
    struct ph_hub_client *client, size_t num_keys, const struct ph_control_frame *frame)
{
    uint64_t *iterations = calloc(num_keys, sizeof *iterations);
    client->keys = calloc(num_keys, sizeof *client->keys);
    if (iterations == NULL || client->keys == NULL) {
        free(iterations);
        return ph_fail(PH_ERROR_MEMORY, "no memory for %zu keys", num_keys);
    }
    const ph_status status = ph__get_layout(frame->body, frame->size, num_keys, &client->job, iterations);
    for (size_t i = 0; status == PH_OK && i < num_keys; i++)
        client->keys[i].pushed = iterations[i];
    free(iterations);
    client->waiter.is_crowded = client->job.is_crowded;
    return status;
}

static ph_status take_job(struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys,
    const struct ph_control_frame *frame)
{
    ph_status status = take_layout(client, num_keys, frame);
    if (status == PH_OK)
        status = make_layout(client, keys, num_keys);
    if (status == PH_OK)
        status = find_cores(client);
    if (status == PH_OK)
        return make_links(client, frame->descriptors, frame->num_descriptors);
    for (size_t i = 0; i < frame->num_descriptors; i++)
        close(frame->descriptors[i]);
    return status;
}

/* Rank 0 says what the parameters are to begin with. */
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
    struct ph_control_frame frame;
    PH_TRY(ph__client_request(
        client->stream, PH_FRAME_LINKED, NULL, PH_FRAME_BEGIN, client->timeout_ms, &frame));
    if (client->rank == 0 && !client->job.is_restored)
        PH_TRY(assign(client, keys, num_keys));
    PH_TRY(
        ph__client_request(client->stream, PH_FRAME_ASSIGNED, NULL, PH_FRAME_GO, client->timeout_ms, &frame));
    for (size_t i = 0; i < num_keys; i++)
        PH_TRY(ph__client_begin(client, i, PH_HUB_PULL));
    return ph_hub_wait_all(client);
}

ph_status ph_hub_init(
    struct ph_hub_client *client, const struct ph_hub_key *keys, size_t num_keys, uint64_t *iteration_out)
{
    struct ph_control_frame frame;
    if (client->layout != NULL)
        return ph_fail(PH_ERROR_USAGE, "keys are initialised once");
    PH_TRY(tell_keys(client, keys, num_keys, &frame));
    PH_TRY(take_job(client, keys, num_keys, &frame));
    PH_TRY(ph__client_engine_create(client, !client->is_shared && !client->has_no_thread, &client->engine));
    PH_TRY(begin(client, keys, num_keys));
    if (iteration_out != NULL) {
        *iteration_out = client->keys[0].pushed;
        for (size_t i = 1; i < num_keys; i++)
            *iteration_out =
                client->keys[i].pushed < *iteration_out ? client->keys[i].pushed : *iteration_out;
    }
    return PH_OK;
}
